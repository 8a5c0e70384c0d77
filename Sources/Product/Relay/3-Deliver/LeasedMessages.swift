import Domain
import Synchronization

/// The mails and text messages that outbox rounds have leased and that wait for their turn.
///
/// Purpose: after an outage thousands of messages may be due. If all of them went to a courier at
/// once, it would refuse most, and each refusal costs two commits and a pause of seconds. So a fixed
/// number is in work, and the next one begins when one has ended. Many in work share a commit.
///
/// Invariants: the messages of each website leave in the order in which they were leased, and
/// websites take turns: one with a long backlog delays no other. Only the ids wait here, and their
/// entries are in flight (`InFlightEntries`). While `mostWaiting` of a kind wait, no more of it are
/// leased: other relays can take them, and few wait for longer than their lease. If a lease ends
/// meanwhile, the relay leases the entry again and does not add it twice; if another relay took it,
/// it is not sent here.
///
/// Tests: `RelayTests/MessageBacklogTests.swift`.
final class LeasedMessages: Sendable {
    /// The messages of one kind that are in work: read, sent or recorded.
    static let inWork = 128
    /// The text messages among them that are at gateways. A gateway over HTTP takes 32 on a loop, and
    /// counts as failing if more come. The others are for messages that were just written.
    static let textsAtCourier = 24
    /// The messages of one kind that wait before no more are leased.
    static let mostWaiting = 1000

    private struct Line {
        var waiting: [Tenant: ArraySlice<LeasedEntry>] = [:]
        /// The websites with waiting messages, in the order of their turns.
        var turns: ArraySlice<Tenant> = []
        var inWork = 0
        var count = 0
        /// Whether messages were left to the store since the line was last short.
        var wasFull = false

        mutating func add(_ entry: LeasedEntry) -> Bool {
            if waiting[entry.tenant] == nil { turns.append(entry.tenant) }
            waiting[entry.tenant, default: []].append(entry)
            count += 1
            guard inWork < LeasedMessages.inWork else { return false }
            inWork += 1
            return true
        }

        mutating func next() -> LeasedEntry? {
            guard let tenant = turns.popFirst(), let entry = waiting[tenant]?.popFirst() else {
                inWork -= 1
                return nil
            }
            count -= 1
            if waiting[tenant]?.isEmpty == true {
                waiting[tenant] = nil
            } else {
                turns.append(tenant)
            }
            return entry
        }
    }

    private struct State {
        var lines: [MessageKind: Line] = [:]
        var isClosed = false
    }

    private let state = Mutex(State())
    private let textLimit = CourierConcurrencyLimit(LeasedMessages.textsAtCourier)

    /// Adds a message. Returns whether the caller must start a task that takes messages (`next`).
    func add(_ entry: LeasedEntry, _ kind: MessageKind) -> Bool {
        state.withLock { state in !state.isClosed && state.lines[kind, default: Line()].add(entry) }
    }

    /// The kinds of which no more are leased now.
    var full: Set<MessageKind> {
        state.withLock { state in
            var full: Set<MessageKind> = []
            for kind in MessageKind.allCases where state.lines[kind, default: Line()].count >= Self.mostWaiting {
                state.lines[kind]?.wasFull = true
                full.insert(kind)
            }
            return full
        }
    }

    /// Whether the caller should lease more now: once, when a line that was full has become short.
    func isShortAgain(_ kind: MessageKind) -> Bool {
        state.withLock { state in
            guard let line = state.lines[kind], line.wasFull, line.count < Self.mostWaiting / 2 else { return false }
            state.lines[kind]?.wasFull = false
            return true
        }
    }

    /// Takes the next message; nil if none waits. The task then ends.
    func next(_ kind: MessageKind) -> LeasedEntry? {
        state.withLock { state in state.isClosed ? nil : state.lines[kind, default: Line()].next() }
    }

    /// Lets no more messages begin, because the relay ends. The waiting ones lose their leases with the
    /// relay's row in the store, and another relay takes them.
    func close() { state.withLock { $0 = State(isClosed: true) } }

    /// Returns when one more message of this kind may be at the courier: at once for mails, which the
    /// courier queues itself. Returns nil if the relay ends meanwhile.
    func place(_ kind: MessageKind) async -> CourierPlace? {
        guard kind == .sms else { return CourierPlace(nil) }
        await textLimit.begin()
        let place = CourierPlace(textLimit)
        return state.withLock { $0.isClosed } ? nil : place
    }
}

/// A message's place at the courier. It ends once, at the latest with the value.
final class CourierPlace: Sendable {
    private let limit: Mutex<CourierConcurrencyLimit?>

    fileprivate init(_ limit: CourierConcurrencyLimit?) { self.limit = Mutex(limit) }

    deinit { end() }

    func end() {
        let limit = limit.withLock { limit in
            defer { limit = nil }
            return limit
        }
        limit?.end()
    }
}

/// A limit on the messages at a courier. Further ones wait, in order of arrival.
final class CourierConcurrencyLimit: Sendable {
    private struct State {
        var free: Int
        var waiting: ArraySlice<UnsafeContinuation<Void, Never>> = []
    }

    private let state: Mutex<State>

    init(_ count: Int) { state = Mutex(State(free: count)) }

    /// Returns when one more message may be at the courier. Each call is followed by one of `end`.
    func begin() async {
        let isFree = state.withLock { state in
            guard state.free > 0 else { return false }
            state.free -= 1
            return true
        }
        guard !isFree else { return }
        await withUnsafeContinuation { turn in
            let isFree = state.withLock { state in
                // Another message may have ended meanwhile.
                guard state.free > 0 else {
                    state.waiting.append(turn)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { turn.resume() }
        }
    }

    func end() {
        let next = state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil { state.free += 1 }
            return next
        }
        next?.resume()
    }
}
