import Domain
import Relay

/// The columns of a code factor, and how they are read.
enum CodeFactors {
    /// The columns of the table or alias `f`.
    static let columns = """
        f.id AS factor_id, f.kind AS factor_kind, f.state AS factor_state, f.secret AS factor_secret,
        f.algorithm AS factor_algorithm, f.digits AS factor_digits, f.period AS factor_period,
        f.counter AS factor_counter, f.address AS factor_address, f.failures AS factor_failures,
        f.failed_at AS factor_failed_at, f.created_at AS factor_created_at, f.confirmed_at AS factor_confirmed_at,
        f.approval AS factor_approval, f.last_code_at AS factor_last_code_at,
        f.device_id AS factor_device_id, f.resync_since IS NOT NULL AS factor_needs_resync
        """

    /// The condition that codes of the factor `f` count at `:now`: it is active, a token whose
    /// counter may be old was resynchronised, and its phone is active, if it has one. A relay
    /// deletes the factor together with the phone's rights; SQL may stop only the phone. A temporary
    /// code has not expired, and has uses left.
    static let count = "f.state = 'active' AND f.resync_since IS NULL AND \(isOfActivePhone) AND \(isUsable)"

    /// The condition that the factor `f` is no temporary code that has ended by `:now`.
    static let isUsable = """
        (f.kind <> 'operator' OR EXISTS
        (SELECT 1 FROM temporary_code t WHERE t.factor_id = f.id AND \(TemporaryCodes.isUsable)))
        """

    static let isOfActivePhone = """
        (f.device_id IS NULL OR EXISTS
        (SELECT 1 FROM device p WHERE p.id = f.device_id AND p.user_id = f.user_id AND p.state = 'active'))
        """

    static func read(_ row: Row) throws(StoreFailure) -> CodeFactor {
        try read(row, address: try row.optionalAddress("factor_address"))
    }

    /// Reads a factor for an operator: an address that does not open is shown as it is.
    static func shown(_ row: Row) throws(StoreFailure) -> CodeFactor {
        try read(row, address: try row.optionalShownAddress("factor_address"))
    }

    private static func read(_ row: Row, address: String?) throws(StoreFailure) -> CodeFactor {
        CodeFactor(
            id: try row.id("factor_id"), kind: try row.word("factor_kind"), state: try row.word("factor_state"),
            secret: try row.optionalBlob("factor_secret"), algorithm: try row.word("factor_algorithm"),
            digits: Int(try row.integer("factor_digits")),
            period: try row.optionalInteger("factor_period").map { Int($0) },
            counter: try row.integer("factor_counter"), address: address,
            failures: Int(try row.integer("factor_failures")), failedAt: try row.optionalTimestamp("factor_failed_at"),
            createdAt: try row.timestamp("factor_created_at"),
            confirmedAt: try row.optionalTimestamp("factor_confirmed_at"),
            isApproved: try row.isNull("factor_approval") == false,
            lastCodeAt: try row.optionalTimestamp("factor_last_code_at"),
            device: try row.optionalID("factor_device_id"), needsResync: try row.bool("factor_needs_resync"))
    }
}
