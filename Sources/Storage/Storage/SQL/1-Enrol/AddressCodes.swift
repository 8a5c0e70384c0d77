import Domain
import Relay
import World

extension Store {
    public func sentCodes(of factor: FactorID, at now: Timestamp) async throws(StoreFailure) -> [Int64] {
        let script = Script(
            "sent", rows: [.sentCodes(of: factor)], reads: [sentTo(factor: .id(factor), now: .timestamp(now))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                var counters: [Int64] = []
                for row in rows[0] { counters.append(try row.integer("counter")) }
                return counters
            })
    }
}

private let sentTo = Statement(
    """
    SELECT counter FROM sent_code WHERE factor_id = :factor AND challenge_id IS NULL AND expires_at > :now
    ORDER BY counter
    """)

extension Store {
    public func confirm(
        address factor: CodeFactor, of user: UserID, failures: Int, code: Int64, isVouchedFor: Bool, at now: Timestamp,
        as operation: Operation
    ) async throws(StoreFailure) -> CodeUseOutcome {
        let guards = [
            unmarkUnsent(
                user: .id(user), operation: .id(operation), factor: .id(factor.id), counter: .integer(code),
                now: .timestamp(now)),
            TakenAddresses.unmark(factor.kind, factor.address, user: user, as: operation),
            TakenAddresses.take(factor.kind, factor.address, user: user, at: now, as: operation),
            TakenAddresses.unmarkUntaken(factor.kind, factor.address, user: user, as: operation),
        ]
        let change = Change(
            "confirm", operation,
            rows: Factors.rows(confirming: factor, of: user, at: now, as: operation) + [.sentCode(of: factor.id, code)],
            Factors.confirmed(
                factor, of: user, failures: failures, counter: factor.counter, hasWord: isVouchedFor, guards: guards,
                at: now,
                as: operation),
            reads: [TakenAddresses.find(factor.kind, factor.address, user: user)])
        return try await run(
            Query(change: change) { rows in rows.happened ? .done : rows[1].isEmpty ? .changed : .taken })
    }
}

private let unmarkUnsent = Statement(
    """
    \(TakenAddresses.unmarkIf) NOT EXISTS (SELECT 1 FROM sent_code s
    WHERE s.factor_id = :factor AND s.counter = :counter AND s.challenge_id IS NULL AND s.expires_at > :now)
    """)

extension Store {
    public func send(_ sending: AddressCode, as operation: Operation) async throws(StoreFailure) -> SendOutcome {
        let code = sending.code
        var writes = [Locks.hold(user: .id(sending.user))]
        if let charge = sending.charge { writes.append(SMSBudget.hold(charge)) }
        writes.append(sending.audit(operation))
        writes += CodeEntries.insert(code, as: operation)
        if let charge = sending.charge { writes.append(SMSBudget.count(charge, message: code.id)) }
        let room = sending.charge.map { roomOfText.bound([:], lists: SMSBudget.lists($0)) } ?? roomAlways()
        let change = Change(
            "send", operation, rows: [.user(sending.user).signed] + CodeEntries.rows(code), writes,
            reads: [oldestSent(factor: .id(code.factor), since: .timestamp(sending.since)), room])
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                if rows.happened { return .sent }
                if let row = rows[1].first { return .limited(by: try row.timestamp("sent_at")) }
                if try rows[2].first?.bool("is_website_full") == true { return .websiteLimited }
                return try rows[2].first?.bool("has_room") == true ? .changed : .limited(by: nil)
            })
    }
}

private let oldestSent = Statement(
    """
    SELECT s.sent_at FROM factor f JOIN factor o JOIN sent_code s ON s.factor_id = o.id
    WHERE f.id = :factor AND \(lately)
    ORDER BY s.sent_at DESC LIMIT 1 OFFSET \(Relay.addressCodes - 1)
    """)

/// Codes sent lately to confirm an address of the kind of `f`, over all of the user's factors of
/// that kind. The active factor counts, too, because such codes confirmed it.
private let lately = "o.user_id = f.user_id AND o.kind = f.kind AND s.challenge_id IS NULL AND s.sent_at > :since"

private let roomOfText = Statement(
    "SELECT \(SMSBudget.hasRoom) AS has_room, \(SMSBudget.isWebsiteFull) AS is_website_full")
private let roomAlways = Statement("SELECT 1 AS has_room, 0 AS is_website_full")

extension AddressCode {
    /// Writes the audit row, on which the other statements depend, within the limits.
    fileprivate func audit(_ operation: Operation) -> BoundStatement {
        let values: KeyValuePairs<SQLName, SQLValue> = [
            "operation": .id(operation), "now": .timestamp(code.at), "factor": .id(code.factor),
            "counter": .integer(code.counter), "since": .timestamp(since),
            "mostCodes": .integer(Int64(Relay.addressCodes)),
        ]
        guard let charge else { return auditCode.bound(values, lists: [:]) }
        return auditTextCode.bound(values, lists: SMSBudget.lists(charge))
    }
}

private let auditCode = Statement.audit("\(auditSending) \(Audit.once)")
private let auditTextCode = Statement.audit("\(auditSending) AND \(SMSBudget.hasRoom) \(Audit.once)")

private let auditSending = """
    INSERT INTO audit (operation, at, event, website_id, user_id, outcome)
    SELECT :operation, :now, 'address.code', u.website_id, u.id, f.kind
    FROM factor f JOIN user u ON u.id = f.user_id
    WHERE f.id = :factor AND f.counter = :counter AND f.state = 'waiting' AND \(Guards.mayLogIn)
    AND (SELECT count(*) FROM factor o JOIN sent_code s ON s.factor_id = o.id WHERE \(lately)) < :mostCodes
    """
