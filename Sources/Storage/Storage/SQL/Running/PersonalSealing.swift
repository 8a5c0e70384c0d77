import Crypto
import Domain
import Relay
import World

extension Store: PersonalSealingStore {
    public func sealSomePersonalValues(
        by relay: RelayID, at now: Timestamp
    ) async throws(StoreFailure) -> PersonalSealingRun? {
        guard let personal = personalSealer else { return nil }
        return try await sealSome(with: personal, by: relay, at: now)
    }

    /// The number of batches without a change that are read before the position is written. A commit
    /// for each batch would cost more than the reading.
    private static let batchesOfCommit = 20

    func sealSome(
        with personal: PersonalSealer, by relay: RelayID, at now: Timestamp
    ) async throws(StoreFailure) -> PersonalSealingRun? {
        let (last, isHeldByOther) = try await run(PersonalSealingRuns.position(for: relay))
        guard !isHeldByOther, let position = PersonalSealingRuns.next(after: last, with: personal, at: now) else {
            return nil
        }
        var (new, batch) = (position, PersonalBatch())
        for _ in 0..<Self.batchesOfCommit where batch.changed == 0 && new.run.endedAt == nil {
            batch = try await run(PersonalRows.next(of: new.place, after: new.mark, personal, rowAuthenticator))
            if new.place == .user, !batch.changes.isEmpty { batch = try await run(PersonalRows.withoutTaken(batch)) }
            new = new.advanced(by: batch, at: now)
        }
        // A run has not ended before its old values have left the files.
        if new.run.endedAt != nil, new.run.changed > 0 { try await emptyLog() }
        let (changes, words) = (batch.changes, batch.words)
        let isHeld = try await run(
            Query(
                script: Script(
                    "personal", rows: changes.map(\.row),
                    writes: [PersonalSealingRuns.insertTask(), PersonalSealingRuns.leaseTask(relay: .id(relay))]
                        + changes.flatMap { $0.statements(relay) } + words.map { $0.statement(relay) }
                        + new.written(over: last?.run.keyID ?? "", by: relay),
                    reads: [PersonalSealingRuns.holdsTask(relay: .id(relay))])
            ) { rows in rows.first?.isEmpty == false })
        return isHeld ? new.run : nil
    }

    public func checkPersonalValuesAgain() async throws(StoreFailure) {
        // The script has no operation, because a repetition has the same result.
        try await run(Query(script: Script("personal", writes: [PersonalSealingRuns.giveUp()])) { _ in () })
    }
}

/// The run in progress, and the place that it has come to.
struct PersonalSealingPosition: Sendable, Equatable {
    /// The tables that a run reads, in this order.
    enum Place: String, Sendable, CaseIterable {
        case user, factor, activation, recovery, outbox, device, challenge
        case auditDetail = "audit_detail"

        /// The table after this one; nil after the last.
        var next: Place? {
            let all = Self.allCases
            guard let index = all.firstIndex(of: self) else { return nil }
            return all.dropFirst(index + 1).first
        }
    }

    var run: PersonalSealingRun
    var place: Place
    /// The key of the last row that was read there.
    var mark: [UInt8]

    fileprivate func advanced(by batch: PersonalBatch, at now: Timestamp) -> PersonalSealingPosition {
        var next = self
        next.mark = batch.last ?? mark
        var ended: Timestamp?
        if batch.last == nil {
            next.mark = PersonalSealingRuns.start
            // A run that has ended has the first place again, which programs of every version know.
            if place.next == nil { ended = now }
            next.place = place.next ?? .user
        }
        next.run = PersonalSealingRun(
            seals: run.seals, keyID: run.keyID, checked: run.checked + Int64(batch.checked),
            changed: run.changed + Int64(batch.changed), stuck: run.stuck + Int64(batch.stuck),
            startedAt: run.startedAt, endedAt: ended)
        return next
    }

    /// Writes the position, unless somebody has given up the run that was read before.
    ///
    /// - Parameter key: the key of that run.
    fileprivate func written(over key: String, by relay: RelayID) -> [BoundStatement] {
        [
            PersonalSealingRuns.insertRun(now: .timestamp(run.startedAt), mark: .blob(mark)),
            PersonalSealingRuns.writeRun(
                seal: .text(run.seals ? "personal" : "secrets"), key: .text(run.keyID), place: .word(place),
                mark: .blob(mark), checked: .integer(run.checked), changed: .integer(run.changed),
                stuck: .integer(run.stuck), startedAt: .timestamp(run.startedAt), endedAt: .timestamp(run.endedAt),
                relay: .id(relay), before: .text(key)),
        ]
    }
}

/// The row that says how far the newest run over all personal values has come.
public enum PersonalSealingRuns {
    /// The newest run; nil if there was none.
    public static let last = Query(script: Script("personal", reads: [readRun()])) {
        rows throws(StoreFailure) -> PersonalSealingRun? in try rows[0].first.map(run)
    }

    /// Reads the position, and whether another relay rewrites the values.
    static func position(for relay: RelayID) -> Query<(PersonalSealingPosition?, Bool)> {
        Query(script: Script("personal", reads: [readRun(), heldByOther(relay: .id(relay))])) {
            rows throws(StoreFailure) -> (PersonalSealingPosition?, Bool) in
            let position = try rows[0].first.map { row throws(StoreFailure) in
                PersonalSealingPosition(run: try run(row), place: try row.word("place"), mark: try row.blob("mark"))
            }
            return (position, !rows[1].isEmpty)
        }
    }

    /// The key before all others.
    static let start = [UInt8](repeating: 0, count: 16)

    /// The time between two runs that nothing has caused. They find what relays with another
    /// setting have written.
    private static let pause = Duration.seconds(86_400)
    /// The time between a run that has changed rows and the next one. A script that was under way
    /// when the setting changed may have written behind the run.
    private static let pauseAfterChange = Duration.seconds(60)

    /// Returns where to go on; nil if nothing is to be done. A run that was begun for another
    /// setting or another key is given up.
    ///
    /// In the clear, nothing is sealed but texts that look sealed, so a store that never had another
    /// setting is read only when its master key changes. After a run that found nothing to open, it
    /// is not read again.
    static func next(
        after last: PersonalSealingPosition?, with personal: PersonalSealer, at now: Timestamp
    ) -> PersonalSealingPosition? {
        if last == nil, !personal.seals, personal.sealer.oldKeyIDs.isEmpty { return nil }
        if let last, last.run.seals == personal.seals, last.run.keyID == personal.sealer.currentID {
            guard let ended = last.run.endedAt else { return last }
            let hasChanged = last.run.changed > 0
            if ended <= now, now < ended + (hasChanged ? pauseAfterChange : pause) { return nil }
            if !personal.seals, !hasChanged { return nil }
        }
        let run = PersonalSealingRun(
            seals: personal.seals, keyID: personal.sealer.currentID, checked: 0, changed: 0, stuck: 0, startedAt: now,
            endedAt: nil)
        return PersonalSealingPosition(run: run, place: .user, mark: start)
    }

    private static func run(_ row: Row) throws(StoreFailure) -> PersonalSealingRun {
        PersonalSealingRun(
            seals: try row.text("seal") == "personal", keyID: try row.text("key_id"),
            checked: try row.integer("checked"), changed: try row.integer("changed"),
            stuck: try row.integer("stuck"), startedAt: try row.timestamp("started_at"),
            endedAt: try row.optionalTimestamp("ended_at"))
    }

    private static let readRun = Statement(
        """
        SELECT seal, key_id, place, mark, checked, changed, stuck, started_at, ended_at FROM personal_sealing
        WHERE id = 1
        """)

    static let insertRun = Statement(
        """
        INSERT INTO personal_sealing (id, seal, key_id, place, mark, checked, changed, stuck, started_at)
        VALUES (1, '', '', 'user', :mark, 0, 0, 0, :now)
        /*M! ON DUPLICATE KEY UPDATE id = personal_sealing.id */ /*S! ON CONFLICT DO NOTHING */
        """)

    static let writeRun = Statement(
        """
        UPDATE personal_sealing SET seal = :seal, key_id = :key, place = :place, mark = :mark, checked = :checked,
        changed = :changed, stuck = :stuck, started_at = :startedAt, ended_at = :endedAt WHERE id = 1 AND key_id = :before AND \(isHeld)
        """)

    /// Gives up the last run, so that the relay that holds the lease begins another one.
    static let giveUp = Statement("UPDATE personal_sealing SET key_id = '' WHERE id = 1")

    static let insertTask = Statement(
        """
        INSERT INTO task_lease (name, holder) VALUES ('personal', NULL)
        /*M! ON DUPLICATE KEY UPDATE name = task_lease.name */ /*S! ON CONFLICT DO NOTHING */
        """)

    static let leaseTask = Statement(
        """
        UPDATE task_lease SET holder = :relay WHERE name = 'personal' AND
        (holder IS NULL OR holder = :relay OR NOT EXISTS (SELECT 1 FROM relay r WHERE r.id = task_lease.holder))
        """)

    private static let heldByOther = Statement(
        """
        SELECT 1 FROM task_lease t JOIN relay r ON r.id = t.holder WHERE t.name = 'personal' AND t.holder <> :relay
        """)

    static let holdsTask = Statement("SELECT 1 FROM task_lease WHERE name = 'personal' AND holder = :relay")

    /// The condition that the relay holds the lease of the task.
    static let isHeld = "EXISTS (SELECT 1 FROM task_lease WHERE name = 'personal' AND holder = :relay)"
}
