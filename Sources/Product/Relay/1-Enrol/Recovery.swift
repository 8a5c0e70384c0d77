import Bytes
import Crypto
import Domain
import Log
import World

/// Recovery: a user's own way back from a lost authenticator app, token or phone.
///
/// 1. `startRecovery` mails a link to the user's confirmed address. The answer is the same for every
///    user name, so it does not tell whether somebody is known.
/// 2. The website hands the token of the link in (`openRecovery`), and gets a handle. A mail scanner
///    that opens the link uses nothing up, because the token is in the fragment.
/// 3. `proveRecovery` takes a second proof: an ordinary challenge that another factor answers, or the
///    word of an operator. It is announced to the phones and to the mail addresses, and ends other
///    recoveries of the same factor.
/// 4. After the wait of the policy, or at once if a phone has approved, `finishRecovery` creates the
///    new factor. The old one stays valid until the new one is confirmed.
///
/// Invariants: the store has digests of the tokens alone. Each step compares the row with what was
/// read (`operation`), so a step that is repeated or raced happens once. The wait is a time in the
/// row (`RecoveryLife`), not a timer.
///
/// Failures: a relay dies after a step. The outbox has the mails and the request to the phones, and
/// another relay sends them.
///
/// Tested in `RecoveryTests.swift` and `RecoveryAttackTests.swift`; the life in
/// `RecoveryLifeTests.swift`.
extension Relay {
    /// The factors that can be recovered; `push` stands for all phones.
    public static let recoverable: [Factor] = [.totp, .hotp, .push]
    static let recoverAction = "recover"

    /// Has a link mailed to the user, if there is such a user with the factor and a confirmed
    /// address. Returns the end of its validity in any case.
    public func startRecovery(
        of factor: Factor, username: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> Timestamp {
        let now = operation.begunAt ?? time.now()
        try requireRecovery(of: factor, website)
        try requireMails(of: website)
        let expiresAt = RecoveryLife.begun(at: now).expiresAt
        let user = try await withStore("recovery") { () async throws(StoreFailure) in
            try await store.user(named: username, of: website.id, at: now)
        }
        guard let user else {
            log.info("recovery.unknown", [.website: website.name])
            return expiresAt
        }
        let drawn = drawSecret()
        let delivery = delivery(to: user.id, website, language: user.language, at: now, operation)
        let new = try sealed { () throws(CryptoFailure) in
            try NewRecovery(factor, of: user.id, by: .website, drawn, delivery)
        }
        let outcome = try await withStore("recovery") { () async throws(StoreFailure) in
            try await store.start(new, as: operation)
        }
        let fields: LogFields = [.website: website.name, .user: user.id.text, .factor: factor.rawValue]
        switch outcome {
        case .started:
            log.info("recovery.started", fields)
            startMail(new.mail.entry, of: website.limited)
        case .limited:
            metrics.reached(.sending)
            log.notice("recovery.limited", fields)
        case .impossible: log.info("recovery.impossible", fields)
        }
        return expiresAt
    }

    /// Hands in the token of a link. It works once. Returns the handle with which the website
    /// continues, and the state of the recovery.
    public func openRecovery(
        token: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> (handle: String, state: SeenRecovery) {
        let link = RecoveryToken.digest(token)
        let found = try await recovery(.link(link), of: website)
        let now = time.now()
        let use = OperationSecret.Use(.recoveryHandle, user: found.user, website: website.id)
        let drawn = drawSecret()
        let stored = try stored(drawn, for: use, of: operation, at: now)
        var secret: [UInt8]?
        if operation.mayHaveRun || found.life.phase(at: now) == .sent {
            let life = (try? found.life.opened(at: now)) ?? found.life
            let opening = RecoveryOpening(
                recovery: found, life: life, handle: RecoveryToken.digest(RecoveryToken.text(drawn)),
                secret: stored, at: now)
            let opened = try await withStore("recovery") { () async throws(StoreFailure) in
                try await store.open(opening, as: operation)
            }
            guard let opened else { throw .notFound }
            secret = opened.secret
        } else {
            throw .notFound
        }
        log.info(
            "recovery.opened",
            [.website: website.name, .user: found.user.text, .factor: found.factor.rawValue])
        let handle = RecoveryToken.text(try settled(drawn, for: use, of: operation, found: secret))
        return (handle, try await recoveryState(handle: handle, of: website))
    }

    /// Returns the state of a recovery to the website that handed its link in.
    public func recoveryState(handle: String, of website: Website) async throws(Refusal) -> SeenRecovery {
        let row = try await recovery(.handle(RecoveryToken.digest(handle)), of: website)
        return try await seen(row, website)
    }

    /// Returns the open recoveries of a user.
    public func recoveries(username: String, of website: Website) async throws(Refusal) -> [RecoveryRow] {
        try await recoveries(of: try await user(named: username, of: website).id, at: time.now())
    }

    public func recoveries(for phone: PhoneCredential) async throws(Refusal) -> [RecoveryRow] {
        try await recoveries(of: phone.user, at: time.now())
    }

    func recoveries(of user: UserID, at now: Timestamp) async throws(Refusal) -> [RecoveryRow] {
        try await withStore("recovery") { () async throws(StoreFailure) in
            try await store.recoveries(of: user, at: now)
        }
    }

    /// Returns the recovery of a token. An unknown token reads as one of another website.
    func recovery(_ token: RecoveryToken, of website: Website) async throws(Refusal) -> RecoveryRow {
        let row = try await withStore("recovery") { () async throws(StoreFailure) in
            try await store.recovery(token, of: website.id)
        }
        guard let row else { throw .notFound }
        return row
    }

    func requireRecovery(of factor: Factor, _ website: Website) throws(Refusal) {
        guard Self.recoverable.contains(factor) else {
            throw .invalid([
                FieldFault(
                    "factor", .format,
                    LocalizedText("must be totp, hotp or push", de: "muss totp, hotp oder push sein"))
            ])
        }
        guard website.policy.recoveryURL != nil, mail != nil else {
            throw .forbidden(
                LocalizedText(
                    "Users of this website cannot recover a factor: the operator has not set recovery-url, or the "
                        + "relay has no mail server",
                    de: "Benutzer dieser Website können keinen Faktor wiederherstellen: Der Betreiber hat recovery-url "
                        + "nicht gesetzt, oder das Relay hat keinen Mailserver"))
        }
    }

    func delivery(
        to user: UserID, _ website: Website, language: String?, at now: Timestamp, _ operation: Operation
    ) -> RecoveryMail.Delivery {
        // Somebody else may have made the request, so its languages count only if the website has
        // stored none.
        RecoveryMail.Delivery(
            to: user, of: website.id, language: language ?? operation.languages.message(stored: nil), sender: id,
            at: now, as: operation, by: sealer, randomness)
    }

    func sealed<Value>(_ make: () throws(CryptoFailure) -> Value) throws(Refusal) -> Value {
        do throws(CryptoFailure) {
            return try make()
        } catch {
            log.error("operation.seal", [.error: "\(error)"])
            throw .broken
        }
    }
}

/// A recovery as its website sees it.
public struct SeenRecovery: Sendable {
    public let recovery: RecoveryRow
    public let phase: RecoveryPhase
    /// The factors that can give the second proof; empty if only an operator can, or if it was
    /// given.
    public let proofs: [Factor]
    /// The challenge that asks the phones, and the number to show, while it is open.
    public let challenge: ChallengeID?
    public let number: String?
}

extension Relay {
    func seen(_ row: RecoveryRow, _ website: Website) async throws(Refusal) -> SeenRecovery {
        let now = time.now()
        let phase = row.life.phase(at: now)
        let user = try await user(named: row.username, of: website)
        let proofs = phase == .opened ? try await proofs(of: row.factor, user, website, at: now) : []
        var (challenge, number): (ChallengeID?, String?) = (nil, nil)
        if let asked = row.challenge, row.life.isOpen(at: now) {
            let found = try await withStore("recovery") { () async throws(StoreFailure) in
                try await store.challenge(asked, of: website.id)
            }
            if let found, found.life.seen(at: now).result == .wait {
                (challenge, number) = (asked, try shownNumber(found))
            }
        }
        return SeenRecovery(recovery: row, phase: phase, proofs: proofs, challenge: challenge, number: number)
    }

    /// Returns the factors of the user that can prove a recovery, in the order of the policy. A
    /// mail would arrive where the link did, and a number that was changed lately may be a thief's. The
    /// help desk vouches for the recovery itself, not by a temporary code.
    func proofs(
        of lost: Factor, _ user: UserRow, _ website: Website, at now: Timestamp
    ) async throws(Refusal) -> [Factor] {
        let factors = try await factors(of: user.id)
        let phones = try await devices(of: user)
        return website.policy.factors.filter { kind in
            guard kind != lost, kind != .mail, kind != .pull, kind != .operator else { return false }
            guard kind != .push else {
                // A website that answers for its users would prove the recovery by itself.
                return website.policy.answers != .website
                    && phones.contains { $0.state == .active && $0.publicKey != nil }
            }
            guard !user.codes.isLocked, let factor = factors.first(where: { $0.kind == kind && $0.state == .active })
            else { return false }
            // Whoever has the lost phone sees its codes, too.
            guard lost != .push || factor.device == nil else { return false }
            guard kind == .sms else { return true }
            guard texts != nil, let confirmedAt = factor.confirmedAt else { return false }
            return confirmedAt + RecoveryLife.addressAge <= now
        }
    }
}
