import Domain
import Relay
import World

/// The changes of a restored store that concern no single user.
public enum RestoredStore {
    /// Deletes what relays held when the copy was made. None of them is alive, and the rows would
    /// look like those of relays that are.
    public static let relaysDropped = Query(
        script: Script("restore", writes: [dropRelays(), freeEntries(), freeTasks()])
    ) { _ in () }

    private static let dropRelays = Statement("DELETE FROM relay")
    private static let freeEntries = Statement(
        "UPDATE outbox SET holder = NULL, lease = NULL WHERE holder IS NOT NULL")
    private static let freeTasks = Statement("UPDATE task_lease SET holder = NULL")

    /// Reads the relays that have a heartbeat.
    public static let relays = Query(script: Script("restore", reads: [relayIDs()])) { rows throws(StoreFailure) in
        var relays: [RelayID] = []
        for row in rows[0] { relays.append(try row.id("id")) }
        return relays
    }

    private static let relayIDs = Statement("SELECT id FROM relay")

    /// Deletes some of the kept answers and operation secrets, and all keys of nonces. Returns
    /// whether some are left.
    public static let answersDropped = Query(
        script: Script(
            "restore", writes: [dropAnswers(), dropSecrets(), dropRollingKeys()], reads: [countLeft()])
    ) { rows throws(StoreFailure) in try rows[0].first?.integer("left_count") ?? 0 > 0 }

    private static let some = 5000
    private static let dropAnswers = Statement(
        """
        DELETE FROM idempotency
        /*M! LIMIT \(some) */ /*S! WHERE rowid IN (SELECT rowid FROM idempotency LIMIT \(some)) */
        """)
    private static let dropSecrets = Statement(
        """
        DELETE FROM operation_secret
        /*M! LIMIT \(some) */ /*S! WHERE rowid IN (SELECT rowid FROM operation_secret LIMIT \(some)) */
        """)
    private static let dropRollingKeys = Statement("DELETE FROM rolling_key")
    private static let countLeft = Statement(
        """
        SELECT (SELECT count(*) FROM (SELECT 1 AS one FROM idempotency LIMIT 1) i)
        + (SELECT count(*) FROM (SELECT 1 AS one FROM operation_secret LIMIT 1) s) AS left_count
        """)

    /// Returns which of these operations the audit has.
    ///
    /// - Parameter operations: at most `mostOperations`.
    public static func known(_ operations: [[UInt8]]) -> Query<Set<[UInt8]>> {
        let read = knownOperations.bound([:], lists: ["operation": operations.map { .blob($0) }])
        return Query(script: Script("restore", reads: [read])) { rows throws(StoreFailure) in
            var known: Set<[UInt8]> = []
            for row in rows[0] { known.insert(try row.blob("operation")) }
            return known
        }
    }

    public static let mostOperations = 100
    private static let knownOperations = Statement(
        """
        SELECT operation FROM audit
        WHERE operation IN (\((1...mostOperations).map { ":operation\($0)" }.joined(separator: ", ")))
        """)
}

/// Losses of rights that an export of the audit names, and that no other command makes by itself.
public enum ReplayedLosses {
    /// The parts of the users and phones that can be locked.
    public enum Lock: Sendable {
        case codes(UserID)
        case directory(UserID)
        case pin(DeviceID)
        case puk(DeviceID)
    }

    /// Locks codes, a PIN or a user who left the directory.
    public static func lock(_ lock: Lock, at now: Timestamp) -> Query<Void> {
        let write =
            switch lock {
            case .codes(let user): lockCodes(now: .timestamp(now), user: .id(user))
            case .directory(let user): disable(user: .id(user))
            case .pin(let device): lockPIN(device: .id(device))
            case .puk(let device): lockPUK(device: .id(device))
            }
        let row =
            switch lock {
            case .codes(let user), .directory(let user): SignedRows.user(user)
            case .pin(let device), .puk(let device): SignedRows.device(device)
            }
        return Query(script: Script("restore", rows: [row.lenient], writes: [write])) { _ in () }
    }

    /// Returns the website of a user; nil if there is no such user.
    public static func website(of user: UserID) -> Query<WebsiteID?> {
        Query(script: Script("restore", reads: [websiteOfUser(user: .id(user))])) { rows throws(StoreFailure) in
            try rows[0].first?.id("website_id")
        }
    }

    private static let websiteOfUser = Statement("SELECT website_id FROM user WHERE id = :user")

    private static let lockCodes = Statement(
        "UPDATE user SET codes_locked_at = :now WHERE id = :user AND codes_locked_at IS NULL")
    /// The user returns locked, because no relay noted the state before.
    private static let disable = Statement(
        "UPDATE user SET state = 'disabled' WHERE id = :user AND directory IS NOT NULL AND state <> 'disabled'")
    private static let lockPIN = Statement(
        "UPDATE device SET pin_failures = \(PhonePIN.tries) WHERE id = :device AND pin_failures < \(PhonePIN.tries)")
    private static let lockPUK = Statement(
        """
        UPDATE device SET puk_failures = \(PhonePIN.pukTries)
        WHERE id = :device AND puk_failures < \(PhonePIN.pukTries)
        """)
}
