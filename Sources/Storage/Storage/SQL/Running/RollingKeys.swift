import Domain
import Relay
import World

extension Store: RollingKeyStore {
    public func rollingKeys(_ kind: RollingKeyKind) async throws(StoreFailure) -> [SealedRollingKey] {
        try await run(RollingKeyRows.read(kind))
    }

    public func roll(_ roll: KeyRoll, as operation: Operation) async throws(StoreFailure) -> KeyRollOutcome {
        try await run(RollingKeyRows.roll(roll, as: operation))
    }

    /// A repetition changes nothing.
    public func reseal(_ new: SealedRollingKey, from old: [UInt8]) async throws(StoreFailure) {
        try await run(RollingKeyRows.reseal(new, from: old))
    }
}

/// The rows of keys that the relays make by themselves.
public enum RollingKeyRows {
    public static func read(_ kind: RollingKeyKind) -> Query<[SealedRollingKey]> {
        Query(script: Script("rolling keys", reads: [keysOfKind(kind: .word(kind))])) { rows throws(StoreFailure) in
            try keys(rows[0])
        }
    }

    /// Inserts a key, unless another one has its number or a higher one. The audit row exists only
    /// if the key was inserted, and everything after it depends on it.
    public static func roll(_ roll: KeyRoll, as operation: Operation) -> Query<KeyRollOutcome> {
        let era = roll.new.era
        let (kind, number): (SQLValue, SQLValue) = (.word(era.kind), .integer(era.number))
        let insert = insertKey(
            kind: kind, number: number, sealed: .blob(roll.new.sealed), key: .text(roll.new.sealedBy),
            made: .timestamp(era.madeAt), starts: .timestamp(era.startsAt), ends: .timestamp(era.endsAt))
        let audit = auditKey(
            operation: .id(operation), now: .timestamp(era.madeAt), author: .word(roll.author),
            note: .text("\(era.kind.rawValue) \(era.number)"), kind: kind, number: number,
            sealed: .blob(roll.new.sealed))
        let delete =
            roll.replacesAll
            ? deleteOthers(kind: kind, number: number, operation: .id(operation))
            : deleteOldest(kind: kind, oldest: .integer(era.number - Self.most), operation: .id(operation))
        let writes =
            roll.useless.map {
                deleteUseless(kind: kind, number: .integer($0.era.number), sealed: .blob($0.sealed))
            } + [insert, audit, delete]
        return Query(change: Change("rolling keys", operation, writes, reads: [keysOfKind(kind: kind)])) {
            rows throws(StoreFailure) in
            KeyRollOutcome(isDone: rows.happened, keys: try keys(rows[1]))
        }
    }

    /// The number of keys of one kind that stay. A key is accepted for two periods, so the others
    /// have ended, even if a relay with a wrong clock makes a second key in each period.
    private static let most: Int64 = 8

    static func reseal(_ new: SealedRollingKey, from old: [UInt8]) -> Query<Void> {
        let write = resealKey(
            new: .blob(new.sealed), key: .text(new.sealedBy), kind: .word(new.era.kind),
            number: .integer(new.era.number), old: .blob(old))
        return Query(script: Script("reseal", writes: [write])) { _ in () }
    }

    private static func keys(_ rows: Rows) throws(StoreFailure) -> [SealedRollingKey] {
        var keys: [SealedRollingKey] = []
        for row in rows {
            let era = KeyEra(
                kind: try row.word("kind"), number: try row.integer("number"), madeAt: try row.timestamp("made_at"),
                startsAt: try row.timestamp("starts_at"), endsAt: try row.timestamp("ends_at"))
            keys.append(
                SealedRollingKey(era: era, sealed: try row.blob("sealed"), sealedBy: try row.text("sealed_by")))
        }
        return keys
    }

    private static let keysOfKind = Statement(
        """
        SELECT kind, number, made_at, starts_at, ends_at, sealed, sealed_by FROM rolling_key
        WHERE kind = :kind ORDER BY number
        """)

    private static let insertKey = Statement(
        """
        INSERT INTO rolling_key (kind, number, sealed, sealed_by, made_at, starts_at, ends_at)
        SELECT :kind, :number, :sealed, :key, :made, :starts, :ends /*M! FROM DUAL */
        WHERE NOT EXISTS (SELECT 1 FROM rolling_key k WHERE k.kind = :kind AND k.number >= :number)
        /*M! ON DUPLICATE KEY UPDATE kind = rolling_key.kind */ /*S! ON CONFLICT DO NOTHING */
        """)

    private static let auditKey = Statement.audit(
        """
        INSERT INTO audit (operation, at, event, outcome)
        SELECT :operation, :now, 'key.rolled', :author FROM rolling_key k
        WHERE k.kind = :kind AND k.number = :number AND k.sealed = :sealed
        \(Audit.once)
        """)

    private static let isDone = "EXISTS (SELECT 1 FROM audit a WHERE a.operation = :operation)"

    /// Deletes by number and not by time. A relay whose clock is ahead would delete keys that others
    /// use.
    private static let deleteOldest = Statement(
        "DELETE FROM rolling_key WHERE kind = :kind AND number <= :oldest AND \(isDone)")

    private static let deleteOthers = Statement(
        "DELETE FROM rolling_key WHERE kind = :kind AND number <> :number AND \(isDone)")

    private static let deleteUseless = Statement(
        "DELETE FROM rolling_key WHERE kind = :kind AND number = :number AND sealed = :sealed")

    private static let resealKey = Statement(
        """
        UPDATE rolling_key SET sealed = :new, sealed_by = :key
        WHERE kind = :kind AND number = :number AND sealed = :old
        """)
}

extension KeyUse {
    /// The number of rolling keys by the id of the sealing key.
    public static let rolling = counted(rollingByKey)

    private static let rollingByKey = Statement(
        "SELECT sealed_by, count(*) AS sealed_count FROM rolling_key GROUP BY sealed_by")
}
