import Domain
import Synchronization

/// The requests that wait for an event on this relay. Each one is a small object: it needs no task,
/// no thread and no polling.
///
/// A request takes a ticket for its events, reads the store, and arms the ticket if the store has
/// no news. A verb that makes a change fires its event after the commit. An event between the read
/// and the arming is not missed, because a ticket that was fired before it is armed wakes at once.
///
/// Invariants: a ticket wakes at most once. The order is always ticket, read, arm. Taking,
/// cancelling or firing a ticket costs as many links as it has events, however many others wait.
///
/// Failures: an event can wake thousands of tickets. They are fired in slices, so that the loop
/// serves other work in between. If another relay makes the change, only `ChangeFeed` fires its
/// event here.
///
/// Tests: `RelayTests/HeldRequestsTests.swift` and `APITests/HeldRequestTests.swift`.
public final class HeldRequests: Sendable {
    public enum Event: Hashable, Sendable {
        /// The challenge has ended or is gone.
        case challenge(ChallengeID)
        /// The list of pending challenges has changed for all phones of a user.
        case user(UserID)
        /// The list has changed for this phone alone, for example because it was unbound or sent a
        /// newer request.
        case phone(DeviceID)
    }

    /// The tickets that are fired at once. The loop then does other work before the next slice.
    static let slice = 256

    private let waiting = Mutex(TicketLists())
    private let later: @Sendable (@escaping @Sendable () -> Void) -> Void

    /// - Parameter later: runs a closure on a later turn of the calling loop, or at once if there
    ///   is no loop.
    init(later: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() }) { self.later = later }

    /// A held request. Its ticket is taken before the store is read, so that an event between the
    /// read and the arming is not missed.
    public final class Ticket: Sendable {
        private enum State {
            case taken
            case armed(@Sendable () -> Void)
            case over(hasHappened: Bool)
        }

        private let state = Mutex<State>(.taken)
        private let heldRequests: HeldRequests
        private let link = Atomic<Int32>(TicketLists.none)

        /// The first of its links; `TicketLists.none` if it no longer waits. Only `TicketLists`
        /// reads and writes it, inside the lock of `heldRequests`, which orders the memory
        /// accesses.
        var firstLink: Int32 {
            get { link.load(ordering: .relaxed) }
            set { link.store(newValue, ordering: .relaxed) }
        }

        fileprivate init(heldRequests: HeldRequests) { self.heldRequests = heldRequests }

        /// Arms the ticket. `wake` is called at most once, and at once if the event has occurred
        /// since the ticket was taken.
        public func arm(_ wake: @escaping @Sendable () -> Void) {
            let late = state.withLock { state in
                if case .over = state { return true }
                state = .armed(wake)
                return false
            }
            if late { wake() }
        }

        public func cancel() {
            state.withLock { $0 = .over(hasHappened: false) }
            heldRequests.remove(self)
        }

        /// Whether its event woke the ticket. It is false after a timeout, or if a newer request
        /// replaced this one.
        public var hasHappened: Bool {
            state.withLock { state in
                if case .over(let hasHappened) = state { return hasHappened }
                return false
            }
        }

        fileprivate func fire(hasHappened: Bool = true) {
            let wake = state.withLock { state -> (@Sendable () -> Void)? in
                if case .over = state { return nil }
                defer { state = .over(hasHappened: hasHappened) }
                if case .armed(let wake) = state { return wake }
                return nil
            }
            wake?()
        }
    }

    public func ticket(for event: Event) -> Ticket { ticket(for: [event]) }

    /// Takes a ticket for the first of several events. If `place` is given, this ticket replaces
    /// the earlier tickets for `place`, which are fired.
    func ticket(for events: [Event], newestOf place: Event? = nil) -> Ticket {
        let ticket = Ticket(heldRequests: self)
        let earlier = waiting.withLock { waiting in
            let earlier = place.map { waiting.take($0) } ?? []
            waiting.add(ticket, events + (place.map { [$0] } ?? []))
            return earlier
        }
        for ticket in earlier { ticket.fire(hasHappened: false) }
        return ticket
    }

    /// Takes another ticket for a request that was woken without news; returns nil if a newer
    /// request waits for `place`.
    func ticket(again events: [Event], newestOf place: Event) -> Ticket? {
        let ticket = Ticket(heldRequests: self)
        return waiting.withLock { waiting in
            guard !waiting.isAwaited(place) else { return nil }
            waiting.add(ticket, events + [place])
            return ticket
        }
    }

    public func fire(_ event: Event) {
        guard let list = waiting.withLock({ $0.detach(event) }) else { return }
        fire(list)
    }

    /// Fires the tickets that wait for `event` but not for `known`.
    func fire(_ event: Event, besides known: Event) {
        for ticket in waiting.withLock({ $0.take(event, besides: known) }) { ticket.fire() }
    }

    /// Fires the next slice of a detached list, and the rest later.
    private func fire(_ list: TicketLists.List) {
        let (tickets, hasMore) = waiting.withLock { $0.takeFirst(Self.slice, of: list) }
        for ticket in tickets { ticket.fire() }
        if hasMore { later { self.fire(list) } }
    }

    /// Whether a request waits for this event.
    func isAwaited(_ event: Event) -> Bool { waiting.withLock { $0.isAwaited(event) } }

    public var isEmpty: Bool { count == 0 }

    public var count: Int { waiting.withLock { $0.count } }

    /// The links that were made, removed or visited since the start. Tests count them instead of
    /// time.
    var steps: Int { waiting.withLock { $0.steps } }

    private func remove(_ ticket: Ticket) { waiting.withLock { $0.remove(ticket) } }
}
