import Crypto
import JSON
import Log
import Synchronization
import World

/// The one provider token of this process, whichever loop asks. It is minted under a lock and so once; a renewal that
/// is not urgent is handed to `later`, so that no push waits for a signature.
final class ProviderToken: Sendable {
    private struct State {
        var life: ProviderTokenLife
        var isRenewing = false
    }

    private let key: P256PrivateKey
    private let keyID: String
    private let teamID: String
    private let time: any TimeSource
    private let log: Log
    private let state: Mutex<State>

    init(
        key: P256PrivateKey, keyID: String, teamID: String, time: any TimeSource, log: Log
    ) throws(CryptoFailure) {
        self.key = key
        self.keyID = keyID
        self.teamID = teamID
        self.time = time
        self.log = log
        let first = try Self.mint(key: key, keyID: keyID, teamID: teamID, time: time)
        state = Mutex(State(life: ProviderTokenLife(first)))
    }

    /// Whether it speaks for that key.
    func isOf(_ key: P256PrivateKey, keyID: String, teamID: String) -> Bool {
        self.keyID == keyID && self.teamID == teamID && self.key.publicKey == key.publicKey
    }

    var age: Duration { state.withLock { time.instant() - $0.life.current.at } }

    /// The value of `authorization`. `later` runs its work when the caller has nothing more urgent to do.
    func bearer(later: (@escaping @Sendable () -> Void) -> Void) -> String {
        let (bearer, mustRenew) = state.withLock { state in
            state.life.go(on: time.instant())
            switch state.life.need(at: time.instant()) {
            case .none: return (state.life.current.bearer, false)
            case .renewalFirst:
                mint(&state.life)
                return (state.life.current.bearer, false)
            case .renewal:
                defer { state.isRenewing = true }
                return (state.life.current.bearer, !state.isRenewing)
            }
        }
        if mustRenew { later { self.renew() } }
        return bearer
    }

    /// Signs without the lock: the others go on with the token that there is.
    private func renew() {
        let next = Result { () throws(CryptoFailure) in
            try Self.mint(key: key, keyID: keyID, teamID: teamID, time: time)
        }
        state.withLock { state in
            state.isRenewing = false
            // Somebody may have been in greater need of one meanwhile.
            if state.life.need(at: time.instant()) != .none { take(next, &state.life) }
        }
    }

    /// Whether an answer that this token has expired can be followed by another token: there is one already, or one
    /// may be made.
    func mayFollow(_ bearer: String) -> Bool {
        state.withLock { state in
            state.life.current.bearer != bearer || state.life.hasNewer || state.life.mayMint(at: time.instant())
        }
    }

    /// However many requests were refused with it, one token follows.
    func replace(_ bearer: String) {
        state.withLock { state in
            guard state.life.current.bearer == bearer, !state.life.goForward() else { return }
            if state.life.mayMint(at: time.instant()) { mint(&state.life) }
        }
    }

    func tooMany(_ bearer: String) {
        state.withLock { $0.life.tooMany(bearer, at: time.instant()) }
    }

    private func mint(_ life: inout ProviderTokenLife) {
        take(
            Result { () throws(CryptoFailure) in
                try Self.mint(key: key, keyID: keyID, teamID: teamID, time: time)
            }, &life)
    }

    private func take(_ next: Result<ProviderTokenLife.Minted, CryptoFailure>, _ life: inout ProviderTokenLife) {
        switch next {
        case .success(let token):
            life.minted(token)
            log.info("apns.token.minted", [.keyID: keyID])
        case .failure(let failure):
            // The old one stays; Apple says when it is of no use any more.
            log.error("apns.token.unsigned", [.keyID: keyID, .error: failure.description])
        }
    }

    private static func mint(
        key: P256PrivateKey, keyID: String, teamID: String, time: any TimeSource
    ) throws(CryptoFailure) -> ProviderTokenLife.Minted {
        // Apple reads seconds: in milliseconds the token would be from a far future.
        let claims: JSONObject = ["iss": .string(teamID), "iat": .integer(time.now().seconds)]
        let token = try JWS.sign(header: ["kid": .string(keyID)], payload: JSONWriter.write(claims), key: key)
        return ProviderTokenLife.Minted(bearer: "bearer " + token, at: time.instant())
    }
}
