/// Several bad tokens in a row with none accepted in between mean that the tokens belong to another environment than
/// the host, or to another app than the topic: then they must not be thrown away.
struct TokenMismatchDetector {
    static let limit = 5
    private var inARow: [APNsNotification.Environment: Int] = [:]

    /// Whether anything is held against any environment.
    var isLeft: Bool { !inARow.isEmpty }

    func doubts(_ environment: APNsNotification.Environment) -> Bool { inARow[environment, default: 0] >= Self.limit }

    mutating func bad(_ environment: APNsNotification.Environment) { inARow[environment, default: 0] += 1 }

    mutating func accepted(_ environment: APNsNotification.Environment) { inARow[environment] = nil }
}
