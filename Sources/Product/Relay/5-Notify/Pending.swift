import Domain
import Log
import World

/// Tell, to phones: what waits for their user, with everything to show and to sign. It works without a push service, and
/// for challenges of which nothing was pushed.
public protocol PendingStore: Sendable {
    /// The open challenges of that user, the oldest first.
    func pending(of user: UserID, at: Timestamp) async throws(StoreFailure) -> [Pending]
    /// A phone has what it shows: the step that was under way is `seen`, if it is open still.
    func markSeen(_ challenge: ChallengeID, at: Timestamp) async throws(StoreFailure)
}

/// A challenge as a phone gets it.
public struct Pending: Sendable, Equatable {
    public let challenge: ChallengeID
    public let nonce: [UInt8]
    public let context: [UInt8]
    public let expiresAt: Timestamp
    public let askedAt: Timestamp
    public let policy: String
    /// The factor under way, where no phone has looked yet.
    public let unseen: Factor?

    public init(
        challenge: ChallengeID, nonce: [UInt8], context: [UInt8], askedAt: Timestamp, expiresAt: Timestamp,
        policy: String, unseen: Factor?
    ) {
        self.challenge = challenge
        self.nonce = nonce
        self.context = context
        self.askedAt = askedAt
        self.expiresAt = expiresAt
        self.policy = policy
        self.unseen = unseen
    }
}

extension Relay {
    /// Challenges of one phone that a request may say it knows. There are two open challenges of a
    /// user at most, one from a browser that the website knows and one from another, and a phone is
    /// shown one at a time.
    public static let mostKnown = 16

    public func pending(for phone: PhoneCredential) async throws(Refusal) -> [Pending] {
        let open = try await withStore("pending") { () async throws(StoreFailure) in
            try await store.pending(of: phone.user, at: time.now())
        }
        // Where the website wants no phone for an answer, none is shown what it could not answer.
        let pending = open.filter { each in
            (try? settings.policy.changed(by: each.policy))?.factors.contains(.push) != false
        }
        for each in pending {
            guard let factor = each.unseen else { continue }
            // What the phone shows does not depend on it: a store that reads and cannot write is no reason to be silent.
            let written: Void? = try? await withStore("pending") { () async throws(StoreFailure) in
                try await store.markSeen(each.challenge, at: time.now())
            }
            guard written != nil else { continue }
            log.info(
                factor == .push ? "push.seen" : "challenge.seen",
                [
                    .challenge: each.challenge.text, .device: phone.id.text,
                    .milliseconds: (time.now() - each.askedAt).wholeMilliseconds,
                ])
        }
        return pending
    }

    /// For a phone that waits until something else is pending than what it knows. An earlier request of the same phone
    /// waits no more: the newest wins.
    public func ticket(for phone: PhoneCredential, knowing known: [ChallengeID]) -> HeldRequests.Ticket {
        heldRequests.ticket(for: Self.events(phone, known), newestOf: .phone(phone.id))
    }

    /// For one that was woken by what is no news to it; nil where a newer one of the same phone waits by now.
    public func ticketAgain(for phone: PhoneCredential, knowing known: [ChallengeID]) -> HeldRequests.Ticket? {
        heldRequests.ticket(again: Self.events(phone, known), newestOf: .phone(phone.id))
    }

    private static func events(_ phone: PhoneCredential, _ known: [ChallengeID]) -> [HeldRequests.Event] {
        [.user(phone.user)] + known.map { .challenge($0) }
    }

    /// How long a request may be held while this is pending: not beyond the next expiry.
    public func waitLimit(_ pending: [Pending], wanted: Duration) -> Duration {
        let now = time.now()
        return pending.map { $0.expiresAt - now }.reduce(wanted) { max(.zero, min($0, $1)) }
    }
}
