import World

/// The rules for renewing the provider token. Apple accepts a token for 60 minutes, and accepts a
/// new one only 20 minutes after the last.
struct ProviderTokenLife {
    /// The age from which a token is replaced in the background.
    static let renewal = Duration.seconds(45 * 60)
    /// The age from which a token is replaced before anything else is sent.
    static let latest = Duration.seconds(50 * 60)
    static let hold = Duration.seconds(20 * 60)
    /// The age from which Apple is about to call the token expired.
    private static let expiry = Duration.seconds(60 * 60 - 30)

    struct Minted: Equatable {
        let bearer: String
        let at: Instant
    }

    enum Need: Equatable {
        case none
        /// A renewal in the background.
        case renewal
        /// A renewal before anything is sent.
        case renewalFirst
    }

    private(set) var current: Minted
    /// The previous token; or the newer one, if Apple refused it as too early.
    private var other: Minted?
    private var held: Instant?

    init(_ first: Minted) { current = first }

    func need(at now: Instant) -> Need {
        guard mayMint(at: now) else { return .none }
        let age = now - current.at
        return age >= Self.latest ? .renewalFirst : age >= Self.renewal ? .renewal : .none
    }

    /// Returns whether Apple would accept another new token.
    func mayMint(at now: Instant) -> Bool {
        if let held, now - held < Self.hold { return false }
        return now - current.at >= Self.hold
    }

    mutating func minted(_ token: Minted) {
        other = current
        current = token
        held = nil
    }

    /// Handles Apple's answer that it got too many tokens. No new token is made for a while, and
    /// the previous one is used again if it is still valid.
    mutating func tooMany(_ bearer: String, at now: Instant) {
        held = now
        guard bearer == current.bearer, let before = other, before.at < current.at, now - before.at < Self.expiry else {
            return
        }
        (current, other) = (before, current)
    }

    /// Switches to the newer token when the current one has expired, even if Apple refused the
    /// newer one as too early.
    mutating func go(on now: Instant) {
        if now - current.at >= Self.expiry { goForward() }
    }

    /// Switches to the newer token. Returns false if there is none.
    @discardableResult
    mutating func goForward() -> Bool {
        guard hasNewer, let newer = other else { return false }
        (current, other) = (newer, current)
        return true
    }

    var hasNewer: Bool { other.map { $0.at > current.at } ?? false }
}
