import Domain

/// Several bad tokens in a row with none accepted in between mean that the tokens belong to another environment than
/// the host: then they must not be thrown away.
struct TokenDoubt {
    static let limit = 5
    private var inARow: [PushEnvironment: Int] = [:]

    func doubts(_ environment: PushEnvironment) -> Bool { inARow[environment, default: 0] >= Self.limit }

    mutating func bad(_ environment: PushEnvironment) { inARow[environment, default: 0] += 1 }

    mutating func accepted(_ environment: PushEnvironment) { inARow[environment] = 0 }
}
