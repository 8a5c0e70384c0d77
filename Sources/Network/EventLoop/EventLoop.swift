import Glibc
import Synchronization
import World

/// The loop of one thread: descriptors, timers, posted work and the jobs of Swift tasks, one at a
/// time.
///
/// Purpose: code on a loop needs no locks, because only one piece of work runs at a time. A turn
/// waits for descriptors and calls their watchers. Then it takes the work of other threads, runs
/// due timers, runs ready jobs, and calls the turn-end observers. Those write the output of the
/// whole turn together.
///
/// Invariants: code that belongs to the loop runs only on the loop's thread; `preconditionCurrent`
/// checks that. A loop that sleeps is woken with exactly one write, however much work is posted:
/// `Inbox.asleep` is cleared under the lock. Each turn runs at most 512 timers, 8 rounds of jobs
/// and 2 rounds of observers, so descriptors never starve.
///
/// Risk: work that blocks stops every connection of the loop, so blocking libraries run on a
/// `WorkerThread`. Work that is posted after `stop()` may never run.
///
/// `@unchecked Sendable`: only the loop's own thread touches the mutable properties. `run()` and
/// `turn()` set the loop as `current` of that thread, and methods check it by precondition.
/// Exceptions are `inbox`, which has a lock, `stopping`, which is atomic, and `Poller.wake`, which
/// is one write to an eventfd.
///
/// A simulated loop has the same code without epoll and thread, for deterministic tests. Tests:
/// `EventLoopTests`, `SimulatedLoopTests`, `TimerHeapTests`.
public final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
    enum Item {
        case job(UnownedJob)
        case work(() -> Void)
    }

    /// The work of a timer. The structure saves an object for each timer: generic code would keep a
    /// bare closure in a closure of another form.
    private struct Timer {
        let work: () -> Void
    }

    /// The work that other threads post. `asleep` is true only while the loop waits in epoll_wait
    /// without work. The first thread that posts clears it, and only that thread writes to the
    /// eventfd.
    private struct Inbox {
        var items: [Item] = []
        var asleep = false
    }

    public let name: String
    public let time: any TimeSource
    private let inbox = Mutex(Inbox())
    private let stopping = Atomic<Bool>(false)

    private var ready: [Item] = []
    private var running: [Item] = []
    private var timers = TimerHeap<Timer>()
    private var turnEnds: [any TurnEndObserver] = []
    private var turnEndsRunning: [any TurnEndObserver] = []
    private var turnCount: UInt64 = 0
    private var timeOfTurn: (turn: UInt64, instant: Instant)?
    let poller: Poller?
    private let pick: ((Int) -> Int)?

    /// A loop over epoll. It does nothing until a thread calls `run()`.
    public convenience init(name: String, time: any TimeSource) throws(SystemFailure) {
        ignoreBrokenPipes()
        self.init(name: name, time: time, poller: try Poller(), pick: nil)
    }

    private init(name: String, time: any TimeSource, poller: Poller?, pick: ((Int) -> Int)?) {
        self.name = name
        self.time = time
        self.poller = poller
        self.pick = pick
    }

    /// A loop without descriptors and without a thread, for simulations: its owner calls `turn()`.
    /// The ready job at index `pick(count)` runs next; `{ _ in 0 }` keeps the order of arrival.
    public static func simulated(
        name: String, time: any TimeSource, pick: @escaping (Int) -> Int
    ) -> EventLoop {
        EventLoop(name: name, time: time, poller: nil, pick: pick)
    }

    // MARK: The current loop

    /// The loop that this thread runs at the moment; nil if there is none.
    @inline(never)
    public static var current: EventLoop? {
        guard let pointer = pthread_getspecific(currentKey) else { return nil }
        return Unmanaged<EventLoop>.fromOpaque(pointer).takeUnretainedValue()
    }

    /// Whether this thread runs this loop's turn.
    public var isCurrent: Bool {
        // A thread-specific value is used, not a thread id. A task may continue on another thread,
        // and the optimiser caches ids.
        pthread_getspecific(currentKey) == UnsafeMutableRawPointer(Unmanaged.passUnretained(self).toOpaque())
    }

    @usableFromInline func preconditionCurrent(_ what: StaticString = #function) {
        precondition(isCurrent, "\(what): not on the loop")
    }

    /// Runs `body` within a turn of a simulated loop, for its set-up.
    public func asCurrent<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        precondition(poller == nil, "only a simulated loop can be entered")
        let outer = enter()
        defer { leave(to: outer) }
        turnCount += 1
        return try body()
    }

    private func enter() -> UnsafeMutableRawPointer? {
        let outer = pthread_getspecific(currentKey)
        pthread_setspecific(currentKey, UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()))
        return outer
    }

    private func leave(to outer: UnsafeMutableRawPointer?) {
        pthread_setspecific(currentKey, outer)
    }

    // MARK: Work

    /// Runs `work` on the loop, in a later turn or later in this one. It may be called from any
    /// thread. It wakes a sleeping loop, with at most one write.
    public func post(_ work: @escaping @Sendable () -> Void) { accept(.work(work)) }

    private func accept(_ item: consuming Item) {
        if isCurrent {
            ready.append(item)
            return
        }
        let item = UncheckedBox(item)
        let mustWake = inbox.withLock { inbox in
            inbox.items.append(item.value)
            let asleep = inbox.asleep
            inbox.asleep = false
            return asleep
        }
        if mustWake { poller?.wake() }
    }

    /// Starts a task on the loop. It runs at once until its first suspension, and stays on the
    /// loop. On the loop only.
    public func spawn(_ operation: @escaping @Sendable () async -> Void) {
        _ = spawnCancellable(operation)
    }

    /// Starts a task as `spawn` does, and returns it, so that it can be cancelled.
    public func spawnCancellable(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        preconditionCurrent()
        return Task.immediate(executorPreference: self) { await operation() }
    }

    /// Runs `operation` on the loop, and returns its result. It may be called from any task.
    public func perform<Value: Sendable>(_ operation: @escaping @Sendable () async -> Value) async -> Value {
        await withUnsafeContinuation { continuation in
            post { self.spawn { continuation.resume(returning: await operation()) } }
        }
    }

    /// Runs `work` in a later turn, never before `duration` is over. On the loop only.
    @discardableResult
    public func schedule(after duration: Duration, _ work: @escaping () -> Void) -> TimerID {
        preconditionCurrent()
        return timers.add(Timer(work: work), at: time.instant() + duration)
    }

    /// Runs `work` in a later turn, never before `moment`. On the loop only.
    @discardableResult
    public func schedule(at moment: Instant, _ work: @escaping () -> Void) -> TimerID {
        preconditionCurrent()
        return timers.add(Timer(work: work), at: moment)
    }

    public func cancel(_ timer: TimerID) {
        preconditionCurrent()
        timers.cancel(timer)
    }

    /// Suspends the calling task for `duration`, without blocking the loop. On the loop only.
    public func sleep(for duration: Duration) async {
        preconditionCurrent()
        await withUnsafeContinuation { continuation in
            _ = schedule(after: duration) { continuation.resume() }
        }
    }

    /// Watches a descriptor, which the watcher does not own. On the loop only.
    public func watch(
        fd: Int32, _ interest: Interest, _ ready: @escaping (Readiness) -> Void
    ) throws(SystemFailure) -> DescriptorWatcher {
        preconditionCurrent()
        guard let poller else { throw SystemFailure("watch on a simulated loop", ENOSYS) }
        return try poller.add(fd: fd, interest, ready)
    }

    /// Cancels a watcher and closes its descriptor, for a `deinit`, which may run on any thread. On
    /// another thread than the loop's, the loop does it later, or when it is freed itself.
    public func close(_ fd: Int32, of watcher: DescriptorWatcher?) {
        let ending = WatchedDescriptor(fd: fd, watcher: watcher)
        if isCurrent { ending.watcher?.cancel() } else { accept(.work { ending.watcher?.cancel() }) }
    }

    /// Calls `listener` once, when nothing more is ready in this turn and before the loop looks at
    /// its descriptors again. So all output of a turn is written together. On the loop only.
    public func atTurnEnd(_ listener: any TurnEndObserver) { turnEnds.append(listener) }

    /// Runs work at the end of the turn of the thread's loop; at once if the thread has none.
    public static func atTurnEnd(_ work: @escaping @Sendable () -> Void) {
        guard let current else { return work() }
        current.atTurnEnd(TurnEndWork(work))
    }

    // MARK: The executor

    public func enqueue(_ job: consuming ExecutorJob) { accept(.job(UnownedJob(job))) }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    public func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    public func checkIsolated() { preconditionCurrent() }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    /// The monotonic clock when this turn first read it. It saves further reads where a precision
    /// of seconds is enough. On the loop only.
    public var now: Instant {
        preconditionCurrent()
        if let timeOfTurn, timeOfTurn.turn == turnCount { return timeOfTurn.instant }
        let instant = time.instant()
        timeOfTurn = (turnCount, instant)
        return instant
    }

    // MARK: Running

    /// Runs the loop on this thread until `stop()`.
    public func run() {
        guard let poller else { preconditionFailure("a simulated loop is driven by turn()") }
        precondition(Self.current == nil, "a thread runs one loop")
        let outer = enter()
        poller.isRunning = true
        defer {
            poller.isRunning = false
            leave(to: outer)
        }
        while !stopping.load(ordering: .acquiring) {
            turnCount += 1
            poller.wait(milliseconds: takeInboxOrSleep())
            takeInbox()
            runDueTimers()
            // A job that creates jobs must not starve the descriptors, so the number of rounds is
            // limited.
            for _ in 0..<8 where !ready.isEmpty { runReady() }
            endTurn()
        }
    }

    /// Stops the loop: `run()` returns at the end of its turn. Work that has not run by then never
    /// runs. It may be called from any thread.
    public func stop() {
        stopping.store(true, ordering: .releasing)
        post {}
    }

    /// The time that epoll may wait, in milliseconds; -1 without limit. The loop counts as asleep
    /// from here on if it has no work.
    private func takeInboxOrSleep() -> Int32 {
        guard ready.isEmpty, turnEnds.isEmpty else { return 0 }
        let mayWait: Int32
        if let deadline = timers.nextDeadline {
            let left = deadline.nanoseconds - time.instant().nanoseconds
            // Rounded up: otherwise a timer that is due in half a millisecond would make the loop
            // spin.
            mayWait = left <= 0 ? 0 : Int32(clamping: (left + 999_999) / 1_000_000)
        } else {
            mayWait = -1
        }
        guard mayWait != 0 else { return 0 }
        return inbox.withLock { inbox in
            guard inbox.items.isEmpty else { return 0 }
            inbox.asleep = true
            return mayWait
        }
    }

    private func takeInbox() {
        let items = inbox.withLock { inbox in
            inbox.asleep = false
            guard !inbox.items.isEmpty else { return UncheckedBox([Item]()) }
            let items = UncheckedBox(inbox.items)
            inbox.items = []
            return items
        }
        if ready.isEmpty { ready = items.value } else { ready.append(contentsOf: items.value) }
    }

    private func runDueTimers() {
        guard let next = timers.nextDeadline else { return }
        let now = time.instant()
        guard next <= now else { return }
        // Thousands may be due at once. The descriptors must not wait for all of them.
        for _ in 0..<Self.timersInTurn {
            guard let timer = timers.popDue(now) else { return }
            timer.work()
        }
    }

    /// The number of timers that may fire in one turn. The others fire in the next turns.
    private static let timersInTurn = 512

    private func runReady() {
        swap(&ready, &running)
        for item in running { run(item) }
        running.removeAll(keepingCapacity: running.count <= 4096)
    }

    private func run(_ item: Item) {
        switch item {
        case .job(let job): job.runSynchronously(on: asUnownedTaskExecutor())
        case .work(let work): work()
        }
    }

    private func endTurn() {
        // An observer that registers again within its call is called in the next turn, after the
        // descriptors.
        for _ in 0..<2 where !turnEnds.isEmpty {
            swap(&turnEnds, &turnEndsRunning)
            for listener in turnEndsRunning { listener.turnEnded() }
            turnEndsRunning.removeAll(keepingCapacity: true)
        }
    }

    // MARK: Simulation

    /// Runs one of the ready jobs, or the earliest due timer. Returns false if there is none.
    public func turn() -> Bool {
        guard let pick else { preconditionFailure("a real loop is driven by run()") }
        let outer = enter()
        defer { leave(to: outer) }
        turnCount += 1
        takeInbox()
        let timerIsDue = timers.nextDeadline.map { $0 <= time.instant() } ?? false
        let count = ready.count + (timerIsDue ? 1 : 0)
        guard count > 0 else {
            let hadEnds = !turnEnds.isEmpty
            endTurn()
            return hadEnds
        }
        let chosen = count == 1 ? 0 : pick(count)
        precondition((0..<count).contains(chosen), "pick chose what is not there")
        if chosen < ready.count {
            run(ready.remove(at: chosen))
        } else {
            timers.popDue(time.instant())?.work()
        }
        endTurn()
        return true
    }

    /// The time of the earliest timer. If no loop has work, virtual time may move on to it.
    public var nextDeadline: Instant? { timers.nextDeadline }
}

/// An object that acts once at the end of a turn.
public protocol TurnEndObserver: AnyObject {
    func turnEnded()
}

private final class TurnEndWork: TurnEndObserver {
    private let work: @Sendable () -> Void

    init(_ work: @escaping @Sendable () -> Void) { self.work = work }

    func turnEnded() { work() }
}

/// Carries an item into a lock and out again.
///
/// Guard: the lock protects the item.
private struct UncheckedBox<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}

/// A descriptor that is closed when the last reference goes: after its watcher is cancelled, or
/// with the work of a loop that has stopped.
private final class WatchedDescriptor {
    private let fd: Int32
    let watcher: DescriptorWatcher?

    init(fd: Int32, watcher: DescriptorWatcher?) {
        self.fd = fd
        self.watcher = watcher
    }

    deinit { Glibc.close(fd) }
}

private let currentKey: pthread_key_t = {
    var key = pthread_key_t()
    precondition(pthread_key_create(&key, nil) == 0, "no thread-specific key left")
    return key
}()

/// Makes a write to a closed connection return an error, instead of ending the process.
private func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }
