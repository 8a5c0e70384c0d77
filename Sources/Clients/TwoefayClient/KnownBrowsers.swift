import Bytes
import Crypto
import World

/// The value of a cookie by which a website knows a browser as a user's: set after a login that
/// succeeded there, read at the next one, and passed on as `LoginRequest.isKnown`.
///
/// Whoever has stolen a password has no such cookie, so their logins cannot end the owner's or use
/// up its limits. It lets nobody in, and is no second factor. It is bound to one user and signed
/// with a key of the website's own, and it ends with its age, or with a time that the website keeps
/// for the user (`notBefore`): a changed password, a report of fraud.
///
/// Set it with `HttpOnly; Secure; SameSite=Lax; Max-Age` of `KnownBrowsers.life`, apart from the session's cookie: it
/// outlives sessions.
public struct KnownBrowsers: Sendable {
    /// 180 days.
    public static let life = Duration.seconds(180 * 86_400)

    private let key: Secret

    /// - Parameter key: 32 bytes at least, the website's own, the same at all its servers.
    public init(key: Secret) { self.key = key }

    /// A new value for the browser in which this user has just logged in.
    public func value(for username: String, at now: Timestamp, _ randomness: any Randomness = SystemRandomness())
        -> String
    {
        let body = Self.seconds(now) + randomness.bytes(12)
        return Base64URL.encode(body + tag(body, username))
    }

    /// Whether the value was made for this user, and holds still.
    ///
    /// - Parameter notBefore: earlier ones hold no more.
    public func knows(
        _ value: String?, as username: String, at now: Timestamp, notBefore: Timestamp? = nil
    ) -> Bool {
        guard let value, value.utf8.count <= 128, let bytes = Base64URL.decode(value), bytes.count == 8 + 12 + 32 else {
            return false
        }
        let body = Array(bytes.prefix(20))
        guard Secret.matches(Array(bytes.dropFirst(20)), tag(body, username)) else { return false }
        let madeAt = body.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard let seconds = Int64(exactly: madeAt) else { return false }
        let made = Timestamp(seconds: seconds)
        return made <= now + .seconds(60) && now < made + Self.life && notBefore.map { made >= $0 } ?? true
    }

    private func tag(_ body: [UInt8], _ username: String) -> [UInt8] {
        HMAC.sha256(key: key, Array("twoefay known browser".utf8) + [0] + body + Array(username.utf8))
    }

    private static func seconds(_ moment: Timestamp) -> [UInt8] {
        let seconds = UInt64(max(0, moment.seconds))
        return (0..<8).map { UInt8(truncatingIfNeeded: seconds >> (56 - 8 * UInt64($0))) }
    }
}
