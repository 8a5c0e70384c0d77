import Bytes
import Crypto
import JSON
import Log
import Synchronization
import World

/// The authentication of the relay to push services (RFC 8292). Each service gets its own token,
/// signed by the key that subscriptions are made for. A token is valid for twelve hours and is
/// renewed in the background after six.
public final class VAPID: Sendable {
    static let life = Duration.seconds(12 * 3600)
    /// The maximum number of cached tokens. Users choose the services, so their number is
    /// unbounded.
    static let remembered = 1000

    private struct Token {
        let text: String
        let madeAt: Timestamp
        var isRenewing = false
    }

    private let key: P256PrivateKey
    private let contact: String
    private let time: any TimeSource
    private let log: Log
    private let tokens = Mutex<[String: Token]>([:])

    /// - Parameter contact: a `mailto:` or `https:` URI for the people who run a push service.
    public init(key: P256PrivateKey, contact: String, time: any TimeSource, log: Log) {
        self.key = key
        self.contact = contact
        self.time = time
        self.log = log
    }

    /// The public key that subscriptions are made for, which browsers call `applicationServerKey`.
    public var applicationServerKey: String { Base64URL.encode(key.publicKey.x963) }

    /// Returns the value of `authorization` for a service.
    ///
    /// - Parameter later: runs its work when the caller has nothing more urgent to do.
    func authorization(
        for origin: String, later: (@escaping @Sendable () -> Void) -> Void
    ) throws(CryptoFailure) -> String {
        let now = time.now()
        let (known, mustRenew) = tokens.withLock { tokens -> (String?, Bool) in
            // The clock may have been set forward or back since.
            guard let token = tokens[origin], now >= token.madeAt, now < token.madeAt + Self.life - .seconds(3600)
            else {
                return (nil, false)
            }
            guard now >= token.madeAt + Self.life / 2, !token.isRenewing else { return (token.text, false) }
            tokens[origin]?.isRenewing = true
            return (token.text, true)
        }
        if let known {
            if mustRenew { later { self.renew(origin) } }
            return known
        }
        return try mint(origin, at: now)
    }

    private func renew(_ origin: String) {
        do throws(CryptoFailure) {
            _ = try mint(origin, at: time.now())
        } catch {
            // The old token stays valid for hours, and the next caller tries again.
            tokens.withLock { $0[origin]?.isRenewing = false }
            log.error("webpush.token.unsigned", [.error: error.description])
        }
    }

    private func mint(_ origin: String, at now: Timestamp) throws(CryptoFailure) -> String {
        let claims: JSONObject = [
            "aud": .string(origin), "exp": .integer((now + Self.life).seconds), "sub": .string(contact),
        ]
        let token = try JWS.sign(header: ["typ": "JWT"], payload: JSONWriter.write(claims), key: key)
        let text = "vapid t=\(token), k=\(applicationServerKey)"
        tokens.withLock { tokens in
            if tokens.count >= Self.remembered, let oldest = tokens.min(by: { $0.value.madeAt < $1.value.madeAt }) {
                tokens[oldest.key] = nil
            }
            tokens[origin] = Token(text: text, madeAt: now)
        }
        return text
    }

    /// The number of cached tokens.
    var count: Int { tokens.withLock { $0.count } }
}
