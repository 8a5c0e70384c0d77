import Crypto
import Domain
import World

/// A change that a user must approve before it is done. The user approves with an ordinary
/// challenge, by a factor that they have.
struct Approvable: Sendable {
    /// The digest of the change. It distinguishes an approval of this change from an approval of
    /// any other.
    let digest: [UInt8]
    /// The digests of the same change under older or newer keys.
    var otherDigests: [[UInt8]] = []
    let details: [Context.Detail]
    var action = Relay.enrolAction
    /// The factors that may approve; nil for all that the policy allows.
    var factors: [Factor]?
    /// Whether the request came from a known browser.
    var isKnown = false
    /// The phone that is to be bound; nil for other changes.
    var device: DeviceID?
    /// The IP address of the new phone.
    var ip: String?
    /// Whether a temporary code of the help desk may approve it, if that code permits it.
    var takesOperator = false
    /// Whether the user must learn of the request, however many others there are. Something else
    /// limits how often it is made.
    var isAnnouncement = false
    /// Whether it must disturb no login of the user.
    var isReminder = false

    /// The creation of an activation code for any further phone.
    static func activation(of user: UserID) -> Approvable {
        Approvable(
            digest: SHA256.hash(Array("twoefay approval activation".utf8) + user.bytes), details: [factor],
            takesOperator: true)
    }

    /// The binding of this phone with this key.
    static func phone(_ phone: NewDevice, key: P256PublicKey, sender: String) -> Approvable {
        var details = [factor]
        if let name = phone.name { details.append(Context.Detail(label: "name", value: name)) }
        details.append(Context.Detail(label: "key", value: key.thumbprint))
        return Approvable(
            digest: SHA256.hash(Array("twoefay approval phone".utf8) + phone.id.bytes + key.spkiThumbprint),
            details: details, device: phone.id, ip: FieldRule.ip(sender) == nil ? sender : nil)
    }

    /// The binding of a code factor; for SMS and mail, of exactly this address. The digest is in the
    /// store, and everything in it but the address can be read there. So it depends on a key,
    /// without which nobody can test a guess of the address.
    static func code(_ kind: Factor, of user: UserID, address: String?, _ sealer: Sealer) -> Approvable {
        var details = [Context.Detail(label: "factor", value: kind.rawValue)]
        if let address { details.append(Context.Detail(label: "address", value: address)) }
        let what = user.bytes + Array("\(kind.rawValue) \(address ?? "")".utf8)
        let purpose = Array("twoefay approval factor".utf8)
        return Approvable(
            digest: sealer.digest(of: what, associated: purpose),
            otherDigests: sealer.digests(of: what, associated: purpose), details: details)
    }

    /// The end of one code lock. Only a phone can approve it, because codes are locked.
    static func codes(of user: UserID, lockedAt: Timestamp, isKnown: Bool) -> Approvable {
        let what = Array("twoefay approval codes".utf8) + user.bytes + Array("\(lockedAt.milliseconds)".utf8)
        return Approvable(
            digest: SHA256.hash(what), details: [Context.Detail(label: "unlock", value: "codes")],
            action: Relay.unlockAction, factors: [.push], isKnown: isKnown)
    }

    private static let factor = Context.Detail(label: "factor", value: Factor.push.rawValue)
}

extension Relay {
    static let enrolAction = "enrol"
    static let unlockAction = "unlock"

    /// Opens the challenge for an approval. The same operation opens it once.
    func askApproval(
        _ approvable: Approvable, of token: UserToken, by website: Website, as operation: Operation
    ) async throws(Refusal) -> OpenedChallenge {
        var request = LoginRequest(
            subject: .token(token), ip: approvable.ip, action: approvable.action, details: approvable.details,
            factors: approvable.factors, isKnown: approvable.isKnown)
        request.approves = approvable.digest
        request.takesOperator = approvable.takesOperator
        request.isUnlimited = approvable.isAnnouncement
        request.isReminder = approvable.isReminder
        request.device = approvable.device
        return try await login(request, by: website, as: operation)
    }

    /// Returns the approval if the challenge has succeeded and is for exactly this change.
    /// Otherwise throws `approvalRequired` with the challenge to wait for, which is a new one if
    /// the website named none. A challenge for something else is refused.
    ///
    /// The store checks whether an approval was used before, when it is used.
    func approved(
        _ approvable: Approvable, by challenge: ChallengeID?, _ user: UserRow, _ website: Website,
        _ operation: Operation
    ) async throws(Refusal) -> Approved {
        guard let challenge else {
            // The operation is derived, so a repetition under the same Idempotency-Key opens no
            // second challenge.
            let asking = operations.fixed("approval", operation.id.bytes).speaking(operation.languages)
            let asked = try await askApproval(approvable, of: user.token, by: website, as: asking)
            throw .approvalRequired(asked.challenge, number: asked.number)
        }
        let row = try await withStore("approval") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: website.id)
        }
        let now = time.now()
        let digests = [approvable.digest] + approvable.otherDigests
        guard let row, row.user == user.id, let digest = row.approves, digests.contains(digest) else {
            throw Self.noApproval
        }
        switch row.life.seen(at: now).result {
        case .wait: throw .approvalRequired(challenge, number: try shownNumber(row))
        case .failure: throw Self.noApproval
        case .success:
            guard let decidedAt = row.decidedAt, now < decidedAt + Self.approvalLifetime else { throw Self.noApproval }
            return Approved(challenge: challenge, digest: digest)
        }
    }

    /// Returns the number to show for an open approval; nil if no phone can answer it. An approval
    /// takes phones only if the user had one when it was opened.
    func shownNumber(_ row: ChallengeRow) throws(Refusal) -> String? {
        try policy(of: row).factors.contains(.push) ? row.number : nil
    }

    /// The time for which an approval can be used after it was given.
    static let approvalLifetime = NewActivation.lifetime

    /// The refusal of an approval. Challenges of other users or websites and unknown challenges get
    /// the same answer.
    static let noApproval = Refusal.forbidden(
        LocalizedText(
            "The approval is for something else, did not succeed, or was used: leave it out to ask the user again",
            de: "Die Bestätigung gilt für etwas anderes, war nicht erfolgreich oder wurde schon verwendet: Lassen Sie "
                + "approval weg, um den Benutzer erneut zu fragen"))
}
