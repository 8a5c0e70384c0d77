import Domain
import JSON
import Log
import World

/// The store operations of `/pending`, which gives phones their user's pending challenges with
/// everything to show and to sign. It works without a push service, and for challenges without a
/// push.
public protocol PendingStore: Sendable {
    /// The open challenges of the user, the oldest first.
    func pending(of user: UserID, at: Timestamp) async throws(StoreFailure) -> [Pending]
    /// Records that phones have shown challenges: the current step of each becomes `seen` if it is
    /// still open.
    func markSeen(_ challenges: [SeenChallenge]) async throws(StoreFailure)
}

/// A pending challenge as a phone gets it.
public struct Pending: Sendable, Equatable {
    public let challenge: ChallengeID
    public let nonce: [UInt8]
    public let context: [UInt8]
    public let expiresAt: Timestamp
    public let askedAt: Timestamp
    public let policy: String
    /// The current factor if no phone has shown the challenge yet; nil otherwise.
    public let unseen: Factor?
    /// Whether the website wants to know the coarse place of the phone.
    public internal(set) var asksPlace = false
    /// The demands that the phone must meet to approve; nil if there are none.
    public internal(set) var demands: JSONObject?

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
    /// The largest number of challenges that a request of a phone may name as known. A user has at
    /// most two open challenges, one from a known browser and one from another, and a phone shows
    /// one at a time.
    public static let mostKnown = 16

    public func pending(for phone: PhoneCredential) async throws(Refusal) -> [Pending] {
        let open = try await withStore("pending") { () async throws(StoreFailure) in
            try await store.pending(of: phone.user, at: time.now())
        }
        // If the website accepts no answer by phone, a challenge is not shown, because the phone
        // could not answer it.
        var pending = open.compactMap { each -> Pending? in
            guard let policy = try? policies.policy(changedBy: each.policy) else { return each }
            guard policy.factors.contains(.push) else { return nil }
            var each = each
            each.asksPlace = policy.phonePlace != .ignore && policy.answers == .signed
            return each
        }
        try await setDemands(on: phone, &pending)
        for each in pending {
            guard let factor = each.unseen, seen.add(each.challenge, at: time.now()) else { continue }
            log.info(
                factor == .push ? "push.seen" : "challenge.seen",
                [
                    .challenge: each.challenge.text, .device: phone.id.text,
                    .milliseconds: (time.now() - each.askedAt).wholeMilliseconds,
                ])
        }
        return pending
    }

    /// Takes a ticket for a phone that waits for a change of its known list. It replaces an earlier
    /// request of the same phone: the newest wins.
    public func ticket(for phone: PhoneCredential, knowing known: [ChallengeID]) -> HeldRequests.Ticket {
        heldRequests.ticket(for: Self.events(phone, known), newestOf: .phone(phone.id))
    }

    /// Takes another ticket for a phone that was woken without news; returns nil if a newer request
    /// of the same phone waits.
    public func ticketAgain(for phone: PhoneCredential, knowing known: [ChallengeID]) -> HeldRequests.Ticket? {
        heldRequests.ticket(again: Self.events(phone, known), newestOf: .phone(phone.id))
    }

    private static func events(_ phone: PhoneCredential, _ known: [ChallengeID]) -> [HeldRequests.Event] {
        [.user(phone.user)] + known.map { .challenge($0) }
    }

    /// The longest time to hold a request while these challenges are pending, at most until the
    /// next one expires.
    public func waitLimit(_ pending: [Pending], wanted: Duration) -> Duration {
        let now = time.now()
        return pending.map { $0.expiresAt - now }.reduce(wanted) { max(.zero, min($0, $1)) }
    }
}
