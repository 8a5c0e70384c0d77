import CLinux
import Glibc

/// The events of a descriptor that its owner waits for. `hangUp` means that the peer sends nothing
/// more; `read` reports that too.
public struct Interest: OptionSet, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let read = Interest(rawValue: 1)
    public static let write = Interest(rawValue: 2)
    public static let hangUp = Interest(rawValue: 4)
}

/// The events that a descriptor is ready for. `failed`, and `hangUp` if both directions are closed,
/// are reported whatever the interest. `hangUp` of the peer's direction alone needs `.read` or
/// `.hangUp`.
public struct Readiness: OptionSet, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let read = Readiness(rawValue: 1)
    public static let write = Readiness(rawValue: 2)
    public static let hangUp = Readiness(rawValue: 4)
    public static let failed = Readiness(rawValue: 8)
}

/// A failed system call, and its error number.
public struct SystemFailure: Error, Sendable, Equatable, CustomStringConvertible {
    public let call: String
    public let code: Int32

    public init(_ call: String, _ code: Int32 = errno) {
        self.call = call
        self.code = code
    }

    public var description: String { "\(call): \(String(cString: strerror(code)))" }
}

/// A descriptor watched by a loop. It does not own the descriptor: cancel first, then close it.
/// It is used on its loop only; a `deinit`, which may run anywhere, calls `EventLoop.close`.
public final class DescriptorWatcher {
    let fd: Int32
    let slot: Int
    var ready: ((Readiness) -> Void)?
    private(set) public var interest: Interest
    private let poller: Poller

    init(fd: Int32, slot: Int, interest: Interest, poller: Poller, ready: @escaping (Readiness) -> Void) {
        self.fd = fd
        self.slot = slot
        self.interest = interest
        self.poller = poller
        self.ready = ready
    }

    /// Changes the interest. Watching is level-triggered: the watcher is called again while the
    /// descriptor stays ready.
    public func change(_ interest: Interest) {
        guard ready != nil, interest != self.interest else { return }
        self.interest = interest
        poller.modify(self)
    }

    public func cancel() {
        guard ready != nil else { return }
        ready = nil
        poller.remove(self)
    }
}

/// epoll, and the eventfd by which other threads end its wait. Only the loop's thread uses it,
/// except `wake`. `add`, `modify` and `remove` check that while the loop runs.
final class Poller {
    private static let wakeToken = UInt64.max

    private let epoll: Int32
    private let wakeFD: Int32
    private let events: UnsafeMutableBufferPointer<epoll_event>
    private var watches: [DescriptorWatcher?] = []
    private var free: [Int] = []
    private var generations: [UInt32] = []
    /// Whether a thread runs the loop. Before and after that, the owner of the loop may use it.
    var isRunning = false

    init() throws(SystemFailure) {
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard epoll >= 0 else { throw SystemFailure("epoll_create1") }
        wakeFD = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        events = .allocate(capacity: 256)
        guard wakeFD >= 0 else { throw SystemFailure("eventfd") }
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.u64 = Self.wakeToken
        guard epoll_ctl(epoll, EPOLL_CTL_ADD, wakeFD, &event) == 0 else { throw SystemFailure("epoll_ctl") }
    }

    deinit {
        close(epoll)
        close(wakeFD)
        events.deallocate()
    }

    /// Wakes the loop. It may be called from any thread: the descriptor lives as long as the loop,
    /// and a write to an eventfd is atomic.
    func wake() {
        var one: UInt64 = 1
        _ = write(wakeFD, &one, 8)
    }

    func add(fd: Int32, _ interest: Interest, _ ready: @escaping (Readiness) -> Void) throws(SystemFailure)
        -> DescriptorWatcher
    {
        preconditionCurrent()
        let slot: Int
        if let last = free.popLast() {
            slot = last
        } else {
            slot = watches.count
            watches.append(nil)
            generations.append(0)
        }
        let watch = DescriptorWatcher(fd: fd, slot: slot, interest: interest, poller: self, ready: ready)
        var event = event(for: watch)
        guard epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 else {
            let failure = SystemFailure("epoll_ctl")
            free.append(slot)
            throw failure
        }
        watches[slot] = watch
        return watch
    }

    func modify(_ watch: DescriptorWatcher) {
        preconditionCurrent()
        var event = event(for: watch)
        let result = epoll_ctl(epoll, EPOLL_CTL_MOD, watch.fd, &event)
        assert(result == 0, "epoll_ctl: errno \(errno)")
    }

    func remove(_ watch: DescriptorWatcher) {
        preconditionCurrent()
        var event = epoll_event()
        epoll_ctl(epoll, EPOLL_CTL_DEL, watch.fd, &event)
        watches[watch.slot] = nil
        // Events that epoll_wait has already returned for this slot must not reach the slot's next
        // watcher.
        generations[watch.slot] &+= 1
        free.append(watch.slot)
    }

    private func preconditionCurrent() {
        precondition(!isRunning || EventLoop.current?.poller === self, "a descriptor's watcher is used off its loop")
    }

    private func event(for watch: DescriptorWatcher) -> epoll_event {
        var event = epoll_event()
        if watch.interest.contains(.read) { event.events |= EPOLLIN.rawValue | EPOLLRDHUP.rawValue }
        if watch.interest.contains(.write) { event.events |= EPOLLOUT.rawValue }
        if watch.interest.contains(.hangUp) { event.events |= EPOLLRDHUP.rawValue }
        event.data.u64 = UInt64(generations[watch.slot]) << 32 | UInt64(watch.slot)
        return event
    }

    /// Waits for at most `milliseconds` (-1: without limit), and calls the watchers of the ready
    /// descriptors.
    func wait(milliseconds: Int32) {
        let count = epoll_wait(epoll, events.baseAddress, Int32(events.count), milliseconds)
        guard count > 0 else { return }
        for event in events[0..<Int(count)] {
            let token = event.data.u64
            if token == Self.wakeToken {
                var value: UInt64 = 0
                _ = read(wakeFD, &value, 8)
                continue
            }
            let slot = Int(token & 0xffff_ffff)
            guard generations[slot] == UInt32(token >> 32), let watch = watches[slot] else { continue }
            var readiness: Readiness = []
            if event.events & EPOLLIN.rawValue != 0 { readiness.insert(.read) }
            if event.events & EPOLLOUT.rawValue != 0 { readiness.insert(.write) }
            if event.events & (EPOLLHUP.rawValue | EPOLLRDHUP.rawValue) != 0 { readiness.insert(.hangUp) }
            if event.events & EPOLLERR.rawValue != 0 { readiness.insert(.failed) }
            watch.ready?(readiness)
        }
    }
}
