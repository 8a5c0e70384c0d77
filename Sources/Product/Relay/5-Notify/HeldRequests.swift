import Domain
import Synchronization

/// The requests that wait for something to happen. One small object each: no task, no thread, no polling.
///
/// Taking, dropping and firing a ticket each touch as many links as the ticket has events, however many others wait for
/// the same. An event that wakes thousands is told in slices, so that the loop that tells it serves others in between.
public final class HeldRequests: Sendable {
    public enum Event: Hashable, Sendable {
        /// A challenge has ended, or is gone.
        case challenge(ChallengeID)
        /// The phones of a user have something else to show than they had.
        case user(UserID)
        /// This phone alone has: it was unbound, say, or asks anew.
        case phone(DeviceID)
    }

    /// Tickets fired at once; the loop has its turn before the next ones.
    static let slice = 256

    private let waiting = Mutex(TicketLists())
    private let later: @Sendable (@escaping @Sendable () -> Void) -> Void

    /// - Parameter later: runs what it is given on a later turn of the loop that calls, or at once where there is none.
    init(later: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() }) { self.later = later }

    /// One waiting request. Taken before the store is read, so that an event between reading and arming is not missed.
    public final class Ticket: Sendable {
        private enum State {
            case taken
            case armed(@Sendable () -> Void)
            case over(hasHappened: Bool)
        }

        private let state = Mutex<State>(.taken)
        private let heldRequests: HeldRequests
        private let link = Atomic<Int32>(TicketLists.none)

        /// The first of its links; `TicketLists.none` where it waits no more. Read and written
        /// by `TicketLists` alone, which lives inside the lock of `heldRequests`: the order of memory
        /// is that lock's.
        var firstLink: Int32 {
            get { link.load(ordering: .relaxed) }
            set { link.store(newValue, ordering: .relaxed) }
        }

        fileprivate init(heldRequests: HeldRequests) { self.heldRequests = heldRequests }

        /// `wake` is called once at most, at once if the event came since the ticket was taken.
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

        /// Whether it was woken by what it waited for: not by the end of its time, nor by a newer request in its place.
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

    /// For whichever comes first. Where it is to be the newest of something, the earlier ones for that are fired.
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

    /// Once more, for who was the newest of something; nil where a newer one is there by now.
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

    /// Of those who wait for the one, everybody who does not wait for the other too.
    func fire(_ event: Event, besides known: Event) {
        for ticket in waiting.withLock({ $0.take(event, besides: known) }) { ticket.fire() }
    }

    /// The next slice of a detached list, and the rest later.
    private func fire(_ list: TicketLists.List) {
        let (tickets, hasMore) = waiting.withLock { $0.takeFirst(Self.slice, of: list) }
        for ticket in tickets { ticket.fire() }
        if hasMore { later { self.fire(list) } }
    }

    public var isEmpty: Bool { count == 0 }

    public var count: Int { waiting.withLock { $0.count } }

    /// Links made, taken out or looked at since the start: what tests count instead of time.
    var steps: Int { waiting.withLock { $0.steps } }

    private func remove(_ ticket: Ticket) { waiting.withLock { $0.remove(ticket) } }
}
