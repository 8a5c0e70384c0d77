import Crypto
import HTTP
import JSON
import World

/// The method by which a provider must prove its identity.
public enum ProviderAuthentication: Sendable {
    case token(key: P256PublicKey, keyID: String, teamID: String)
    /// Any client certificate that the server's TLS context accepts.
    case certificate
    /// A provider token; or a client certificate if the request has no token.
    case tokenOrCertificate(key: P256PublicKey, keyID: String, teamID: String)
}

/// Checks provider tokens as Apple does: the signature, the two ids, the age, and how often the
/// token changes. Tested in `ProviderTokenCheckTests.swift`.
struct ProviderTokenCheck {
    enum Finding: Equatable {
        case right(token: String?)
        case wrong(RefusalReason)
    }

    /// The lifetime of a token: Apple's hour.
    static let life = Duration.seconds(3600)
    /// The tolerance for a provider's clock that is fast.
    static let ahead = Duration.seconds(300)
    /// The window in which token updates are counted.
    static let updates = Duration.seconds(20 * 60)

    /// The number of different tokens accepted within 20 minutes. Apple does not publish its limit.
    /// A provider has a new token after each restart.
    let updateLimit: Int
    /// The tokens with a verified signature, and the time of their first use.
    private var known: [(token: String, issued: Timestamp, seen: Timestamp)] = []

    /// The team whose tokens are accepted; nil if no tokens are accepted.
    private let team: (key: P256PublicKey, keyID: String, teamID: String)?
    /// Whether a client certificate is accepted from a provider without a token.
    private let hasCertificate: Bool

    init(_ authentication: ProviderAuthentication, updateLimit: Int) {
        self.updateLimit = updateLimit
        switch authentication {
        case .token(let key, let keyID, let teamID): (team, hasCertificate) = ((key, keyID, teamID), false)
        case .certificate: (team, hasCertificate) = (nil, true)
        case .tokenOrCertificate(let key, let keyID, let teamID):
            (team, hasCertificate) = ((key, keyID, teamID), true)
        }
    }

    mutating func look(at request: Request, now: Timestamp) -> Finding {
        // A certificate replaces a token. If the request has both, the token is checked.
        guard let team, !hasCertificate || request.fields["authorization"] != nil || request.certificate == nil else {
            return request.certificate == nil ? .wrong(.missingProviderToken) : .right(token: nil)
        }
        guard let token = bearer(request.fields) else { return .wrong(.missingProviderToken) }
        known.removeAll { now - $0.seen > Self.life }
        let issued: Timestamp
        if let seen = known.first(where: { $0.token == token }) {
            issued = seen.issued
        } else {
            guard let found = issue(of: token, team) else {
                return .wrong(.invalidProviderToken)
            }
            issued = found
        }
        guard now - issued <= Self.life else { return .wrong(.expiredProviderToken) }
        guard issued - now <= Self.ahead else { return .wrong(.invalidProviderToken) }
        if !known.contains(where: { $0.token == token }) {
            guard known.count(where: { now - $0.seen < Self.updates }) < updateLimit else {
                return .wrong(.tooManyProviderTokenUpdates)
            }
            known.append((token, issued, now))
        }
        return .right(token: token)
    }

    private func bearer(_ fields: Fields) -> String? {
        guard let value = fields["authorization"], value.prefix(7).lowercased() == "bearer " else { return nil }
        return String(value.dropFirst("bearer ".count))
    }

    /// Returns the time of issue; nil unless this key signed the token and it names the key and the
    /// team.
    private func issue(of token: String, _ team: (key: P256PublicKey, keyID: String, teamID: String)) -> Timestamp? {
        guard let object = try? JWS.parse(token, maxBytes: 4096), object.header["kid"]?.string == team.keyID,
            object.verify(team.key), let claims = try? JSONReader.read(object.payload).object,
            claims["iss"]?.string == team.teamID, let seconds = claims["iat"]?.integer,
            (0..<100_000_000_000).contains(seconds)  // Milliseconds would be far beyond.
        else { return nil }
        return Timestamp(seconds: seconds)
    }
}
