import Domain
import Relay
import World

/// The unlock codes of phones.
public enum UnlockCodes {
    /// The outcome of issuing a code.
    public struct Outcome: Sendable, Equatable {
        public let counter: Int64
        public let expiresAt: Timestamp
    }

    /// Issues a code, and makes an earlier one void. The answer is nil if the phone is not active or
    /// has no PIN.
    public static func issue(_ new: NewUnlockCode, as operation: Operation) -> Query<Outcome?> {
        let (device, own, now) = (SQLValue.id(new.device), SQLValue.id(operation), SQLValue.timestamp(new.at))
        let writes =
            [
                Locks.hold(user: .id(new.user)),
                dropEarlier(device: device, operation: own),
                setCode(until: .timestamp(new.secret.expiresAt), device: device, user: .id(new.user), operation: own),
                audit(
                    operation: own, now: now, event: .text(issued), author: .word(ChangeAuthor.operator),
                    device: device),
                insertSecret(
                    sealed: .blob(new.secret.sealed.bytes), key: .text(new.secret.sealed.key),
                    until: .timestamp(new.secret.expiresAt), device: device, operation: own),
            ]
            + AccountEventRows.steps(
                .unlockIssued, user: new.user, device: new.device, after: issued, at: new.at, as: operation)
        let rows: [SignedRows] =
            [.user(new.user).lenient, .device(new.device).signed]
            + AccountEventRows.rows(.unlockIssued, as: operation)
        let change = Change(
            "unlock code", operation, rows: rows, writes, reads: [issuedCode(device: device, operation: own)])
        return Query(change: change) { rows throws(StoreFailure) in
            guard rows.happened, let row = rows[1].first else { return nil }
            return Outcome(counter: try row.integer("unlock_counter"), expiresAt: try row.timestamp("unlock_until"))
        }
    }

    /// Makes the open code of a phone void. The answer is false if there is none.
    public static func withdraw(
        _ device: DeviceID, of user: UserID, at now: Timestamp, as operation: Operation
    ) -> Query<Bool> {
        let (id, own) = (SQLValue.id(device), SQLValue.id(operation))
        let change = Change(
            "unlock code", operation, rows: [.user(user).lenient, .device(device).lenient],
            [
                Locks.hold(user: .id(user)), dropEarlier(device: id, operation: own),
                endCode(device: id, user: .id(user), operation: own),
                audit(
                    operation: own, now: .timestamp(now), event: .text("unlock.withdrawn"),
                    author: .word(ChangeAuthor.operator), device: id),
            ])
        return Query(change: change) { rows in rows.happened }
    }

    static let issued = "unlock.issued"

    /// Deletes the secret of the code before, which must happen before the phone's row names
    /// another one. A repetition keeps its own.
    private static let dropEarlier = Statement(
        """
        DELETE FROM operation_secret WHERE operation <> :operation AND NOT \(Guards.audited)
        AND operation = (SELECT d.unlock_operation FROM device d WHERE d.id = :device)
        """)

    private static let setCode = Statement(
        """
        UPDATE device SET unlock_operation = :operation, unlock_counter = unlock_counter + 1, unlock_until = :until,
        unlock_failures = 0, operation = :operation
        WHERE id = :device AND user_id = :user AND state = 'active' AND pin_key IS NOT NULL AND NOT \(Guards.audited)
        """)

    private static let endCode = Statement(
        """
        UPDATE device SET unlock_operation = NULL, unlock_until = NULL, unlock_failures = 0, operation = :operation
        WHERE id = :device AND user_id = :user AND unlock_operation IS NOT NULL AND NOT \(Guards.audited)
        """)

    private static let audit = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, website_id, user_id, device_id, outcome)
        SELECT :operation, :now, :event, u.website_id, u.id, d.id, :author
        FROM device d JOIN user u ON u.id = d.user_id WHERE d.id = :device AND d.operation = :operation
        \(Audit.once)
        """)

    private static let insertSecret = Statement(
        """
        INSERT INTO operation_secret (operation, sealed, sealed_by, expires_at)
        SELECT d.unlock_operation, :sealed, :key, :until FROM device d
        WHERE d.id = :device AND d.unlock_operation = :operation AND d.operation = :operation
        /*M! ON DUPLICATE KEY UPDATE operation = operation_secret.operation */ /*S! ON CONFLICT DO NOTHING */
        """)

    private static let issuedCode = Statement(
        """
        SELECT d.unlock_counter, d.unlock_until FROM device d
        WHERE d.id = :device AND d.unlock_operation = :operation
        """)
}

extension Store: UnlockCodeStore {
    public func unlockSecret(of operation: OperationID) async throws(StoreFailure) -> [UInt8]? {
        let script = Script("pin", reads: [OperationSecrets.read(operation)])
        return try await run(Query(script: script) { rows throws(StoreFailure) in try rows[0].operationSecret })
    }

    public func countWrong(
        _ wrong: WrongUnlockCode, as operation: Operation
    ) async throws(StoreFailure) -> CountedPIN? {
        let (phone, now, own) = (wrong.phone, SQLValue.timestamp(wrong.at), SQLValue.id(operation))
        let change = Change(
            "wrong unlock code", operation, rows: [.user(phone.user).lenient, .device(phone.id).lenient],
            [
                Locks.hold(user: .id(phone.user)),
                countWrongCode(
                    device: .id(phone.id), key: .blob(phone.key), code: .id(wrong.issued.operation), operation: own),
                auditWrongCode(operation: own, now: now, device: .id(phone.id)),
            ],
            reads: [
                PINRows.ofPhone(phone), voidNow(operation: own, now: now),
            ], reporting: 1)
        return try await run(
            Query(change: change) { rows throws(StoreFailure) in
                guard let row = rows[1].first else { return nil }
                return CountedPIN(
                    pin: try PINRows.read(row), isNew: try rows.isOwn(at: wrong.at), isLocking: !rows[2].isEmpty)
            })
    }
}

/// Counts a wrong code, unless it is void, was replaced, or was counted.
private let countWrongCode = Statement(
    """
    UPDATE device SET unlock_failures = unlock_failures + 1, operation = :operation
    WHERE id = :device AND thumbprint = :key AND state = 'active' AND unlock_operation = :code
    AND unlock_failures < \(UnlockCode.tries) AND NOT \(Guards.audited)
    """)

private let auditWrongCode = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, website_id, user_id, device_id, outcome)
    SELECT :operation, :now,
    CASE WHEN d.unlock_failures >= \(UnlockCode.tries) THEN 'unlock.locked' ELSE 'unlock.wrong' END,
    u.website_id, u.id, d.id, d.unlock_failures
    FROM device d JOIN user u ON u.id = d.user_id WHERE d.id = :device AND d.operation = :operation
    \(Audit.once)
    """)

private let voidNow = Statement(
    "SELECT 1 FROM audit WHERE operation = :operation AND at = :now AND event = 'unlock.locked'")
