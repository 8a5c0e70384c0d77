import Crypto
import HTTP
import JSON
import World

/// How a provider is to prove who it is.
public enum ProviderAuthentication: Sendable {
    case token(key: P256PublicKey, keyID: String, teamID: String)
    /// Any certificate that the server's TLS context takes.
    case certificate
    /// A certificate counts where no token is brought.
    case tokenOrCertificate(key: P256PublicKey, keyID: String, teamID: String)
}

/// Looks at provider tokens as Apple does: the key, the two ids, the age, and how often there is a new one.
struct ProviderTokenCheck {
    enum Finding: Equatable {
        case right(token: String?)
        case wrong(AppleReason)
    }

    /// Apple's hour, with a little for clocks that differ.
    static let life = Duration.seconds(3600)
    static let ahead = Duration.seconds(300)
    static let updates = Duration.seconds(20 * 60)

    /// Different tokens within 20 minutes. Apple's number is its own; a provider that restarts has a new one.
    let updateLimit: Int
    /// Tokens whose signature was found right, and when each was first seen.
    private var known: [(token: String, issued: Timestamp, seen: Timestamp)] = []

    /// Whose tokens count; nil: nobody's.
    private let team: (key: P256PublicKey, keyID: String, teamID: String)?
    /// Whether a certificate counts where no token is brought.
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
        // A certificate counts in place of a token, and not beside one.
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

    /// Nil unless the token is signed by this key and names it and the team.
    private func issue(of token: String, _ team: (key: P256PublicKey, keyID: String, teamID: String)) -> Timestamp? {
        guard let object = try? JWS.parse(token, maxBytes: 4096), object.header["kid"]?.string == team.keyID,
            object.verify(team.key), let claims = try? JSONReader.read(object.payload).object,
            claims["iss"]?.string == team.teamID, let seconds = claims["iat"]?.integer,
            (0..<100_000_000_000).contains(seconds)  // Milliseconds would be far beyond.
        else { return nil }
        return Timestamp(seconds: seconds)
    }
}
