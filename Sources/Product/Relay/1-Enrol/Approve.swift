import Crypto
import Domain
import World

/// What a user is asked to approve of before it is done: with an ordinary challenge, by a factor that they have.
struct Approvable: Sendable {
    /// By which an approval of this is told from an approval of anything else.
    let digest: [UInt8]
    let details: [Context.Detail]
    var action = Relay.enrolAction
    /// The factors that may approve; nil where any may that the policy allows.
    var factors: [Factor]?
    /// It is asked for from a browser that the website knows.
    var isKnown = false
    var device: DeviceID?
    /// Where the new phone is.
    var ip: String?

    /// A code for a further phone, whichever it will be.
    static func activation(of user: UserID) -> Approvable {
        Approvable(
            digest: SHA256.hash(Array("twoefay approval activation".utf8) + user.bytes), details: [factor])
    }

    /// This phone with this key.
    static func phone(_ phone: NewDevice, key: P256PublicKey, sender: String) -> Approvable {
        var details = [factor]
        if let name = phone.name { details.append(Context.Detail(label: "name", value: name)) }
        details.append(Context.Detail(label: "key", value: key.thumbprint))
        return Approvable(
            digest: SHA256.hash(Array("twoefay approval phone".utf8) + phone.id.bytes + key.spkiThumbprint),
            details: details, device: phone.id, ip: FieldRule.ip(sender) == nil ? sender : nil)
    }

    /// A factor that is answered by codes; of an address, that one.
    static func code(_ kind: Factor, of user: UserID, address: String?) -> Approvable {
        var details = [Context.Detail(label: "factor", value: kind.rawValue)]
        if let address { details.append(Context.Detail(label: "address", value: address)) }
        let what = Array("twoefay approval factor".utf8) + user.bytes + Array("\(kind.rawValue) \(address ?? "")".utf8)
        return Approvable(digest: SHA256.hash(what), details: details)
    }

    /// The end of one lock of codes. Only a phone can approve of it: codes are what is locked.
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

    /// Asks the user. The same operation asks once.
    func askApproval(
        _ approvable: Approvable, of token: UserToken, by website: Website, as operation: Operation
    ) async throws(Refusal) -> OpenedChallenge {
        var request = LoginRequest(
            subject: .token(token), ip: approvable.ip, action: approvable.action, details: approvable.details,
            factors: approvable.factors, isKnown: approvable.isKnown)
        request.approves = approvable.digest
        request.device = approvable.device
        return try await login(request, by: website, as: operation)
    }

    /// The challenge with which the user has approved, if it is one. Otherwise the website is told which one to wait for:
    /// a new one where it named none.
    ///
    /// Whether it was used before is for the store to say when it is used.
    func approved(
        _ approvable: Approvable, by challenge: ChallengeID?, _ user: UserRow, _ website: Website,
        _ operation: Operation
    ) async throws(Refusal) -> Approved {
        guard let challenge else {
            // Follows from the operation: what comes again under its Idempotency-Key asks nobody twice.
            let asking = operations.fixed("approval", operation.id.bytes)
            let asked = try await askApproval(approvable, of: user.token, by: website, as: asking)
            throw .approvalRequired(asked.challenge, number: asked.number)
        }
        let row = try await withStore("approval") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: website.id)
        }
        let now = time.now()
        guard let row, row.user == user.id, row.approves == approvable.digest else { throw Self.noApproval }
        switch row.life.seen(at: now).result {
        case .wait: throw .approvalRequired(challenge, number: row.number)
        case .failure: throw Self.noApproval
        case .success:
            guard let decidedAt = row.decidedAt, now < decidedAt + Self.approvalLifetime else { throw Self.noApproval }
            return Approved(challenge: challenge, digest: approvable.digest)
        }
    }

    /// How long an approval can be used once it was given.
    static let approvalLifetime = NewActivation.lifetime

    /// Another user's, another website's and one that there never was are told apart by nobody.
    static let noApproval = Refusal.forbidden(
        "What was given as approval is none of this, did not succeed, or was used: leave it out to ask the user again")
}
