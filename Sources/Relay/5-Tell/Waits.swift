import Domain
import Synchronization

/// The requests that wait for a challenge to end. One small object each: no task, no thread, no polling.
public final class Waits: Sendable {
    private let waiting = Mutex<[ChallengeID: [Ticket]]>([:])

    init() {}

    /// One waiting request. Taken before the challenge is read, so that an end between reading and arming is not missed.
    public final class Ticket: Sendable {
        private enum State {
            case taken
            case armed(@Sendable () -> Void)
            case over
        }

        private let state = Mutex<State>(.taken)
        private let challenge: ChallengeID
        private let waits: Waits

        fileprivate init(challenge: ChallengeID, waits: Waits) {
            self.challenge = challenge
            self.waits = waits
        }

        /// `wake` is called once at most, at once if the challenge has ended since the ticket was taken.
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
            waits.remove(self, challenge)
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

    public func ticket(for challenge: ChallengeID) -> Ticket {
        let ticket = Ticket(challenge: challenge, waits: self)
        waiting.withLock { $0[challenge, default: []].append(ticket) }
        return ticket
    }

    /// The challenge has ended, or is gone.
    public func fire(_ challenge: ChallengeID) {
        let tickets = waiting.withLock { $0.removeValue(forKey: challenge) } ?? []
        for ticket in tickets { ticket.fire() }
    }

    public var count: Int { waiting.withLock { $0.values.reduce(0) { $0 + $1.count } } }

    private func remove(_ ticket: Ticket, _ challenge: ChallengeID) {
        waiting.withLock { waiting in
            waiting[challenge]?.removeAll { $0 === ticket }
            if waiting[challenge]?.isEmpty == true { waiting[challenge] = nil }
        }
    }
}
