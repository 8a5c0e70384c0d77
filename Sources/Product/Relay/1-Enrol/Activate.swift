import Bytes
import Crypto
import Domain
import Log
import World

/// The store port for activation codes (verb Enrol). With an activation code, a user binds one
/// phone.
public protocol ActivateStore: Sendable {
    /// Stores an activation code, and the mail that brings it if it has one. Such a code makes all
    /// earlier unused codes of the user void.
    func activate(
        _ activation: NewActivation, website: WebsiteID, secret: StoredSecret?, as operation: Operation
    ) async throws(StoreFailure) -> ActivateOutcome
}

/// The outcome of storing an activation code.
public enum ActivateOutcome: Sendable, Equatable {
    case done(Activated)
    /// Too many codes were mailed to the user; the time is that of the oldest one that counts.
    case limited(by: Timestamp)
    /// The user has left the directory.
    case disabled
    /// The user does not exist, or the approval cannot be used, or no longer.
    case refused
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
    /// The mail that brings the code; nil if the website or an operator shows it.
    public var mail: ActivationMail?
    /// The recovery of lost phones by which the code is created; nil for others.
    public var recovery: RecoveryUse?
}

extension NewActivation {
    public init(_ code: ActivationCode, for user: UserID, approval: Approval?, at now: Timestamp) {
        self.init(code, for: user, approval: approval, approvedBy: nil, at: now)
    }

    init(_ code: ActivationCode, for user: UserID, approval: Approval?, approvedBy: Approved?, at now: Timestamp) {
        self.init(
            digest: code.digest, user: user, approval: approval, approvedBy: approvedBy, createdAt: now,
            expiresAt: now + Self.lifetime, mail: nil, recovery: nil)
    }
}

/// The addresses by which phones in browsers reach the relay.
public struct BrowserAccess: Sendable, Equatable {
    /// The origin with the routes of phones.
    public let origin: String
    /// The address of the web app; nil if it is not served.
    public let app: String?

    public init(origin: String, app: String?) {
        self.origin = origin
        self.app = app
    }
}

/// An activation code with its URI, which binds one phone. The person sees it once.
public struct Activation: Sendable, Equatable {
    public let code: String
    public let uri: String
    /// The same as a link to the web app, which every camera opens; nil if the app is not served. It
    /// never has the website's secret, because the relay could read it by another page.
    public let link: String?
    public let expiresAt: Timestamp

    /// The content of the QR codes that the relay draws, and the link of its mails.
    public var scanned: String { link ?? uri }

    /// - Parameters:
    ///   - browsers: how phones in browsers reach the relay; nil if they do not.
    ///   - pin: SHA-256 of the key of the authority that signed the relay's certificate.
    public init(
        _ code: ActivationCode, token: UserToken, website: String, origin: String, browsers: BrowserAccess?,
        pin: [UInt8], expiresAt: Timestamp
    ) {
        self.code = code.text
        let parameters =
            "relay=\(PercentEncoding.encode(origin))&website=\(PercentEncoding.encode(website))"
            + "&token=\(token.text)&code=\(code.text)&pin=\(Base64URL.encode(pin))"
            + (browsers.map { "&at=\(PercentEncoding.encode($0.origin))" } ?? "")
        uri = "twoefay://enrol?" + parameters
        link = browsers?.app.map { "\($0)#\(parameters)" }
        self.expiresAt = expiresAt
    }
}

extension Relay {
    /// Creates an activation code for a phone, and mails it if the policy says so. If a factor of
    /// the user was ever bound, the user must approve first, unless the website's policy lets the
    /// website approve.
    public func activate(
        username: String, approval: ChallengeID? = nil, by website: Website, as operation: Operation
    ) async throws(Refusal) -> IssuedActivation {
        let user = try await user(named: username, of: website)
        guard user.state != .disabled else { throw .disabled }
        guard user.state != .expired else { throw .userExpired }
        let word = website.policy.activationApproval
        // The user is not asked if the code could not be mailed.
        try mailable(user, of: website)
        var approvedBy: Approved?
        if user.isProved, word == nil {
            approvedBy = try await approved(.activation(of: user.id), by: approval, user, website, operation)
        }
        return try await issueActivation(for: user, .approved(approvedBy), by: website, as: operation)
    }

    func issueActivation(
        for user: UserRow, _ permission: FactorPermission, by website: Website, as operation: Operation
    ) async throws(Refusal) -> IssuedActivation {
        let (secret, now) = (drawSecret(), time.now())
        let mailed = try activationMail(secret, to: user, of: website, at: now, as: operation)
        let approvedBy = permission.approved
        let word: Approval? = permission.recovery == nil ? website.policy.activationApproval : .recovery
        var new = NewActivation(
            ActivationCode(secret), for: user.id, approval: approvedBy == nil ? word : .user, approvedBy: approvedBy,
            at: now)
        new.mail = mailed?.mail
        new.recovery = permission.recovery
        let use = OperationSecret.Use(.activation, user: user.id, website: website.id)
        let stored = mailed == nil ? try stored(secret, for: use, of: operation, at: now) : nil
        let written = try await activated(new, by: website, secret: stored, as: operation)
        log.info(
            "user.activation",
            [.website: website.name, .user: user.id.text, .outcome: new.approval?.rawValue ?? "none"])
        if let mailed {
            startMail(mailed.mail.entry, of: website.limited)
            return .mailed(to: mailed.to, expiresAt: written.expiresAt)
        }
        let code = ActivationCode(try settled(secret, for: use, of: operation, found: written.secret))
        return .shown(activation(code, token: user.token, website: website, expiresAt: written.expiresAt))
    }

    private func activated(
        _ new: NewActivation, by website: Website, secret: StoredSecret?, as operation: Operation
    ) async throws(Refusal) -> Activated {
        let outcome = try await withStore("activation") { [new] () async throws(StoreFailure) in
            try await store.activate(new, website: website.id, secret: secret, as: operation)
        }
        switch outcome {
        case .done(let activated): return activated
        case .disabled: throw .disabled
        case .refused: throw new.approvedBy == nil || new.recovery != nil ? .notFound : Self.noApproval
        case .limited(let oldest):
            metrics.reached(.sending)
            log.notice("activation.limited", [.website: website.name, .user: new.user.text])
            throw .limited(retryAfter: oldest + ActivationMail.window - new.createdAt)
        }
    }

    func activation(
        _ code: ActivationCode, token: UserToken, website: Website, expiresAt: Timestamp
    ) -> Activation {
        Activation(
            code, token: token, website: website.name, origin: settings.origin,
            browsers: settings.browsers, pin: activationPin, expiresAt: expiresAt)
    }
}

extension Policy {
    /// The approval that an activation has without asking the user; nil if it has none.
    public var activationApproval: Approval? {
        furtherFactors == .website || answers == .website ? .website : nil
    }
}
