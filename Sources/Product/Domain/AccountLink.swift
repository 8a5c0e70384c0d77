import Bytes
import Crypto
import JSON
import World

/// A link in a mail with which the user sees the account without a phone: a `twoefay-account+jwt`.
///
/// The relay signs it with a key of the installation (HS256) and stores nothing about it, so every
/// relay accepts the links of the others. Whoever has the link can read the account and report a
/// login as fraud until it expires. It grants nothing else.
public struct AccountLink: Sendable, Equatable {
    public static let type = "twoefay-account+jwt"
    public static let maxBytes = 1024
    public static let lifetime = Duration.seconds(24 * 3600)

    public let user: UserToken
    /// The name of the user's website.
    public let website: String
    /// The mail that carries it. All attempts to send a mail have the same id.
    public let mail: OutboxEntryID
    public let issuedAt: Timestamp

    public init(to user: UserToken, of website: String, in mail: OutboxEntryID, at now: Timestamp) {
        self.user = user
        self.website = website
        self.mail = mail
        issuedAt = Timestamp(seconds: now.seconds)
    }

    /// Returns the signed text.
    ///
    /// - Parameter origin: the origin of the installation.
    public func signed(origin: String, key: Secret) -> String {
        let claims: JSONObject = [
            "v": 1, "aud": .string(SignedDecision.audience(origin: origin, website: website)),
            "id_token": .string(user.text), "iat": .integer(issuedAt.seconds),
            "exp": .integer((issuedAt + Self.lifetime).seconds), "jti": .string(mail.text),
        ]
        return JWS.sign(
            header: ["typ": .string(Self.type)], payload: JSONWriter.write(.object(claims)), secret: key)
    }

    /// Reads a signed text; nil if this installation did not sign it, or if it has expired.
    public init?(_ compact: String, origin: String, key: Secret, at now: Timestamp) {
        guard let object = try? JWS.parse(compact, algorithm: .hs256, maxBytes: Self.maxBytes),
            object.type == Self.type, object.verify(key),
            let claims = (try? JSONReader.read(object.payload))?.object, claims["v"]?.integer == 1,
            let audience = claims["aud"]?.string, audience.hasPrefix(origin + "#"),
            let user = claims["id_token"]?.string.flatMap({ UserToken($0) }),
            let mail = claims["jti"]?.string.flatMap({ OutboxEntryID($0) }),
            let issued = claims["iat"]?.integer, let expires = claims["exp"]?.integer, now.seconds < expires
        else { return nil }
        self.user = user
        self.mail = mail
        website = String(audience.dropFirst(origin.count + 1))
        issuedAt = Timestamp(seconds: issued)
    }
}
