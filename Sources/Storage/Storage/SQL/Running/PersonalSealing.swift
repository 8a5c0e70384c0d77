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

    func sealSome(
        with personal: PersonalSealer, by relay: RelayID, at now: Timestamp
    ) async throws(StoreFailure) -> PersonalSealingRun? {
        let last = try await run(PersonalSealingRuns.position)
        guard let position = PersonalSealingRuns.next(after: last, with: personal, at: now) else { return nil }
        let batch: PersonalBatch
        switch position.place {
        case .user:
            let ids = try await run(PersonalRows.users(after: position.mark))
            batch = try await run(PersonalRows.addresses(after: position.mark, ids, personal))
        case .device: batch = try await run(PersonalRows.pushTokens(after: position.mark, personal))
        case .challenge: batch = try await run(PersonalRows.contexts(after: position.mark, personal))
        }
        let new = position.advanced(by: batch, at: now)
        let isHeld = try await run(
            Query(
                script: Script(
                    "personal", rows: batch.changes.map(\.row),
                    writes: [PersonalSealingRuns.insertTask(), PersonalSealingRuns.leaseTask(relay: .id(relay))]
                        + batch.changes.map { $0.statement(relay) } + new.written(by: relay),
                    reads: [PersonalSealingRuns.holdsTask(relay: .id(relay))])
            ) { rows in rows.first?.isEmpty == false })
        return isHeld ? new.run : nil
    }
}

/// The run in progress, and the place that it has come to.
struct PersonalSealingPosition: Sendable, Equatable {
    /// The tables that a run reads, in this order. The addresses of factors, activation codes,
    /// recoveries and outbox entries are rewritten with those of their user.
    enum Place: String, Sendable, CaseIterable {
        case user, device, challenge
    }

    var run: PersonalSealingRun
    var place: Place
    /// The id of the last row that was read there.
    var mark: [UInt8]

    fileprivate func advanced(by batch: PersonalBatch, at now: Timestamp) -> PersonalSealingPosition {
        var next = self
        next.mark = batch.last ?? mark
        var ended: Timestamp?
        if batch.last == nil {
            next.mark = PersonalSealingRuns.start
            switch place {
            case .user: next.place = .device
            case .device: next.place = .challenge
            case .challenge: ended = now
            }
        }
        next.run = PersonalSealingRun(
            seals: run.seals, keyID: run.keyID, checked: run.checked + Int64(batch.checked),
            changed: run.changed + Int64(batch.changes.count), stuck: run.stuck + Int64(batch.stuck),
            startedAt: run.startedAt, endedAt: ended)
        return next
    }

    fileprivate func written(by relay: RelayID) -> [BoundStatement] {
        [
            PersonalSealingRuns.insertRun(now: .timestamp(run.startedAt), mark: .blob(mark)),
            PersonalSealingRuns.writeRun(
                seal: .text(run.seals ? "personal" : "secrets"), key: .text(run.keyID), place: .word(place),
                mark: .blob(mark), checked: .integer(run.checked), changed: .integer(run.changed),
                stuck: .integer(run.stuck), startedAt: .timestamp(run.startedAt), endedAt: .timestamp(run.endedAt),
                relay: .id(relay)),
        ]
    }
}

/// The row that says how far the newest run over all personal values has come.
public enum PersonalSealingRuns {
    /// The newest run; nil if there was none.
    public static let last = Query(script: Script("personal", reads: [readRun()])) {
        rows throws(StoreFailure) -> PersonalSealingRun? in try rows[0].first.map(run)
    }

    static let position = Query(script: Script("personal", reads: [readRun()])) {
        rows throws(StoreFailure) -> PersonalSealingPosition? in
        try rows[0].first.map { row throws(StoreFailure) in
            PersonalSealingPosition(run: try run(row), place: try row.word("place"), mark: try row.blob("mark"))
        }
    }

    /// The id before all others.
    static let start = [UInt8](repeating: 0, count: 16)

    /// The time between two runs that nothing has caused. They find what relays with another
    /// setting have written.
    private static let pause = Duration.seconds(86_400)

    /// Returns where to go on; nil if the last run has ended and was of the same kind. A run that
    /// was begun for another setting or another key is given up.
    static func next(
        after last: PersonalSealingPosition?, with personal: PersonalSealer, at now: Timestamp
    ) -> PersonalSealingPosition? {
        if let last, last.run.seals == personal.seals, last.run.keyID == personal.sealer.currentID {
            guard let ended = last.run.endedAt else { return last }
            if ended <= now, now < ended + pause { return nil }
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
        changed = :changed, stuck = :stuck, started_at = :startedAt, ended_at = :endedAt WHERE id = 1 AND \(isHeld)
        """)

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

    static let holdsTask = Statement("SELECT 1 FROM task_lease WHERE name = 'personal' AND holder = :relay")

    /// The condition that the relay holds the lease of the task.
    static let isHeld = "EXISTS (SELECT 1 FROM task_lease WHERE name = 'personal' AND holder = :relay)"
}
