import Glibc
import Synchronization
import World

/// One thread's turn after turn: descriptors, timers, posted work and the jobs of Swift tasks, one at a time.
///
/// `@unchecked Sendable`: everything mutable here is touched by the loop's own thread alone — `run()` or `turn()` makes
/// that thread's `current` the loop, and what must be on the loop asks for it by precondition — apart from `inbox` and
/// `stopping`, which carry their own locks, and `Poller.wake`, which is one write to an eventfd.
public final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
    enum Item {
        case job(UnownedJob)
        case work(() -> Void)
    }

    /// What other threads bring. `asleep` is true only while the loop is in epoll_wait with nothing to do: the first to
    /// bring something clears it, and it alone writes to the eventfd.
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
    private var timers = TimerHeap<() -> Void>()
    private var turnEnds: [any TurnEndObserver] = []
    private var turnEndsRunning: [any TurnEndObserver] = []
    private var turnCount: UInt64 = 0
    private var timeOfTurn: (turn: UInt64, instant: Instant)?
    private let poller: Poller?
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

    /// A loop without descriptors and without a thread: whoever owns it calls `turn()`. Of everything that is ready, the
    /// job at `pick(count)` runs next; `{ _ in 0 }` keeps the order in which things came.
    public static func simulated(
        name: String, time: any TimeSource, pick: @escaping (Int) -> Int
    ) -> EventLoop {
        EventLoop(name: name, time: time, poller: nil, pick: pick)
    }

    // MARK: Which loop

    /// The loop whose turn this thread is running.
    @inline(never)
    public static var current: EventLoop? {
        guard let pointer = pthread_getspecific(currentKey) else { return nil }
        return Unmanaged<EventLoop>.fromOpaque(pointer).takeUnretainedValue()
    }

    /// Whether this thread runs this loop's turn.
    public var isCurrent: Bool {
        // A thread-specific value, not a thread's id: a task may go on elsewhere, and the optimiser keeps ids.
        pthread_getspecific(currentKey) == UnsafeMutableRawPointer(Unmanaged.passUnretained(self).toOpaque())
    }

    func preconditionCurrent(_ what: StaticString = #function) {
        precondition(isCurrent, "\(what): not on the loop")
    }

    /// Runs `body` as a part of a turn of a simulated loop, for its set-up.
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

    // MARK: Giving it work

    /// From any thread. Wakes the loop if it sleeps, with at most one write.
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

    /// On the loop only: runs at once to its first suspension, and stays on the loop.
    public func spawn(_ operation: @escaping @Sendable () async -> Void) {
        preconditionCurrent()
        Task.immediate(executorPreference: self) { await operation() }
    }

    /// From any task: runs `operation` on the loop and comes back with its result.
    public func perform<Value: Sendable>(_ operation: @escaping @Sendable () async -> Value) async -> Value {
        await withUnsafeContinuation { continuation in
            post { self.spawn { continuation.resume(returning: await operation()) } }
        }
    }

    /// On the loop only. `work` runs on a later turn, never before `duration` is over.
    @discardableResult
    public func schedule(after duration: Duration, _ work: @escaping () -> Void) -> TimerID {
        preconditionCurrent()
        return timers.add(work, at: time.instant() + duration)
    }

    /// The same, for who knows the moment.
    @discardableResult
    public func schedule(at moment: Instant, _ work: @escaping () -> Void) -> TimerID {
        preconditionCurrent()
        return timers.add(work, at: moment)
    }

    public func cancel(_ timer: TimerID) {
        preconditionCurrent()
        timers.cancel(timer)
    }

    /// On the loop only: suspends the calling task for `duration`, and nothing else.
    public func sleep(for duration: Duration) async {
        preconditionCurrent()
        await withUnsafeContinuation { continuation in
            _ = schedule(after: duration) { continuation.resume() }
        }
    }

    /// On the loop only. The watch does not own the descriptor.
    public func watch(
        fd: Int32, _ interest: Interest, _ ready: @escaping (Readiness) -> Void
    ) throws(SystemFailure) -> DescriptorWatcher {
        preconditionCurrent()
        guard let poller else { throw SystemFailure("watch on a simulated loop", ENOSYS) }
        return try poller.add(fd: fd, interest, ready)
    }

    /// On the loop only: tells `listener` once, when this turn has nothing more to run and the loop is about to look at
    /// its descriptors again. So what a turn has to write is written together.
    public func atTurnEnd(_ listener: any TurnEndObserver) { turnEnds.append(listener) }

    // MARK: The executor

    public func enqueue(_ job: consuming ExecutorJob) { accept(.job(UnownedJob(job))) }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    public func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    public func checkIsolated() { preconditionCurrent() }

    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    /// On the loop only: the monotonic clock as it stood when this turn first asked for it. Where seconds are counted the
    /// clock itself need not be read again and again.
    public var now: Instant {
        preconditionCurrent()
        if let timeOfTurn, timeOfTurn.turn == turnCount { return timeOfTurn.instant }
        let instant = time.instant()
        timeOfTurn = (turnCount, instant)
        return instant
    }

    // MARK: Running

    /// The thread's body, until `stop()`.
    public func run() {
        guard let poller else { preconditionFailure("a simulated loop is driven by turn()") }
        precondition(Self.current == nil, "a thread runs one loop")
        let outer = enter()
        defer { leave(to: outer) }
        while !stopping.load(ordering: .acquiring) {
            turnCount += 1
            poller.wait(milliseconds: takeInboxOrSleep())
            takeInbox()
            runDueTimers()
            // A job that makes jobs must not keep the descriptors waiting: some rounds, then a look at them.
            for _ in 0..<8 where !ready.isEmpty { runReady() }
            endTurn()
        }
    }

    /// From any thread: `run()` returns when its turn is over. What has not run by then never will.
    public func stop() {
        stopping.store(true, ordering: .releasing)
        post {}
    }

    /// How long epoll may wait; asleep from here on if there is nothing to do.
    private func takeInboxOrSleep() -> Int32 {
        guard ready.isEmpty, turnEnds.isEmpty else { return 0 }
        let mayWait: Int32
        if let deadline = timers.nextDeadline {
            let left = deadline.nanoseconds - time.instant().nanoseconds
            // Rounded up: a timer that is due in half a millisecond would otherwise be asked for again and again.
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
        // Thousands may be due at once, and the descriptors are not to wait for all of them.
        for _ in 0..<Self.timersInTurn {
            guard let work = timers.popDue(now) else { return }
            work()
        }
    }

    /// Timers that fire in one turn; the others fire in the next ones.
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
        // Who asks again from within its own end is told in the next turn: descriptors come in between.
        for _ in 0..<2 where !turnEnds.isEmpty {
            swap(&turnEnds, &turnEndsRunning)
            for listener in turnEndsRunning { listener.turnEnded() }
            turnEndsRunning.removeAll(keepingCapacity: true)
        }
    }

    // MARK: Simulation

    /// Runs one of the jobs that are ready, or the earliest timer that is due; false if there is none.
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
            timers.popDue(time.instant())?()
        }
        endTurn()
        return true
    }

    /// When the earliest timer is due: how far virtual time may move when no loop has anything ready.
    public var nextDeadline: Instant? { timers.nextDeadline }
}

/// Something that wants to act once at the end of a turn.
public protocol TurnEndObserver: AnyObject {
    func turnEnded()
}

/// Carries an item into a lock and out again; its guard is the lock.
private struct UncheckedBox<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}

private let currentKey: pthread_key_t = {
    var key = pthread_key_t()
    precondition(pthread_key_create(&key, nil) == 0, "no thread-specific key left")
    return key
}()

/// A write to a connection that its peer has closed is an error to handle, not a reason to die.
private func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }
