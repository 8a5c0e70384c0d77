/// The reason why the store gave no answer. A refusal by a guard is no failure but an outcome.
public enum StoreFailure: Error, Sendable, Equatable {
    /// The store is down, hung, full, or too busy to answer before the deadline. As far as the
    /// relay knows, nothing was changed.
    case unavailable(String)
    /// A row has invalid content, or a statement failed that cannot fail: a bug in the relay.
    case `internal`(String)
    /// No relay has signed the present content of this row: its MAC is missing or wrong.
    case forged(String)

    var reason: String {
        switch self {
        case .unavailable(let reason), .internal(let reason), .forged(let reason): reason
        }
    }
}
