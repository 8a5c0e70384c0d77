import EventLoop
import Glibc
import Log
import Relay
import Synchronization
import World

/// A queue of scripts before one session. While a transaction runs, scripts gather; the next transaction takes
/// scripts from each tenant in turn, up to its limit.
final class Lane: Sendable {
    struct Limits: Sendable {
        /// Scripts in one transaction.
        var batch = 128
        /// Scripts that may wait. One more is refused: memory does not grow when the database
        /// hangs. A tenant may have at most as many scripts waiting as there are
        /// free places, so a tenant alone fills half of the queue.
        var waiting = 20_000
        /// How long no host has to give a connection until nobody waits for one any more.
        var timeout = Duration.seconds(2)
        /// Conflicts, one after the other, that are trouble. Fewer are everyday where several relays write.
        var conflicts = 10
    }

    /// A submission with what its earlier tries taught.
    struct Entry: Sendable {
        let submission: Submission
        /// It may have been committed already.
        var isRetry: Bool
        /// It has failed together with others, and is run by itself.
        var alone = false
        /// The lane has looked up, after a statement of it failed, whether it was committed.
        var isLookedUp = false
        var failures = 0

        init(_ submission: Submission) {
            self.submission = submission
            isRetry = submission.script.mayHaveRun
        }

        var tenant: Tenant { submission.tenant }
        var statements: Int {
            let script = submission.script
            return script.writes.count + script.reads.count + script.rows.count
        }
        /// The share of its tenant's turn that this entry uses. An entry that needs a whole
        /// transaction uses all of it.
        var cost: Int { alone ? max(statements, Lane.turn) : statements }
    }

    /// Statements in a tenant's turn: those of a login.
    private static let turn = 16

    private struct Queue {
        var entries = FairQueue<Tenant, Entry>(turn: Lane.turn)
        var budget = BatchBudget()
        var isRunning = false
        var isClosed = false
    }

    /// Why the last transaction came to nothing.
    private struct TransactionFailure {
        let message: String
        /// Only a transaction that has written something shows that it is over: a full disk takes all others.
        let isOverWithAWrite: Bool
    }

    /// How it goes with the transactions, one after the other.
    private struct LaneHealth {
        var fault: TransactionFailure?
        var conflicts = 0
        /// Since when no host gives a connection.
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
    private let log: Log

    init(
        _ purpose: Purpose, session: sending any Session, worker: any Worker, time: any TimeSource,
        randomness: any Randomness, limits: Limits, keys: RowKeys, log: Log
    ) {
        self.keys = keys
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

    /// Why it does not go well, if it does not.
    var fault: String? { course.withLock { $0.fault?.message } }

    /// The host where it is connected, or was last.
    var host: String? { course.withLock { $0.place?.host } }

    /// Transactions that were in somebody's way, or waited too long for a lock, and were run again.
    var conflicts: UInt64 { conflictCount.load(ordering: .relaxed) }

    /// From any thread. A refusal comes as an answer at once.
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

    /// What waits is answered with a failure, what runs is finished, then the session is closed. Waits for that, but not
    /// for a database that hangs.
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

    /// One transaction, on the worker.
    private func turn() {
        let batch = take()
        if !batch.isEmpty { run(batch) }
        queue.withLock { queue in
            queue.isRunning = !queue.entries.isEmpty
            if queue.isRunning { worker.post { self.turn() } }
        }
    }

    /// The next scripts that belong in one transaction, without those that nobody waits for any more.
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
        // Those who were in each other's way again and again would be so once more.
        if batch.contains(where: { $0.failures > Self.patientConflicts }) { pause() }
        let begun = time.instant()
        let authenticator = keys.current
        var transaction = Transaction(batch, purpose)
        var hasWritten = false
        var place: SessionHost?
        let outcome: Result<[Result<[Rows], StoreFailure>], SessionFailure> = session.withLock { session in
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
            deliver(zip(batch, results).map { ($0.submission, $1) })
        case .failure(let failure):
            let isAway = recordResult(failure, hadBegun: transaction.hasBegun)
            guard !isAway else { return refuse(batch, .unavailable(failure.message)) }
            retry(batch, after: failure, hadBegun: transaction.hasBegun)
        }
    }

    /// These and all that wait.
    private func refuse(_ batch: [Entry], _ why: StoreFailure) {
        let waiting = queue.withLock { $0.entries.popAll() }
        deliver((batch + waiting).map { ($0.submission, .failure(why)) })
    }

    private static let patientConflicts = 3

    /// On the worker's own thread, which blocks in the database's library else and has nothing better to do: at once, the
    /// same transactions would meet again.
    private func pause() { usleep(1000 + UInt32(randomness.number(below: 19_000))) }

    // How it goes is remembered, and logged when that changes.

    private func recordResult(_ place: SessionHost?) {
        let isNew = course.withLock { course in
            defer { course.place = place }
            return course.place != place
        }
        if isNew, let place { log.notice("store.connected", [.host: place.host]) }
    }

    /// Whether no host has given a connection for so long that nobody is to wait for one.
    private func recordResult(_ failure: SessionFailure, hadBegun: Bool) -> Bool {
        let now = time.instant()
        let (isNew, isAway) = course.withLock { course -> (Bool, Bool) in
            let before = course.fault
            switch failure {
            case .statement: break
            // Somebody was in the way: it is tried again before anybody notices.
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
            let script = batch[0].submission.script
            guard script.operation != nil, !batch[0].isLookedUp else {
                return deliver([(batch[0].submission, .failure(.internal("\(script.name): \(message)")))])
            }
            // The same operation may be committed, by another relay since the look-up or by a
            // repeat that overtook this one, so that its rows are in the way: the next look-up
            // finds it.
            batch[0].isRetry = true
            batch[0].isLookedUp = true
        case .locked:
            // The others would wait again for what one of them cannot have.
            for index in batch.indices { batch[index].alone = true }
            if batch.count == 1 { return requeue(batch, atFront: false) }
        case .conflict:
            // One of them was in the way; the others need not come back with it again.
            for index in batch.indices where hadBegun {
                batch[index].failures += 1
                batch[index].alone = true
            }
        case .lost:
            for index in batch.indices where hadBegun {
                batch[index].failures += 1
                if batch[index].failures > 1 { batch[index].alone = true }
                batch[index].isRetry = true
            }
        }
        requeue(batch, atFront: true)
    }

    /// At the front or at the end of each tenant's own line: others do not wait for what failed.
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

    /// Brings each waiting loop its answers, all of them with one post.
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
