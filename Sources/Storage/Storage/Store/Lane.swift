import EventLoop
import Glibc
import Log
import Relay
import Synchronization
import World

/// A queue of scripts in front of one database session.
///
/// Purpose: many requests share the cost of one commit. While a transaction runs on the worker's
/// thread, scripts gather in the queue. The next transaction takes scripts from each tenant in turn
/// (`FairQueue`), up to `Limits.batch` and the `BatchBudget`.
///
/// Invariants: a lane runs one transaction at a time. Each submission is answered once. If a COMMIT
/// may have been executed, `Transaction` looks up the script's operation in the audit before it
/// runs the writes again. So an operation takes effect once.
///
/// Failures:
/// - A statement fails. The scripts of the batch run again, each alone, and only the wrong script
///   gets the error.
/// - The transaction conflicts with another writer. Its scripts run again, each alone, and after
///   several conflicts only after a random pause.
/// - The connection is lost. The scripts run again on a new connection. If no host accepts a
///   connection for `Limits.timeout`, the lane refuses all waiting scripts.
/// - The database cannot write (a full disk). The lane refuses the batch.
/// - The queue is full. The lane refuses the new script at once.
///
/// `LaneTests.swift`, `FairLaneTests.swift`, `ConflictTests.swift`, `UnknownCommitTests.swift`,
/// `OutageTests.swift` and `FullDiskTests.swift` test it.
final class Lane: Sendable {
    struct Limits: Sendable {
        /// The maximum number of scripts in one transaction.
        var batch = 128
        /// The maximum number of waiting scripts. The lane refuses further ones, so that memory
        /// does not grow while the database hangs. A tenant may have as many scripts waiting as
        /// there are free places; a single tenant can therefore fill half of the queue.
        var waiting = 20_000
        /// The time without any connection after which the lane refuses scripts instead of
        /// retrying.
        var timeout = Duration.seconds(2)
        /// The number of consecutive conflicts that the lane reports as a fault. Fewer are normal
        /// if several relays write.
        var conflicts = 10
        /// Whether scripts may run in their short forms. Tests turn it off to compare both.
        var usesShortForms = true
    }

    /// A submission with the results of its earlier attempts.
    struct Entry: Sendable {
        let submission: Submission
        /// The guarded form, if it must run in place of the short one. It is in a box because entries
        /// are copied often.
        private var guarded: Guarded?
        /// Whether the script may have been committed already.
        var isRetry: Bool
        /// Whether the answer to a COMMIT with this entry was lost.
        var wasLost = false
        /// Whether the entry runs in a transaction without other scripts, because it failed
        /// together with others.
        var alone = false
        /// Whether the lane has looked up, after a statement failed, if the script was committed.
        var isLookedUp = false
        var failures = 0
        /// Whether the script's short form has declined.
        var hasDeclined = false

        init(_ submission: Submission) {
            self.submission = submission
            isRetry = submission.script.mayHaveRun
        }

        /// Whether nothing speaks against the short form, if the script has one.
        private var mayBeShort: Bool { !hasDeclined && !isRetry && !alone && failures == 0 }

        /// Chooses the form in which the script runs.
        ///
        /// - Parameter mayBeShort: whether the short form may run at all.
        mutating func chooseForm(mayBeShort: Bool) throws(StoreFailure) {
            guard guarded == nil, submission.script.short != nil, !mayBeShort || !self.mayBeShort else { return }
            guarded = Guarded(try submission.script.guarded)
        }

        /// The script in the form that runs next.
        var script: Script { guarded?.script ?? submission.script }

        private final class Guarded: Sendable {
            let script: Script

            init(_ script: Script) { self.script = script }
        }

        var tenant: Tenant { submission.tenant }
        var statements: Int {
            if let short = script.short { return short.rows.count + short.reads.count + Self.shortWrites }
            return script.writes.count + script.reads.count + script.rows.count
        }
        /// The writes of a short form, roughly.
        private static let shortWrites = 7
        /// The part of its tenant's turn that this entry uses. An entry that needs a transaction
        /// for itself uses at least a whole turn.
        var cost: Int { alone ? max(statements, Lane.turn) : statements }
    }

    /// The number of statements in a tenant's turn: about the size of a login.
    private static let turn = 16

    private struct Queue {
        var entries = FairQueue<Tenant, Entry>(turn: Lane.turn)
        var budget = BatchBudget()
        var isRunning = false
        var isClosed = false
    }

    /// The reason why the last transaction failed.
    private struct TransactionFailure {
        let message: String
        /// Whether the fault ends only with a transaction that writes. If the disk is full,
        /// transactions that change nothing still succeed.
        let isOverWithAWrite: Bool
    }

    /// The state of the lane, as its latest transactions show it.
    private struct LaneHealth {
        var fault: TransactionFailure?
        var conflicts = 0
        /// The time since which no host accepts a connection; nil if the last attempt to begin a
        /// transaction succeeded.
        var awaySince: Instant?
        var place: SessionHost?
    }

    private let purpose: Purpose
    private let limits: Limits
    private let time: any TimeSource
    private let randomness: any Randomness
    private let worker: any Worker
    private let session: Mutex<any Session>
    private let queue = Mutex(Queue())
    private let course: Mutex<LaneHealth>
    private let conflictCount = Atomic<UInt64>(0)
    private let keys: RowKeys
    /// The chain of the audit rows that this lane writes; nil if it only reads.
    let chain: AuditChain?
    private let log: Log

    init(
        _ purpose: Purpose, session: sending any Session, worker: any Worker, time: any TimeSource,
        randomness: any Randomness, limits: Limits, keys: RowKeys, chain: AuditChain?, log: Log
    ) {
        self.keys = keys
        self.chain = chain
        self.log = log
        self.purpose = purpose
        self.randomness = randomness
        let place = session.place
        course = Mutex(LaneHealth(place: place))
        if let place { log.info("store.connected", [.host: place.host]) }
        self.session = Mutex(session)
        self.worker = worker
        self.time = time
        self.limits = limits
    }

    /// The message of the current fault; nil if the lane works.
    var fault: String? { course.withLock { $0.fault?.message } }

    /// The host of the current or last connection; nil if the database is a file.
    var host: String? { course.withLock { $0.place?.host } }

    /// The number of transactions that the lane ran again after a conflict or a lock timeout.
    var conflicts: UInt64 { conflictCount.load(ordering: .relaxed) }

    /// Adds a submission to the queue. Any thread may call it. If the lane refuses the submission,
    /// it answers at once.
    func submit(_ submission: Submission) {
        let now = time.instant()
        let refusal: StoreFailure? = queue.withLock { queue in
            if queue.isClosed { return .unavailable("the store is closed") }
            guard queue.entries.hasRoom(for: submission.tenant, capacity: limits.waiting) else {
                return .unavailable("too many requests wait for the store")
            }
            let entry = Entry(submission)
            queue.entries.append(entry, of: entry.tenant, cost: entry.cost)
            queue.budget.came(entry.tenant, at: now)
            guard !queue.isRunning else { return nil }
            queue.isRunning = true
            worker.post { self.turn() }
            return nil
        }
        if let refusal { submission.answer(.failure(refusal)) }
    }

    /// Answers all waiting scripts with a failure, lets the running transaction end, then closes
    /// the session. It waits at most two seconds, in case the database hangs.
    func close() {
        let left = queue.withLock { queue in
            queue.isClosed = true
            return queue.entries.popAll()
        }
        deliver(left.map { ($0.submission, .failure(.unavailable("the store is closed"))) })
        worker.post { self.session.withLock { $0.close() } }
        guard let thread = worker as? WorkerThread else { return }
        thread.stop()
        thread.join(within: .seconds(2))
    }

    /// Runs one transaction. The worker's thread calls it.
    private func turn() {
        let batch = take()
        if !batch.isEmpty { run(batch) }
        queue.withLock { queue in
            queue.isRunning = !queue.entries.isEmpty
            if queue.isRunning { worker.post { self.turn() } }
        }
    }

    /// Removes the scripts of the next transaction from the queue. It answers those that are past
    /// their deadline with a failure and leaves out those that are already answered.
    private func take() -> [Entry] {
        let now = time.instant()
        let (batch, late) = queue.withLock { queue in
            let most = queue.budget.limit(at: now)
            var batch: [Entry] = []
            var late: [Entry] = []
            var statements = 0
            while batch.count < limits.batch, let entry = queue.entries.first {
                let isLate = entry.submission.isAnswered || entry.submission.deadline <= now
                if !isLate, !batch.isEmpty {
                    if entry.alone { break }
                    if let most, statements + entry.statements > most { break }
                }
                _ = queue.entries.popFirst()
                if isLate {
                    late.append(entry)
                    continue
                }
                batch.append(entry)
                statements += entry.statements
                if entry.alone { break }
            }
            return (batch, late)
        }
        deliver(late.map { ($0.submission, .failure(Submission.late)) })
        return batch
    }

    private func run(_ batch: [Entry]) {
        // After repeated conflicts, an immediate retry would probably conflict again.
        if batch.contains(where: { $0.failures > Self.patientConflicts }) { pause() }
        let begun = time.instant()
        let authenticator = keys.current
        let batch = inTheirForms(batch, mayBeShort: authenticator != nil && limits.usesShortForms)
        var transaction = Transaction(batch, purpose, authenticator == nil ? nil : chain, keys.personal)
        var hasWritten = false
        var place: SessionHost?
        let outcome: Result<[Transaction.Answer], SessionFailure> = session.withLock { session in
            let before = session.changes
            defer {
                hasWritten = session.changes != before
                place = session.place
            }
            do throws(SessionFailure) {
                return .success(try transaction.run(on: session, rows: authenticator))
            } catch {
                return .failure(error)
            }
        }
        recordResult(place)
        switch outcome {
        case .success(let results):
            noteSuccess(hasWritten: hasWritten)
            let taken = time.instant() - begun
            queue.withLock { $0.budget.took(taken, for: batch.reduce(0) { $0 + $1.statements }) }
            deliver(batch, results)
        case .failure(let failure):
            let isAway = recordResult(failure, hadBegun: transaction.hasBegun)
            guard !isAway else { return refuse(batch, .unavailable(failure.message)) }
            retry(batch, after: failure, hadBegun: transaction.hasBegun)
        }
    }

    /// Chooses the form of each script. A script that cannot be made is answered with the reason.
    private func inTheirForms(_ batch: [Entry], mayBeShort: Bool) -> [Entry] {
        var ready: [Entry] = []
        ready.reserveCapacity(batch.count)
        for var entry in batch {
            do throws(StoreFailure) {
                try entry.chooseForm(mayBeShort: mayBeShort)
                ready.append(entry)
            } catch {
                deliver([(entry.submission, .failure(error))])
            }
        }
        return ready
    }

    /// Delivers the answers of a batch. Scripts whose short form declined run again.
    private func deliver(_ batch: [Entry], _ answers: [Transaction.Answer]) {
        var ended: [(Submission, ScriptResult)] = []
        var declined: [Entry] = []
        for (var entry, answer) in zip(batch, answers) {
            switch answer {
            case .ended(let result): ended.append((entry.submission, result))
            case .declined:
                entry.hasDeclined = true
                declined.append(entry)
            }
        }
        deliver(ended)
        if !declined.isEmpty { requeue(declined, atFront: true) }
    }

    /// Refuses these scripts and all that wait.
    private func refuse(_ batch: [Entry], _ why: StoreFailure) {
        let waiting = queue.withLock { $0.entries.popAll() }
        deliver((batch + waiting).map { ($0.submission, .failure(why)) })
    }

    private static let patientConflicts = 3

    /// Waits 1 to 20 milliseconds. An immediate retry would meet the same transactions again. It
    /// may block, because it runs on the worker's thread, which blocks in the database library
    /// anyway.
    private func pause() { usleep(1000 + UInt32(randomness.number(below: 19_000))) }

    // The lane records its health below, and logs each change of it.

    private func recordResult(_ place: SessionHost?) {
        let isNew = course.withLock { course in
            defer { course.place = place }
            return course.place != place
        }
        if isNew, let place { log.notice("store.connected", [.host: place.host]) }
    }

    /// Returns whether no host has accepted a connection for so long that waiting scripts should be
    /// refused.
    private func recordResult(_ failure: SessionFailure, hadBegun: Bool) -> Bool {
        let now = time.instant()
        let (isNew, isAway) = course.withLock { course -> (Bool, Bool) in
            let before = course.fault
            switch failure {
            case .statement: break
            // A single conflict is not a fault: the lane runs the transaction again.
            case .conflict, .locked:
                conflictCount.wrappingAdd(1, ordering: .relaxed)
                course.conflicts += 1
                guard course.conflicts >= limits.conflicts else { break }
                course.fault = TransactionFailure(message: failure.message, isOverWithAWrite: false)
            case .refused:
                course.fault = TransactionFailure(message: failure.message, isOverWithAWrite: purpose == .writing)
            case .lost: course.fault = TransactionFailure(message: failure.message, isOverWithAWrite: false)
            }
            guard !hadBegun, case .lost = failure else {
                course.awaySince = nil
                return (before == nil && course.fault != nil, false)
            }
            let since = course.awaySince ?? now
            course.awaySince = since
            return (before == nil, now - since >= limits.timeout)
        }
        if isNew { log.warning("store.failing", [.error: failure.message]) }
        return isAway
    }

    private func noteSuccess(hasWritten: Bool) {
        let (isRecovered, host) = course.withLock { course in
            course.conflicts = 0
            course.awaySince = nil
            guard let trouble = course.fault, hasWritten || !trouble.isOverWithAWrite else {
                return (false, course.place?.host)
            }
            course.fault = nil
            return (true, course.place?.host)
        }
        if isRecovered { log.notice("store.recovered", [.host: host]) }
    }

    private func retry(_ batch: [Entry], after failure: SessionFailure, hadBegun: Bool) {
        var batch = batch
        switch failure {
        case .refused(let message):
            return deliver(batch.map { ($0.submission, .failure(.unavailable(message))) })
        case .statement(let message):
            guard batch.count == 1 else {
                for index in batch.indices { batch[index].alone = true }
                break
            }
            let script = batch[0].script
            guard script.operation != nil, !batch[0].isLookedUp else {
                return deliver([(batch[0].submission, .failure(.internal("\(script.name): \(message)")))])
            }
            // Another relay may have committed the same operation after the look-up, or a
            // repetition may have overtaken this script. Its rows then cause the failure, and the
            // next look-up finds the operation.
            batch[0].isRetry = true
            batch[0].isLookedUp = true
        case .locked:
            // Only one script waits for the lock; the others should not wait for it again.
            for index in batch.indices { batch[index].alone = true }
            if batch.count == 1 { return requeue(batch, atFront: false) }
        case .conflict:
            // Only one script caused the conflict; the others should not conflict again because of
            // it.
            for index in batch.indices where hadBegun {
                batch[index].failures += 1
                batch[index].alone = true
            }
        case .lost:
            for index in batch.indices where hadBegun {
                batch[index].failures += 1
                if batch[index].failures > 1 { batch[index].alone = true }
                batch[index].isRetry = true
                batch[index].wasLost = true
            }
        }
        requeue(batch, atFront: true)
    }

    /// Puts entries back, at the front or at the end of their own tenants' queues, so that other
    /// tenants do not wait for failed scripts.
    private func requeue(_ entries: [Entry], atFront: Bool) {
        let isClosed = queue.withLock { queue in
            guard !queue.isClosed else { return true }
            if atFront {
                for entry in entries.reversed() { queue.entries.requeue(entry, of: entry.tenant, cost: entry.cost) }
            } else {
                for entry in entries { queue.entries.append(entry, of: entry.tenant, cost: entry.cost) }
            }
            return false
        }
        if isClosed { deliver(entries.map { ($0.submission, .failure(.unavailable("the store is closed"))) }) }
    }

    /// Delivers the answers, with one post for each waiting loop.
    private func deliver(_ answers: [(Submission, ScriptResult)]) {
        var loops: [(loop: EventLoop, answers: [(Submission, ScriptResult)])] = []
        for (submission, answer) in answers {
            guard let loop = submission.loop else {
                submission.answer(answer)
                continue
            }
            if let place = loops.firstIndex(where: { $0.loop === loop }) {
                loops[place].answers.append((submission, answer))
            } else {
                loops.append((loop, [(submission, answer)]))
            }
        }
        for (loop, answers) in loops {
            loop.post { for (submission, answer) in answers { submission.answer(answer) } }
        }
    }
}
