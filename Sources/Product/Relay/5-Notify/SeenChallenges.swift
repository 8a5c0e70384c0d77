import Domain
import Synchronization
import World

/// The challenges that phones have shown and whose steps are not yet marked in the store.
///
/// Purpose: most challenges are answered soon after a phone shows them. No request waits for the
/// mark: the round of the outbox writes all marks at once, before it looks for due factors. The mark
/// of a challenge that has ended by then is not written.
///
/// Invariant: this relay begins no further factor by itself for a challenge with a mark that is not
/// written.
///
/// Tolerance: a relay that is killed loses the marks of the last second, and other relays see them a
/// second late. Then the next factor may begin although a phone shows the request. What the phone
/// answers counts all the same.
///
/// Tested in `PushDeliveryTests.swift` and `SeenChallengeTests.swift`.
final class SeenChallenges: Sendable {
    /// The phones of one relay show far fewer in a second. Further marks are left out while the store
    /// cannot be written.
    static let most = 65_536
    /// The marks in one script.
    static let scriptSize = 100

    private let times = Mutex<[ChallengeID: Timestamp]>([:])

    /// Adds a challenge; returns false if it is known.
    func add(_ challenge: ChallengeID, at now: Timestamp) -> Bool {
        times.withLock { times in
            guard times.count < Self.most, times[challenge] == nil else { return false }
            times[challenge] = now
            return true
        }
    }

    func time(of challenge: ChallengeID) -> Timestamp? { times.withLock { $0.isEmpty ? nil : $0[challenge] } }

    func forget(_ challenge: ChallengeID) { times.withLock { _ = $0.removeValue(forKey: challenge) } }

    /// The marks that are to be written, in parts.
    var parts: [[SeenChallenge]] {
        let all = times.withLock { $0.map { SeenChallenge(challenge: $0, at: $1) } }
        return stride(from: 0, to: all.count, by: Self.scriptSize).map {
            Array(all[$0..<min($0 + Self.scriptSize, all.count)])
        }
    }
}

/// The time at which a phone showed a challenge.
public struct SeenChallenge: Sendable, Equatable {
    public let challenge: ChallengeID
    public let at: Timestamp

    public init(challenge: ChallengeID, at: Timestamp) {
        self.challenge = challenge
        self.at = at
    }
}

extension Relay {
    /// Writes which challenges phones have shown. What cannot be written stays for the next round.
    public func recordSeen() async {
        for part in seen.parts {
            guard (try? await record(part)) != nil else { return }
        }
    }

    /// Writes the mark of one challenge before a change that depends on it.
    func recordSeen(_ challenge: ChallengeID) async throws(Refusal) {
        guard let at = seen.time(of: challenge) else { return }
        try await record([SeenChallenge(challenge: challenge, at: at)])
    }

    private func record(_ part: [SeenChallenge]) async throws(Refusal) {
        try await withStore("seen") { () async throws(StoreFailure) in try await store.markSeen(part) }
        for each in part { seen.forget(each.challenge) }
    }

    /// Returns the steps of a challenge with the mark that is not written yet.
    func steps(of row: ChallengeRow) -> [ChallengeRow.Step] {
        guard !row.life.state.isEnd, let at = seen.time(of: row.id) else { return row.steps }
        return row.steps.map { step in
            let isShown = [.push, .pull].contains(step.factor) && [.queued, .sent].contains(step.state)
            return isShown ? ChallengeRow.Step(factor: step.factor, state: .seen, at: at, reason: step.reason) : step
        }
    }
}
