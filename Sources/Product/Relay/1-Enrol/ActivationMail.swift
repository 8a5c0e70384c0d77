import Bytes
import Crypto
import Domain
import Log
import World

/// The mail with which the relay itself brings an activation code to its user (policies `enrolment:
/// letter` and `confirmed`). The website never sees the code.
///
/// The mail may be attempted several times and by several relays, and each attempt must bring the
/// same code. So the secret of the code is stored beside the outbox entry, sealed for exactly this
/// entry, user and website, and deleted with the entry. The table `activation` has only the digest.
///
/// Invariant: a user has one mailed code at a time, and it was mailed to the user's address. The
/// script that stores a new one makes all earlier unused codes void and deletes their mails. A
/// script that changes or removes the address does the same with a code that was mailed to the
/// former one. So a mail that is read later, or was delayed, is worth nothing.
///
/// Tested in `ActivationMailTests.swift`.
public struct ActivationMail: Sendable {
    /// The event in the outbox entry.
    public static let event = "activation"
    /// The maximum number of codes that are mailed to one user in `window`.
    public static let most = 5
    public static let window = Policy.limitWindow

    public let entry: OutboxEntryID
    public let secret: StoredSecret
    /// The language of the mail; nil for the language of the user.
    public let language: String?
    /// The relay that sends the mail at once; nil if the next relay that finds it does.
    public let holder: RelayID?
    /// When another relay may take it.
    public let dueAt: Timestamp

    /// - Parameter sender: the relay that sends the mail at once; nil if any may.
    public init(
        _ drawn: OperationSecret, for user: UserID, of website: WebsiteID, language: String?, sender: RelayID?,
        at now: Timestamp, as operation: Operation, by sealer: Sealer, _ randomness: any Randomness
    ) throws(CryptoFailure) {
        entry = operation.identifier("activation mail")
        let use = OperationSecret.Use(.activationMail, user: user, website: website)
        let sealed = try sealer.seal(
            drawn.reveal(), associated: use.associated(Self.row(of: entry)), randomness: randomness)
        secret = StoredSecret(
            operation: Self.row(of: entry), sealed: SealedSecret(bytes: sealed, key: sealer.currentID),
            expiresAt: now + NewActivation.lifetime)
        self.language = language
        holder = sender
        dueAt = sender == nil ? now : now + Relay.messageLease
    }

    /// The key under which the secret of an outbox entry is stored.
    public static func row(of entry: OutboxEntryID) -> OperationID { OperationID(leading: entry.bytes) }
}

/// An activation as its website gets it, by the policy `enrolment`.
public enum IssuedActivation: Sendable, Equatable {
    /// The website shows the code to its user.
    case shown(Activation)
    /// The relay mails the code to this address, which is masked.
    case mailed(to: String, expiresAt: Timestamp)
    /// There is no code yet, because an operator must first confirm the user's identity.
    case awaitsIdentity

    public var shown: Activation? { if case .shown(let activation) = self { activation } else { nil } }
}

extension Relay {
    /// Throws unless an activation can be mailed to the address of a user who is being registered.
    func requireMail(to email: String?, _ website: Website) throws(Refusal) {
        guard website.policy.enrolment != .open else { return }
        guard email != nil else {
            throw .invalid([
                FieldFault(
                    "email", .missing,
                    LocalizedText(
                        "is required: the policy enrolment mails the activation code to it",
                        de: "fehlt: Nach der Richtlinie enrolment geht der Aktivierungscode an diese Adresse"))
            ])
        }
        try requireMailCourier()
    }

    private func requireMailCourier() throws(Refusal) {
        guard mail == nil else { return }
        throw .conflict([
            FieldFault(
                "email", .state,
                LocalizedText(
                    "cannot get the activation code: the relay has no mail server",
                    de: "kann den Aktivierungscode nicht erhalten, denn das Relay hat keinen Mailserver"))
        ])
    }

    /// Returns the mail for a user's activation, and its masked address; nil if the website shows
    /// the code itself.
    func activationMail(
        _ drawn: OperationSecret, to user: UserRow, of website: Website, at now: Timestamp, as operation: Operation
    ) throws(Refusal) -> (mail: ActivationMail, to: String)? {
        guard let email = try mailable(user, of: website) else { return nil }
        let mail = try activationMail(drawn, for: user.id, of: website, stored: user.language, at: now, as: operation)
        return (mail, Address.masked(email))
    }

    /// Returns the address to which an activation can be mailed; nil if the website shows the code
    /// itself.
    @discardableResult
    func mailable(_ user: UserRow, of website: Website) throws(Refusal) -> String? {
        guard website.policy.enrolment != .open else { return nil }
        try requireIdentity(of: user, website)
        guard let email = user.email else {
            throw .conflict([
                FieldFault(
                    "email", .state,
                    LocalizedText(
                        "is missing: the activation code is mailed to it. Set it with PATCH /user/…",
                        de: "fehlt: Der Aktivierungscode geht an diese Adresse. Legen Sie sie mit PATCH /user/… fest"))
            ])
        }
        try requireMailCourier()
        try requireMails(of: website)
        return email
    }

    func activationMail(
        _ drawn: OperationSecret, for user: UserID, of website: Website, stored language: String?, at now: Timestamp,
        as operation: Operation
    ) throws(Refusal) -> ActivationMail {
        do throws(CryptoFailure) {
            return try ActivationMail(
                drawn, for: user, of: website.id, language: operation.languages.message(stored: language),
                sender: id, at: now, as: operation, by: sealer, randomness)
        } catch {
            log.error("operation.seal", [.operation: operation.id.text, .error: "\(error)"])
            throw .broken
        }
    }

    /// Throws while an operator must still confirm the user's identity. Until then the user gets no
    /// factor of their own.
    func requireIdentity(of user: UserRow, _ website: Website) throws(Refusal) {
        guard website.policy.enrolment == .confirmed, !user.isIdentityConfirmed else { return }
        throw .forbidden(
            LocalizedText(
                "An operator must first confirm the identity of this user: twoefay user confirm-identity",
                de: "Zuerst muss der Betreiber die Identität dieses Benutzers bestätigen: twoefay user confirm-identity"
            ))
    }
}
