import Crypto
import JSON
import Log
import Synchronization
import World

/// The provider token that all loops of the process share. An urgent renewal happens under the lock
/// and so only once. Any other renewal is handed to `later`, so that no push waits for a signature.
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

    /// Returns whether the token is made from that key.
    func isOf(_ key: P256PrivateKey, keyID: String, teamID: String) -> Bool {
        self.keyID == keyID && self.teamID == teamID && self.key.publicKey == key.publicKey
    }

    var age: Duration { state.withLock { time.instant() - $0.life.current.at } }

    /// Returns the value of `authorization`.
    ///
    /// - Parameter later: runs its work when the caller has nothing more urgent to do.
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

    /// Signs outside the lock, so that others continue with the current token.
    private func renew() {
        let next = Result { () throws(CryptoFailure) in
            try Self.mint(key: key, keyID: keyID, teamID: teamID, time: time)
        }
        state.withLock { state in
            state.isRenewing = false
            // An urgent renewal may have replaced the token meanwhile.
            if state.life.need(at: time.instant()) != .none { take(next, &state.life) }
        }
    }

    /// Returns whether another token can follow one that Apple calls expired: either one exists
    /// already, or a new one is permitted.
    func mayFollow(_ bearer: String) -> Bool {
        state.withLock { state in
            state.life.current.bearer != bearer || state.life.hasNewer || state.life.mayMint(at: time.instant())
        }
    }

    /// Replaces an expired token. Only the first of many refused requests causes a replacement.
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
            // The old token stays in use until Apple refuses it.
            log.error("apns.token.unsigned", [.keyID: keyID, .error: failure.description])
        }
    }

    private static func mint(
        key: P256PrivateKey, keyID: String, teamID: String, time: any TimeSource
    ) throws(CryptoFailure) -> ProviderTokenLife.Minted {
        // Apple expects seconds; milliseconds would be a time far in the future.
        let claims: JSONObject = ["iss": .string(teamID), "iat": .integer(time.now().seconds)]
        let token = try JWS.sign(header: ["kid": .string(keyID)], payload: JSONWriter.write(claims), key: key)
        return ProviderTokenLife.Minted(bearer: "bearer " + token, at: time.instant())
    }
}

/// The relay signs the token itself, so it is always there.
extension ProviderToken: PushAuthorization {
    func isReady(for pool: PushPool) -> Bool { true }
    func value(later: (@escaping @Sendable () -> Void) -> Void) -> String? { bearer(later: later) }
    var tokenAge: Duration? { age }
    var failure: AuthorizationFailure? { nil }
    var nextAttempt: Instant? { nil }
}
