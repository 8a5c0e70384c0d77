import Bytes
import Crypto
import Domain
import World

/// A mail about a recovery with a token: the link that begins it, or the announcement with the link
/// that cancels it.
///
/// As with activations, every attempt must bring the same token. So the secret of the token is
/// stored beside the outbox entry, sealed for this entry, user and website, and deleted with it.
///
/// Tested in `RecoveryTests.swift`.
public struct RecoveryMail: Sendable {
    /// The event in the outbox entry of the link. That of the announcement is the account event.
    public static let link = "recovery.link"

    public let entry: OutboxEntryID
    public let event: String
    public let secret: StoredSecret
    /// The language of the mail; nil for the language of the user.
    public let language: String?
    /// The relay that sends the mail at once; nil if the next relay that finds it does.
    public let holder: RelayID?
    /// When another relay may take it.
    public let dueAt: Timestamp
    public let expiresAt: Timestamp

    init(
        _ event: String, _ label: String, _ drawn: OperationSecret, _ delivery: Delivery, until expiresAt: Timestamp
    ) throws(CryptoFailure) {
        entry = delivery.operation.identifier(label)
        self.event = event
        let use = OperationSecret.Use(.recoveryMail, user: delivery.user, website: delivery.website)
        let sealed = try delivery.sealer.seal(
            drawn.reveal(), associated: use.associated(ActivationMail.row(of: entry)),
            randomness: delivery.randomness)
        secret = StoredSecret(
            operation: ActivationMail.row(of: entry),
            sealed: SealedSecret(bytes: sealed, key: delivery.sealer.currentID), expiresAt: expiresAt)
        language = delivery.language
        holder = delivery.sender
        dueAt = delivery.sender == nil ? delivery.at : delivery.at + Relay.messageLease
        self.expiresAt = expiresAt
    }

    /// The values that all mails of one change have in common.
    public struct Delivery: Sendable {
        let user: UserID
        let website: WebsiteID
        let language: String?
        /// The relay that sends the mails at once; nil if any may.
        let sender: RelayID?
        let at: Timestamp
        let operation: Operation
        let sealer: Sealer
        let randomness: any Randomness

        public init(
            to user: UserID, of website: WebsiteID, language: String?, sender: RelayID?, at now: Timestamp,
            as operation: Operation, by sealer: Sealer, _ randomness: any Randomness
        ) {
            self.user = user
            self.website = website
            self.language = language
            self.sender = sender
            at = now
            self.operation = operation
            self.sealer = sealer
            self.randomness = randomness
        }
    }
}

extension RecoveryToken {
    /// The token in a link: 256 bits in base64url.
    static func text(_ secret: OperationSecret) -> String {
        Base64URL.encode(secret.derive("recovery token", count: 32))
    }

    /// The address that a mail has: the website's page, with the token in the fragment, which a
    /// browser sends to no server.
    static func address(_ secret: OperationSecret, event: String, at page: String) -> Secret {
        Secret(utf8: "\(page)#\(event == RecoveryMail.link ? "recovery" : "cancel")=\(text(secret))")
    }
}

extension NewRecovery {
    /// - Parameter drawn: the secret of the token.
    public init(
        _ factor: Factor, of user: UserID, by author: ChangeAuthor, _ drawn: OperationSecret,
        _ delivery: RecoveryMail.Delivery
    ) throws(CryptoFailure) {
        let life = RecoveryLife.begun(at: delivery.at)
        self.init(
            id: delivery.operation.identifier("recovery"), user: user, factor: factor,
            link: RecoveryToken.digest(RecoveryToken.text(drawn)), life: life, startedBy: author,
            mail: try RecoveryMail(RecoveryMail.link, "recovery link", drawn, delivery, until: life.expiresAt),
            at: delivery.at)
    }
}

extension RecoveryProving {
    /// - Parameter drawn: the secret of the token that cancels the recovery.
    public init(
        _ recovery: RecoveryRow, _ life: RecoveryLife, by proof: RecoveryProof, _ approved: Approved?,
        note: String? = nil, announcement: RecoveryAnnouncement?, _ drawn: OperationSecret,
        _ delivery: RecoveryMail.Delivery
    ) throws(CryptoFailure) {
        let event = AccountEvent.recoveryWaiting.rawValue
        var mails: [RecoveryMail] = []
        for label in ["recovery mail", "recovery mail former"] {
            // The change is not possible before one of them was accepted.
            mails.append(try RecoveryMail(event, label, drawn, delivery, until: life.expiresAt))
        }
        self.init(
            recovery: recovery, life: life, proof: proof, approved: approved, note: note,
            cancel: RecoveryToken.digest(RecoveryToken.text(drawn)), mails: mails, announcement: announcement,
            at: delivery.at)
    }
}
