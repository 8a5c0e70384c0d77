import Domain
import Synchronization

/// The requests that wait for something to happen. One small object each: no task, no thread, no polling.
public final class Waits: Sendable {
    public enum Event: Hashable, Sendable {
        /// A challenge has ended, or is gone.
        case challenge(ChallengeID)
        /// Something else waits for a phone than did before.
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
        private let event: Event
        private let waits: Waits

        fileprivate init(event: Event, waits: Waits) {
            self.event = event
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
            waits.remove(self, event)
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

    public func ticket(for event: Event) -> Ticket {
        let ticket = Ticket(event: event, waits: self)
        waiting.withLock { $0[event, default: []].append(ticket) }
        return ticket
    }

    public func fire(_ event: Event) {
        let tickets = waiting.withLock { $0.removeValue(forKey: event) } ?? []
        for ticket in tickets { ticket.fire() }
    }

    public var count: Int { waiting.withLock { $0.values.reduce(0) { $0 + $1.count } } }

    private func remove(_ ticket: Ticket, _ event: Event) {
        waiting.withLock { waiting in
            waiting[event]?.removeAll { $0 === ticket }
            if waiting[event]?.isEmpty == true { waiting[event] = nil }
        }
    }
}
