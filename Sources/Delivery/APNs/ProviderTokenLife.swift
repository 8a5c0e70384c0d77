import World

/// When to have which provider token. Apple takes one for 60 minutes and no new one within 20.
struct ProviderTokenLife {
    /// From here on a token is replaced when there is time for it.
    static let renewal = Duration.seconds(45 * 60)
    /// From here on it is not sent before it is replaced.
    static let latest = Duration.seconds(50 * 60)
    static let hold = Duration.seconds(20 * 60)
    /// From here on Apple is about to call it expired.
    private static let expiry = Duration.seconds(60 * 60 - 30)

    struct Minted: Equatable {
        let bearer: String
        let at: Instant
    }

    enum Need: Equatable {
        case none
        /// Soon, by whoever gets to it.
        case renewal
        /// Before anything is sent.
        case renewalFirst
    }

    private(set) var current: Minted
    /// The one before; or the one after, when Apple wanted none so soon.
    private var other: Minted?
    private var held: Instant?

    init(_ first: Minted) { current = first }

    func need(at now: Instant) -> Need {
        guard mayMint(at: now) else { return .none }
        let age = now - current.at
        return age >= Self.latest ? .renewalFirst : age >= Self.renewal ? .renewal : .none
    }

    /// Whether Apple would take yet another token.
    func mayMint(at now: Instant) -> Bool {
        if let held, now - held < Self.hold { return false }
        return now - current.at >= Self.hold
    }

    mutating func minted(_ token: Minted) {
        other = current
        current = token
        held = nil
    }

    /// Apple has had too many tokens of us: no new one for a while, and back to the last one if it still counts.
    mutating func tooMany(_ bearer: String, at now: Instant) {
        held = now
        guard bearer == current.bearer, let before = other, before.at < current.at, now - before.at < Self.expiry else {
            return
        }
        (current, other) = (before, current)
    }

    /// The one that came too soon is the better one when that before it has run out.
    mutating func go(on now: Instant) {
        if now - current.at >= Self.expiry { goForward() }
    }

    /// True if there was a newer one to go to.
    @discardableResult
    mutating func goForward() -> Bool {
        guard hasNewer, let newer = other else { return false }
        (current, other) = (newer, current)
        return true
    }

    var hasNewer: Bool { other.map { $0.at > current.at } ?? false }
}
