import Bytes
import Crypto
import Domain
import Log
import World

/// Enrol: a code with which one phone can be bound.
public protocol ActivateStore: Sendable {
    /// Returns nil if there is no such user, or its approval cannot be used (any more).
    func activate(
        _ activation: NewActivation, website: WebsiteID, secret: StoredSecret?, as operation: Operation
    ) async throws(StoreFailure) -> Activated?
}

/// An activation that is stored.
public struct Activated: Sendable, Equatable {
    /// Until then the code can be used.
    public let expiresAt: Timestamp
    /// The operation's secret as it is stored, sealed.
    public let secret: [UInt8]?

    public init(expiresAt: Timestamp, secret: [UInt8]?) {
        self.expiresAt = expiresAt
        self.secret = secret
    }
}

/// The code itself: 120 bits, as text that survives being typed. The store gets its digest alone.
public struct ActivationCode: Sendable {
    public let text: String

    public init(_ secret: OperationSecret) {
        text = Base64URL.encode(secret.derive("activation", count: 15))
    }

    init(text: String) { self.text = text }

    public var digest: [UInt8] { SHA256.hash(Array(text.utf8)) }
}

/// A challenge with which the user has approved, and of what. It is used once.
public struct Approved: Sendable {
    public let challenge: ChallengeID
    public let digest: [UInt8]
}

public struct NewActivation: Sendable {
    public static let lifetime = Duration.seconds(600)

    public let digest: [UInt8]
    public let user: UserID
    /// Whose word it is that the phone may be bound; nil where nobody was asked.
    public let approval: Approval?
    /// Of the user's word: with what they gave it.
    public let approvedBy: Approved?
    public let createdAt: Timestamp
    public let expiresAt: Timestamp
}

extension NewActivation {
    public init(_ code: ActivationCode, for user: UserID, approval: Approval?, at now: Timestamp) {
        self.init(code, for: user, approval: approval, approvedBy: nil, at: now)
    }

    init(_ code: ActivationCode, for user: UserID, approval: Approval?, approvedBy: Approved?, at now: Timestamp) {
        self.init(
            digest: code.digest, user: user, approval: approval, approvedBy: approvedBy, createdAt: now,
            expiresAt: now + Self.lifetime)
    }
}

/// What binds one phone: to be shown to the person once.
public struct Activation: Sendable, Equatable {
    public let code: String
    public let uri: String
    public let expiresAt: Timestamp

    /// - Parameter pin: SHA-256 of the key of the authority that signed the relay's certificate.
    public init(
        _ code: ActivationCode, token: UserToken, website: String, origin: String, pin: [UInt8], expiresAt: Timestamp
    ) {
        self.code = code.text
        uri =
            "twoefay://enrol?relay=\(PercentEncoding.encode(origin))&website=\(PercentEncoding.encode(website))"
            + "&token=\(token.text)&code=\(code.text)&pin=\(Base64URL.encode(pin))"
        self.expiresAt = expiresAt
    }
}

extension Relay {
    /// A code for a further phone. Once a factor of the user's own was bound, the user has to approve of it first, unless
    /// the website's policy takes its own word for that.
    public func activate(
        username: String, approval: ChallengeID? = nil, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Activation {
        let user = try await user(named: username, of: website)
        let word = website.policy.activationApproval
        var approvedBy: Approved?
        if user.isProved, word == nil {
            approvedBy = try await approved(.activation(of: user.id), by: approval, user, website, operation)
        }
        let (secret, now) = (drawSecret(), time.now())
        let new = NewActivation(
            ActivationCode(secret), for: user.id, approval: approvedBy == nil ? word : .user, approvedBy: approvedBy,
            at: now)
        let use = OperationSecret.Use(.activation, user: user.id, website: website.id)
        let stored = try stored(secret, for: use, of: operation, at: now)
        let activated = try await withStore("activation") { () async throws(StoreFailure) in
            try await store.activate(new, website: website.id, secret: stored, as: operation)
        }
        guard let activated else { throw approvedBy == nil ? .notFound : Self.noApproval }
        log.info(
            "user.activation",
            [.website: website.name, .user: user.id.text, .outcome: new.approval?.rawValue ?? "none"])
        let code = ActivationCode(try settled(secret, for: use, of: operation, found: activated.secret))
        return activation(code, token: user.token, website: website, expiresAt: activated.expiresAt)
    }

    func activation(
        _ code: ActivationCode, token: UserToken, website: Website, expiresAt: Timestamp
    ) -> Activation {
        Activation(
            code, token: token, website: website.name, origin: settings.origin, pin: settings.pin,
            expiresAt: expiresAt)
    }
}

extension Policy {
    /// Whose word an activation has from the start.
    var activationApproval: Approval? {
        furtherFactors == .website || answers == .website ? .website : nil
    }
}
