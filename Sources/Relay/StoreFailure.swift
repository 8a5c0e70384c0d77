/// Why the store gave no answer. A refusal by a guard is not among these: that is an outcome.
public enum StoreFailure: Error, Sendable, Equatable {
    /// Down, hung, full, or too busy within the deadline. Nothing is known to have been changed.
    case unavailable(String)
    /// A row that should not be as it is, or a statement that should not fail: a bug of ours.
    case `internal`(String)
}
