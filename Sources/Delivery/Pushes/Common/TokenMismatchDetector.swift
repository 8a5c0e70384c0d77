/// A detector for device tokens of another environment or app. If several tokens in a row are bad
/// and none is accepted, the host or the topic is wrong. The tokens must then be kept.
struct TokenMismatchDetector {
    static let limit = 5
    private var inARow: [APNsNotification.Environment?: Int] = [:]

    /// Whether any environment has a bad token since the last acceptance.
    var isLeft: Bool { !inARow.isEmpty }

    func suspects(_ environment: APNsNotification.Environment?) -> Bool {
        inARow[environment, default: 0] >= Self.limit
    }

    mutating func bad(_ environment: APNsNotification.Environment?) { inARow[environment, default: 0] += 1 }

    mutating func accepted(_ environment: APNsNotification.Environment?) { inARow.removeValue(forKey: environment) }
}
