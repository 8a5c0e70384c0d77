import Domain
import Relay

/// The columns of a code factor, and how they are read.
enum CodeFactors {
    /// The columns of the table or alias `f`.
    static let columns = """
        f.id, f.kind, f.state, f.secret, f.algorithm, f.digits, f.period, f.counter, f.address, f.failures, f.failed_at,
        f.created_at, f.confirmed_at, f.approval
        """

    /// Reads a factor.
    ///
    /// - Parameter first: the index of the first of these columns.
    static func read(_ row: Row, from first: Int = 0) throws(StoreFailure) -> CodeFactor {
        CodeFactor(
            id: try row.id(first), kind: try row.word(first + 1), state: try row.word(first + 2),
            secret: try row.optionalBlob(first + 3), algorithm: try row.word(first + 4),
            digits: Int(try row.integer(first + 5)), period: try row.optionalInteger(first + 6).map { Int($0) },
            counter: try row.integer(first + 7), address: try row.optionalText(first + 8),
            failures: Int(try row.integer(first + 9)), failedAt: try row.optionalTimestamp(first + 10),
            createdAt: try row.timestamp(first + 11), confirmedAt: try row.optionalTimestamp(first + 12),
            isApproved: try row.isNull(first + 13) == false)
    }
}
