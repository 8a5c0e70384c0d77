import Domain
import Synchronization

/// The requests that wait for something to happen. One small object each: no task, no thread, no polling.
public final class Waits: Sendable {
    public enum Event: Hashable, Sendable {
        /// A challenge has ended, or is gone.
        case challenge(ChallengeID)
        /// The phones of a user have something else to show than they had.
        case user(UserID)
        /// This phone alone has: it was unbound, say, or asks anew.
        case phone(DeviceID)
    }

    private let waiting = Mutex(Waiting())

    init() {}

    /// Who waits for what.
    private struct Waiting {
        private var tickets: [Event: [Ticket]] = [:]
        private(set) var count = 0

        mutating func add(_ ticket: Ticket) {
            count += 1
            for event in ticket.events { tickets[event, default: []].append(ticket) }
        }

        func isAwaited(_ event: Event) -> Bool { tickets[event] != nil }

        mutating func remove(_ ticket: Ticket) {
            if drop(ticket) { count -= 1 }
        }

        /// Everybody who waits for the event, besides those who wait for the other too; they wait for nothing else any more
        /// either.
        mutating func take(_ event: Event, besides known: Event? = nil) -> [Ticket] {
            var taken = tickets.removeValue(forKey: event) ?? []
            if let known {
                let left = taken.filter { $0.events.contains(known) }
                taken.removeAll { $0.events.contains(known) }
                if !left.isEmpty { tickets[event] = left }
            }
            for ticket in taken where ticket.events.count > 1 { _ = drop(ticket) }
            count -= taken.count
            return taken
        }

        /// Whether it was there.
        private mutating func drop(_ ticket: Ticket) -> Bool {
            var wasThere = false
            for event in ticket.events {
                guard let place = tickets[event]?.firstIndex(where: { $0 === ticket }) else { continue }
                wasThere = true
                tickets[event]?.remove(at: place)
                if tickets[event]?.isEmpty == true { tickets[event] = nil }
            }
            return wasThere
        }
    }

    /// One waiting request. Taken before the store is read, so that an event between reading and arming is not missed.
    public final class Ticket: Sendable {
        private enum State {
            case taken
            case armed(@Sendable () -> Void)
            case over(hasHappened: Bool)
        }

        private let state = Mutex<State>(.taken)
        fileprivate let events: [Event]
        private let waits: Waits

        fileprivate init(events: [Event], waits: Waits) {
            self.events = events
            self.waits = waits
        }

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
            waits.remove(self)
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
        let ticket = Ticket(events: events + (place.map { [$0] } ?? []), waits: self)
        let earlier = waiting.withLock { waiting in
            let earlier = place.map { waiting.take($0) } ?? []
            waiting.add(ticket)
            return earlier
        }
        for ticket in earlier { ticket.fire(hasHappened: false) }
        return ticket
    }

    /// Once more, for who was the newest of something; nil where a newer one is there by now.
    func ticket(again events: [Event], newestOf place: Event) -> Ticket? {
        let ticket = Ticket(events: events + [place], waits: self)
        return waiting.withLock { waiting in
            guard !waiting.isAwaited(place) else { return nil }
            waiting.add(ticket)
            return ticket
        }
    }

    public func fire(_ event: Event) {
        for ticket in waiting.withLock({ $0.take(event) }) { ticket.fire() }
    }

    /// Of those who wait for the one, everybody who does not wait for the other too.
    func fire(_ event: Event, besides known: Event) {
        for ticket in waiting.withLock({ $0.take(event, besides: known) }) { ticket.fire() }
    }

    public var isEmpty: Bool { count == 0 }

    public var count: Int { waiting.withLock { $0.count } }

    private func remove(_ ticket: Ticket) { waiting.withLock { $0.remove(ticket) } }
}
