/// Why the store gave no answer. A refusal by a guard is not among these: that is an outcome.
public enum StoreFailure: Error, Sendable, Equatable {
    /// Down, hung, full, or too busy within the deadline. Nothing is known to have been changed.
    case unavailable(String)
    /// A row that should not be as it is, or a statement that should not fail: a bug of ours.
    case `internal`(String)
    /// This row was not written by a relay, or was changed by somebody else since.
    case forged(String)

    var reason: String {
        switch self {
        case .unavailable(let reason), .internal(let reason), .forged(let reason): reason
        }
    }
}
