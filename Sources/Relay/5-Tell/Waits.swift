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

    private let waiting = Mutex<[Event: [Ticket]]>([:])

    init() {}

    /// One waiting request. Taken before the store is read, so that an event between reading and arming is not missed.
    public final class Ticket: Sendable {
        private enum State {
            case taken
            case armed(@Sendable () -> Void)
            case over
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
            state.withLock { $0 = .over }
            waits.remove(self)
        }

        fileprivate func fire() {
            let wake = state.withLock { state -> (@Sendable () -> Void)? in
                defer { state = .over }
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
            let earlier = place.map { Self.take($0, from: &waiting) } ?? []
            for event in ticket.events { waiting[event, default: []].append(ticket) }
            return earlier
        }
        for ticket in earlier { ticket.fire() }
        return ticket
    }

    public func fire(_ event: Event) {
        for ticket in waiting.withLock({ Self.take(event, from: &$0) }) { ticket.fire() }
    }

    public var count: Int {
        waiting.withLock { waiting in Set(waiting.values.joined().map { ObjectIdentifier($0) }).count }
    }

    private func remove(_ ticket: Ticket) { waiting.withLock { Self.remove(ticket, from: &$0) } }

    /// Everybody who waits for the event; they wait for nothing else any more either.
    private static func take(_ event: Event, from waiting: inout [Event: [Ticket]]) -> [Ticket] {
        let tickets = waiting.removeValue(forKey: event) ?? []
        for ticket in tickets where ticket.events.count > 1 { remove(ticket, from: &waiting) }
        return tickets
    }

    private static func remove(_ ticket: Ticket, from waiting: inout [Event: [Ticket]]) {
        for event in ticket.events {
            waiting[event]?.removeAll { $0 === ticket }
            if waiting[event]?.isEmpty == true { waiting[event] = nil }
        }
    }
}
