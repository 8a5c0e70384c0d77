import Domain
import Relay
import World

extension Store: PINStore {
    public func pin(of phone: PhoneCredential) async throws(StoreFailure) -> PhonePIN? {
        let script = Script(
            "pin", rows: [.device(phone.id)], reads: [pinOfPhone(device: .id(phone.id), key: .blob(phone.key))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in try rows[0].first.map(PINRows.read) })
    }

    public func countWrong(_ wrong: WrongPIN, as operation: Operation) async throws(StoreFailure) -> CountedPIN? {
        let (device, now) = (SQLValue.id(wrong.phone.id), SQLValue.timestamp(wrong.at))
        let isPUK = SQLValue.bool(wrong.kind == .puk)
        let (locked, event): (AccountEvent, String) =
            wrong.kind == .pin ? (.pinLocked, "pin.locked") : (.pukLocked, "puk.locked")
        let writes =
            [
                Locks.hold(user: .id(wrong.phone.user)),
                countWrongPIN(
                    isPUK: isPUK, device: device, key: .blob(wrong.phone.key), version: .integer(Int64(wrong.version)),
                    operation: .id(operation)),
                auditWrongPIN(
                    operation: .id(operation), now: now, isPUK: isPUK, challenge: .id(wrong.challenge), device: device),
            ]
            + AccountEventRows.steps(
                locked, user: wrong.phone.user, device: wrong.phone.id, after: event, at: wrong.at, as: operation)
        let rows: [SignedRows] =
            [.user(wrong.phone.user).lenient, .device(wrong.phone.id).lenient]
            + AccountEventRows.rows(locked, as: operation)
        let reads = [
            pinOfPhone(device: device, key: .blob(wrong.phone.key)), lockedNow(operation: .id(operation), now: now),
        ]
        return try await run(
            Query(change: Change("wrong pin", operation, rows: rows, writes, reads: reads, reporting: 1)) {
                rows throws(StoreFailure) in
                guard let row = rows[1].first else { return nil }
                return CountedPIN(
                    pin: try PINRows.read(row), isNew: try rows.isOwn(at: wrong.at), isLocking: !rows[2].isEmpty)
            })
    }

    public func store(_ change: PINChange, as operation: Operation) async throws(StoreFailure) -> Bool? {
        let (phone, present) = (change.phone, change.present)
        let event = "\(change.event)"
        let code = change.change == .unlock ? present.unlock : nil
        let writes =
            [
                Locks.hold(user: .id(phone.user)),
                storePIN(
                    pin: .blob(change.key), puk: .blob(change.pukKey), operation: .id(operation), device: .id(phone.id),
                    key: .blob(phone.key), version: .integer(Int64(present.version)),
                    failures: .integer(Int64(present.failures)), pukFailures: .integer(Int64(present.pukFailures)),
                    code: .id(code?.operation), codeFailures: .integer((code?.failures).map { Int64($0) }),
                    now: .timestamp(change.at)),
                auditPIN(
                    operation: .id(operation), now: .timestamp(change.at), event: .text(event),
                    device: .id(phone.id)),
                dropUnlockSecret(code: .id(present.unlock?.operation), operation: .id(operation)),
            ]
            + AccountEventRows.steps(
                .pinChanged, user: phone.user, device: phone.id, after: event, at: change.at, as: operation)
        let rows = [SignedRows.user(phone.user).lenient, .device(phone.id).signed]
        return try await run(
            Query(
                change: Change(
                    "set pin", operation, rows: rows + AccountEventRows.rows(.pinChanged, as: operation), writes,
                    reporting: 1)
            ) { rows throws(StoreFailure) in rows.happened ? try rows.isOwn(at: change.at) : nil })
    }

    public func hasChangedPIN(of phone: PhoneCredential, by operation: Operation) async throws(StoreFailure) -> Bool {
        let script = Script("pin", reads: [changeOfPIN(operation: .id(operation), device: .id(phone.id))])
        return try await run(Query(script: script) { rows in !rows[0].isEmpty })
    }
}

extension Store {
    public func isUsed(anyOf thumbprints: [[UInt8]]) async throws(StoreFailure) -> Bool {
        let script = Script("pin", reads: thumbprints.map { purposeOfKey(thumbprint: .blob($0)) })
        return try await run(Query(script: script) { rows in rows.contains { !$0.isEmpty } })
    }
}

private let purposeOfKey = Statement("SELECT 1 FROM used_key WHERE thumbprint = :thumbprint LIMIT 1")

extension Store {
    public func pinAndPolicy(
        of phone: PhoneCredential
    ) async throws(StoreFailure) -> (pin: PhonePIN, policy: String?)? {
        let script = Script(
            "pin", rows: [.device(phone.id), .user(phone.user)],
            reads: [pinAndPolicyOfPhone(device: .id(phone.id), key: .blob(phone.key))])
        return try await run(
            Query(script: script) { rows throws(StoreFailure) in
                guard let row = rows[0].first else { return nil }
                return (try PINRows.read(row), try row.optionalText("user_policy"))
            })
    }
}

private let pinAndPolicyOfPhone = Statement(
    """
    SELECT \(PINRows.columns), u.policy AS user_policy FROM device d JOIN user u ON u.id = d.user_id WHERE \(isPhone)
    """)

private let isPhone = "d.id = :device AND d.thumbprint = :key AND d.state = 'active'"

private let pinOfPhone = Statement("SELECT \(PINRows.columns) FROM device d WHERE \(isPhone)")

/// Counts a wrong PIN or PUK, unless it is locked already, was replaced, or was counted. The row of
/// the user is locked before, so a repetition finds the audit row.
private let countWrongPIN = Statement(
    """
    UPDATE device SET pin_failures = pin_failures + 1 - :isPUK, puk_failures = puk_failures + :isPUK,
    operation = :operation
    WHERE id = :device AND thumbprint = :key AND state = 'active' AND pin_key IS NOT NULL AND pin_version = :version
    AND (:isPUK = 1 OR pin_failures < \(PhonePIN.tries)) AND (:isPUK = 0 OR puk_failures < \(PhonePIN.pukTries))
    AND NOT \(Guards.audited)
    """)

private let auditWrongPIN = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, device_id, outcome)
    SELECT :operation, :now, CASE WHEN :isPUK = 1 AND d.puk_failures >= \(PhonePIN.pukTries) THEN 'puk.locked'
    WHEN :isPUK = 1 THEN 'puk.wrong' WHEN d.pin_failures >= \(PhonePIN.tries) THEN 'pin.locked' ELSE 'pin.wrong' END,
    u.website_id, u.id, :challenge, d.id, CASE WHEN :isPUK = 1 THEN d.puk_failures ELSE d.pin_failures END
    FROM device d JOIN user u ON u.id = d.user_id WHERE d.id = :device AND d.operation = :operation
    \(Audit.once)
    """)

private let lockedNow = Statement(
    "SELECT 1 FROM audit WHERE operation = :operation AND at = :now AND event IN ('pin.locked', 'puk.locked')")

/// Stores a new PIN in the place of the one that was read, and forgets the wrong ones. A change
/// without a new PUK keeps the count of the PUK. Each change ends the code of the help desk; one
/// that relies on a code needs it, and its count, as they were judged.
private let storePIN = Statement(
    """
    UPDATE device SET pin_key = :pin, puk_key = coalesce(:puk, puk_key), pin_version = pin_version + 1,
    pin_failures = 0, puk_failures = CASE WHEN :puk IS NULL THEN puk_failures ELSE 0 END, operation = :operation,
    unlock_operation = NULL, unlock_until = NULL, unlock_failures = 0
    WHERE id = :device AND thumbprint = :key AND state = 'active' AND pin_version = :version
    AND pin_failures = :failures AND puk_failures = :pukFailures
    AND (:code IS NULL OR unlock_operation = :code AND unlock_failures = :codeFailures AND unlock_until > :now)
    """)

private let auditPIN = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, device_id)
    SELECT :operation, :now, :event, u.website_id, u.id, d.id
    FROM device d JOIN user u ON u.id = d.user_id WHERE d.id = :device AND d.operation = :operation
    \(Audit.once)
    """)

private let dropUnlockSecret = Statement(
    "DELETE FROM operation_secret WHERE operation = :code AND \(Guards.audited)")

private let changeOfPIN = Statement(
    """
    SELECT 1 FROM audit
    WHERE operation = :operation AND device_id = :device AND event IN ('pin.set', 'pin.changed', 'pin.reset', 'pin.unlocked')
    """)

/// The PIN of a phone: its columns, and the parts of an approval that depend on it.
enum PINRows {
    /// The columns of the alias `d`.
    static let columns =
        "d.pin_key, d.puk_key, d.pin_version, d.unlock_operation, d.unlock_counter, d.unlock_until, \(otherColumns)"

    /// Those of them that a checked read of the phone does not have.
    static let otherColumns = "d.pin_failures, d.puk_failures, d.unlock_failures"

    static func ofPhone(_ phone: PhoneCredential) -> BoundStatement {
        pinOfPhone(device: .id(phone.id), key: .blob(phone.key))
    }

    static func read(_ row: Row) throws(StoreFailure) -> PhonePIN {
        PhonePIN(
            key: try row.optionalBlob("pin_key"), pukKey: try row.optionalBlob("puk_key"),
            version: Int(try row.integer("pin_version")), failures: Int(try row.integer("pin_failures")),
            pukFailures: Int(try row.integer("puk_failures")), unlock: try code(row))
    }

    private static func code(_ row: Row) throws(StoreFailure) -> UnlockCode.Issued? {
        guard let operation: OperationID = try row.optionalID("unlock_operation"),
            let until = try row.optionalTimestamp("unlock_until")
        else { return nil }
        return UnlockCode.Issued(
            operation: operation, counter: try row.integer("unlock_counter"), expiresAt: until,
            failures: Int(try row.integer("unlock_failures")))
    }

    /// The condition that an approval by the phone `d` needs no PIN, or that the PIN and its count
    /// are as they were judged.
    static let isAsJudged = """
        (:pinVersion IS NULL OR d.pin_version = :pinVersion AND d.pin_failures = :pinFailures)
        """

    /// Forgets the wrong PINs after an approval with the right one.
    static func forgetFailures(of device: DeviceID, endedWith challenge: SQLValue, as operation: Operation)
        -> BoundStatement
    {
        forgetPINFailures(device: .id(device), challenge: challenge, operation: .id(operation))
    }

    private static let forgetPINFailures = Statement(
        "UPDATE device SET pin_failures = 0 WHERE id = :device AND \(Guards.challengeWritten)")
}
