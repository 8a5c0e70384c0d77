/// The reason why the store gave no answer. A refusal by a guard is no failure but an outcome.
public enum StoreFailure: Error, Sendable, Equatable {
    /// The store is down, hung, full, or too busy to answer before the deadline. As far as the
    /// relay knows, nothing was changed.
    case unavailable(String)
    /// A row has invalid content, or a statement failed that cannot fail: a bug in the relay.
    case `internal`(String)
    /// The tables have a version that this program cannot work with. The remedy tells the operator
    /// what to do.
    case mismatched(String, remedy: String)
    /// No relay has signed the present content of this row: its MAC is missing or wrong.
    case forged(String)

    var reason: String {
        switch self {
        case .unavailable(let reason), .mismatched(let reason, _), .internal(let reason), .forged(let reason): reason
        }
    }
}
