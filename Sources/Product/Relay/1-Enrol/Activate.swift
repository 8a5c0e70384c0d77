import Bytes
import Crypto
import Domain
import Log
import World

/// The store port for activation codes (verb Enrol). With an activation code, a user binds one
/// phone.
public protocol ActivateStore: Sendable {
    /// Stores an activation code. Returns nil if the user does not exist, or if the approval cannot
    /// be used, or no longer.
    func activate(
        _ activation: NewActivation, website: WebsiteID, secret: StoredSecret?, as operation: Operation
    ) async throws(StoreFailure) -> Activated?
}

/// A stored activation.
public struct Activated: Sendable, Equatable {
    /// When the code expires.
    public let expiresAt: Timestamp
    /// The sealed operation secret from the store; nil if none is stored.
    public let secret: [UInt8]?

    public init(expiresAt: Timestamp, secret: [UInt8]?) {
        self.expiresAt = expiresAt
        self.secret = secret
    }
}

/// An activation code: 120 bits, as text that a person can type. The store gets only its digest.
public struct ActivationCode: Sendable {
    public let text: String

    public init(_ secret: OperationSecret) {
        text = Base64URL.encode(secret.derive("activation", count: 15))
    }

    init(text: String) { self.text = text }

    public var digest: [UInt8] { SHA256.hash(Array(text.utf8)) }
}

/// A challenge with which the user approved a change, and the digest of that change. An approval
/// can be used once.
public struct Approved: Sendable {
    public let challenge: ChallengeID
    public let digest: [UInt8]
}

/// An activation to be stored.
public struct NewActivation: Sendable {
    public static let lifetime = Duration.seconds(600)

    public let digest: [UInt8]
    public let user: UserID
    /// The party that approved a further phone when the code was created; nil if nobody was asked.
    public let approval: Approval?
    /// The challenge with which the user approved; nil if the user was not asked.
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

/// An activation code with its URI, which binds one phone. The person sees it once.
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
    /// Creates an activation code for a phone. If a factor of the user was ever bound, the user
    /// must approve first, unless the website's policy lets the website approve.
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
    /// The approval that an activation has without asking the user; nil if it has none.
    var activationApproval: Approval? {
        furtherFactors == .website || answers == .website ? .website : nil
    }
}
