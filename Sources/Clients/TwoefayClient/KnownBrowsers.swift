import Bytes
import Crypto
import World

/// Makes and checks a cookie value that marks a browser as known for one user.
///
/// A website sets the cookie after a successful login in that browser. It reads the cookie at the
/// next login, and passes the result on as `LoginRequest.isKnown`. An attacker with a stolen
/// password has no valid cookie for that user. Logins from the attacker's browser therefore cannot
/// end the owner's login or use up the owner's limits.
///
/// The cookie does not log anybody in, and it is not a second factor. Its value is bound to one
/// user and authenticated by HMAC-SHA-256 with a key of the website. It expires after `life`. A
/// value made before `notBefore` is also invalid; the website can store that time for a user, for
/// example after a password change or a fraud report.
///
/// Set the cookie with `HttpOnly; Secure; SameSite=Lax` and a `Max-Age` of `life`. Keep it apart
/// from the session cookie, because it outlives sessions.
///
///     let browsers = try KnownBrowsers(key: key)
///     let isKnown = browsers.knows(cookie, as: "ada", at: now)
///     let login = try await relay.ask(LoginRequest(username: "ada", isKnown: isKnown))
public struct KnownBrowsers: Sendable {
    /// The lifetime of a cookie value: 180 days.
    public static let life = Duration.seconds(180 * 86_400)

    /// The error for a key that somebody could guess.
    public struct ShortKey: Error, Equatable, CustomStringConvertible {
        public var description: String { "the key needs at least \(KnownBrowsers.leastBytes) bytes" }
    }

    private static let leastBytes = 32

    private let key: Secret

    /// Creates a maker and checker of cookie values.
    ///
    /// - Parameter key: a secret of the website, at least 32 bytes, the same on all of its servers.
    public init(key: Secret) throws(ShortKey) {
        guard key.count >= Self.leastBytes else { throw ShortKey() }
        self.key = key
    }

    /// Creates a maker and checker with a key of its own, for one server. Its cookies are invalid
    /// after a restart.
    public init(_ randomness: any Randomness = SystemRandomness()) { key = Secret(randomness.bytes(Self.leastBytes)) }

    /// Returns a new cookie value for the browser in which this user has just logged in.
    public func value(for username: String, at now: Timestamp, _ randomness: any Randomness = SystemRandomness())
        -> String
    {
        let body = Self.seconds(now) + randomness.bytes(12)
        return Base64URL.encode(body + tag(body, username))
    }

    /// Whether the value was made for this user and is still valid.
    ///
    /// A value may be at most 60 seconds in the future, because the clocks of servers differ.
    ///
    /// - Parameters:
    ///   - value: the cookie as the browser sent it; nil if it sent none.
    ///   - username: the user who is about to log in.
    ///   - now: the time of the request.
    ///   - notBefore: values made before this time are invalid.
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
