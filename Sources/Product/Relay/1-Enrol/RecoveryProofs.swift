import Crypto
import Domain
import Log
import World

extension Approvable {
    /// The second proof of a recovery.
    static func proof(of recovery: RecoveryRow, by factors: [Factor]) -> Approvable {
        Approvable(
            digest: recovery.secondProof,
            details: details(recovery), action: Relay.recoverAction, factors: factors)
    }

    /// The end of the wait of a recovery. Only a phone can approve it. The announcement counts as
    /// one from a known browser, so that no login of a stranger makes it quiet. Later requests are
    /// reminders: a thief may ask for them, who must not use up the owner's limit or end the owner's
    /// logins.
    static func recovery(_ recovery: RecoveryRow, isFirst: Bool) -> Approvable {
        Approvable(
            digest: recovery.endOfWait,
            details: details(recovery)
                + [Context.Detail(label: "effective", value: recovery.life.readyAt?.rfc3339 ?? "now")],
            action: Relay.recoverAction, factors: [.push], isKnown: isFirst, isAnnouncement: true,
            isReminder: !isFirst)
    }

    private static func details(_ recovery: RecoveryRow) -> [Context.Detail] {
        [Context.Detail(label: "lost", value: recovery.factor == .push ? "phone" : recovery.factor.rawValue)]
    }
}

extension RecoveryRow {
    /// The digest that the challenges have which ask the phones to end the wait.
    public var endOfWait: [UInt8] { SHA256.hash(Array("twoefay approval recovery".utf8) + id.bytes) }

    /// The digest that the challenges have which ask for the second proof.
    var secondProof: [UInt8] { SHA256.hash(Array("twoefay approval recovery proof".utf8) + id.bytes) }
}

/// The second proof.
extension Relay {
    /// Takes the second proof: a challenge that another factor of the user has answered. Without
    /// one it throws `approvalRequired`, with the challenge to wait for.
    public func proveRecovery(
        handle: String, approval: ChallengeID?, by website: Website, as operation: Operation
    ) async throws(Refusal) -> SeenRecovery {
        let row = try await recovery(.handle(RecoveryToken.digest(handle)), of: website)
        if operation.mayHaveRun, try await recordedEvent(operation) != nil { return try await seen(row, website) }
        let now = time.now()
        try require(row, [.opened], at: now)
        let user = try await user(named: row.username, of: website)
        guard user.state == .active else { throw Self.barred(user.state) }
        let proofs = try await proofs(of: row.factor, user, website, at: now)
        guard proofs.contains(where: { $0 != .sms || courier(for: .sms) != nil }) else {
            throw user.codes.isLocked ? .codesLocked : Self.noProof
        }
        let approved: Approved
        do throws(Refusal) {
            approved = try await self.approved(.proof(of: row, by: proofs), by: approval, user, website, operation)
        } catch {
            // A denial on the phone then cancels the recovery.
            if approval == nil, case .approvalRequired(let challenge, _) = error {
                try await recordAsking(of: row, challenge, nil, at: now)
            }
            throw error
        }
        let challenge = try await withStore("recovery") { () async throws(StoreFailure) in
            try await store.challenge(approved.challenge, of: website.id)
        }
        // The factor may have changed while the challenge was open.
        guard let challenge, challenge.proof != .website, let factor = challenge.factor,
            proofs.contains(factor == .pull ? .push : factor), let proof = RecoveryProof(factor)
        else { throw Self.noApproval }
        return try await prove(row, by: proof, approved, user, website, at: now, operation)
    }

    /// Stores the proof. Somebody may have asked for it again while the answer was on its way, which
    /// changes the row. The proof is then as good as before.
    private func prove(
        _ read: RecoveryRow, by proof: RecoveryProof, _ approved: Approved, _ user: UserRow, _ website: Website,
        at now: Timestamp, _ operation: Operation
    ) async throws(Refusal) -> SeenRecovery {
        var row = read
        for _ in 0..<Self.mostAttempts {
            guard let life = try? row.life.proved(by: proof, wait: website.policy.wait, at: now) else { break }
            let asks = proof != .phone && takesPhones(website)
            let announcement = asks ? RecoveryAnnouncement(operations.new(), sender: id, at: now) : nil
            let drawn = drawSecret()
            let delivery = delivery(to: user.id, website, language: user.language, at: now, operation)
            let proving = try sealed { () throws(CryptoFailure) in
                try RecoveryProving(row, life, by: proof, approved, announcement: announcement, drawn, delivery)
            }
            let isProved = try await withStore("recovery") { () async throws(StoreFailure) in
                try await store.prove(proving, as: operation)
            }
            if isProved { return try await proved(proving, website, operation) }
            let present = try await refreshed(row, website)
            guard present.operation != row.operation else { break }
            row = present
        }
        throw Self.noApproval
    }

    private static let mostAttempts = 5

    private func proved(
        _ proving: RecoveryProving, _ website: Website, _ operation: Operation
    ) async throws(Refusal) -> SeenRecovery {
        let row = proving.recovery
        log.notice(
            "recovery.proved",
            [
                .website: website.name, .user: row.user.text, .factor: row.factor.rawValue,
                .outcome: proving.proof.rawValue,
            ])
        await reportEndedRecoveries(by: operation, of: row.user, website.name, .continued)
        for mail in proving.mails { startDelivery(mail.entry) }
        scheduleWebhooks()
        if let announcement = proving.announcement { await announce(announcement.entry) }
        return try await seen(try await refreshed(row, website), website)
    }

    /// Whether the phones of the website's users may decide about recoveries.
    private func takesPhones(_ website: Website) -> Bool {
        website.policy.factors.contains(.push) && website.policy.answers != .website
    }

    func refreshed(_ row: RecoveryRow, _ website: Website) async throws(Refusal) -> RecoveryRow {
        let rows = try await recoveries(of: row.user, at: time.now())
        guard let now = rows.first(where: { $0.id == row.id }) else { throw .notFound }
        return now
    }

    private static let noProof = Refusal.forbidden(
        LocalizedText(
            "The user has no other factor that can prove this: an operator must do so, twoefay user approve-recovery",
            de: "Der Benutzer hat keinen anderen Faktor, der das beweisen kann. Das muss der Betreiber tun: twoefay "
                + "user approve-recovery"))

    /// Throws unless the recovery is in one of these phases.
    func require(_ row: RecoveryRow, _ phases: [RecoveryPhase], at now: Timestamp) throws(Refusal) {
        let phase = row.life.phase(at: now)
        guard !phases.contains(phase) else { return }
        let ready = phase == .waiting ? row.life.readyAt : nil
        guard row.life.announcedAt != nil || phase != .waiting else {
            throw .conflict([
                FieldFault(
                    "handle", .state,
                    LocalizedText(
                        "has the state waiting: no mail server has accepted the announcement yet",
                        de: "hat den Zustand waiting: Noch kein Mailserver hat die Ankündigung angenommen"))
            ])
        }
        throw .conflict([
            FieldFault(
                "handle", .state,
                LocalizedText(
                    "has the state \(phase.rawValue)" + (ready.map { ", and is ready at \($0.rfc3339)" } ?? ""),
                    de: "hat den Zustand \(phase.rawValue)" + (ready.map { " und ist bereit ab \($0.rfc3339)" } ?? "")))
        ])
    }
}

/// The request to the phones.
extension Relay {
    /// Asks the phones once more to end the wait. Returns the challenge, and the number to show.
    public func askPhones(
        handle: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> SeenRecovery {
        let row = try await recovery(.handle(RecoveryToken.digest(handle)), of: website)
        let now = time.now()
        try require(row, [.waiting], at: now)
        guard takesPhones(website) else {
            throw .forbidden(
                LocalizedText(
                    "The policy of this website lets no phone decide",
                    de: "Nach der Richtlinie dieser Website entscheidet kein Telefon"))
        }
        let seen = try await seen(row, website)
        guard seen.challenge == nil else { return seen }
        guard try await timesAsked(about: row) <= Self.mostRequests || operation.mayHaveRun else {
            log.notice(
                "recovery.limited",
                [.website: website.name, .user: row.user.text, .factor: Factor.push.rawValue])
            throw .limited(retryAfter: max((row.life.readyAt ?? now) - now, .seconds(1)))
        }
        let announcement = RecoveryAnnouncement(operation, sender: id, at: now)
        try await recordAsking(of: row, announcement.challenge, announcement, at: now)
        await announce(announcement.entry)
        return try await self.seen(try await refreshed(row, website), website)
    }

    /// The most requests after the announcement. A website's customer can make them, who may be a
    /// thief that hopes for a tap.
    private static let mostRequests = 3

    private func timesAsked(about row: RecoveryRow) async throws(Refusal) -> Int {
        try await withStore("recovery") { () async throws(StoreFailure) in try await store.timesAsked(about: row) }
    }

    private func recordAsking(
        of row: RecoveryRow, _ challenge: ChallengeID, _ entry: RecoveryAnnouncement?, at now: Timestamp
    ) async throws(Refusal) {
        let asking = RecoveryAsking(recovery: row, challenge: challenge, entry: entry, at: now)
        let operation = operations.fixed("recovery asks", row.id.bytes + challenge.bytes)
        _ = try await withStore("recovery") { () async throws(StoreFailure) in
            try await store.ask(asking, as: operation)
        }
    }

    /// Returns the open recovery that a challenge asks about; nil if it asks about something else. If
    /// the rows cannot be read, the denial only ends the recovery that names the challenge.
    func recovery(askedBy challenge: ChallengeRow, of user: UserID, at now: Timestamp) async -> RecoveryID? {
        guard let digest = challenge.approves else { return nil }
        let open = try? await recoveries(of: user, at: now)
        return open?.first { $0.endOfWait == digest || $0.secondProof == digest }?.id
    }

    /// Opens the challenge of an outbox entry, which pushes to the phones. The challenge follows
    /// from the entry, so a repetition opens no second one.
    func announce(_ entry: OutboxEntryID) async {
        guard inFlight.begin(entry) else { return }
        defer { inFlight.end(entry) }
        _ = await attending(entry) { () async throws(Refusal) in
            let found = try await withStore("recovery") { () async throws(StoreFailure) in
                try await store.recovery(announcedBy: entry)
            }
            if let found {
                let operation = operations.again(OperationID(leading: entry.bytes))
                let isFirst = try await timesAsked(about: found.recovery) == 0
                _ = try await askApproval(
                    .recovery(found.recovery, isFirst: isFirst), of: found.recovery.token,
                    by: try website(found.website), as: operation)
            }
            try await withStore("recovery") { () async throws(StoreFailure) in
                try await store.dropAnnouncement(entry)
            }
        }
    }
}

/// The change and its prevention.
extension Relay {
    /// Creates the new secret of a lost authenticator app. The old one stays valid until the first
    /// code of the new one confirms it.
    public func recoverTOTP(
        handle: String, shape: CodeShape, by website: Website, as operation: Operation
    ) async throws(Refusal) -> TOTPSetup {
        let (user, use) = try await ready(handle, .totp, website, operation)
        return try await setUpTOTP(for: user, shape, .recovered(use), by: website, as: operation)
    }

    /// Replaces a lost hardware token.
    public func recoverHOTP(
        handle: String, seed: TokenSeed, shape: CodeShape, by website: Website, as operation: Operation
    ) async throws(Refusal) -> CodeFactor {
        let (user, use) = try await ready(handle, .hotp, website, operation)
        let factor = try await storeHOTP(for: user, seed, shape, .recovered(use), by: website, as: operation)
        scheduleWebhooks()
        return factor
    }

    /// Creates the activation of a phone that replaces all others.
    public func recoverPhone(
        handle: String, by website: Website, as operation: Operation
    ) async throws(Refusal) -> IssuedActivation {
        let (user, use) = try await ready(handle, .push, website, operation)
        return try await issueActivation(for: user, .recovered(use), by: website, as: operation)
    }

    /// Returns the lost factor of a recovery.
    public func recoveredFactor(handle: String, of website: Website) async throws(Refusal) -> Factor {
        try await recovery(.handle(RecoveryToken.digest(handle)), of: website).factor
    }

    private func ready(
        _ handle: String, _ factor: Factor, _ website: Website, _ operation: Operation
    ) async throws(Refusal) -> (UserRow, RecoveryUse) {
        let row = try await recovery(.handle(RecoveryToken.digest(handle)), of: website)
        let now = time.now()
        guard row.factor == factor else { throw .notFound }
        // A repetition of the request that ended the recovery gets its answer.
        if !operation.mayHaveRun || row.life.state != .done { try require(row, [.ready], at: now) }
        let user = try await user(named: row.username, of: website)
        guard user.state == .active else { throw Self.barred(user.state) }
        return (user, RecoveryUse(recovery: row.id, operation: row.operation, at: now))
    }

    /// Cancels a recovery with the token of an announcement.
    public func cancelRecovery(token: String, by website: Website) async throws(Refusal) {
        let row = try await recovery(.cancel(RecoveryToken.digest(token)), of: website)
        guard try await cancel(row.id, of: row.user, by: .code, website.name) else { throw .notFound }
    }

    /// Cancels a recovery for a user who is logged in. It is no error if it has ended.
    public func cancelRecovery(
        _ id: RecoveryID, ofUser username: String, by website: Website
    ) async throws(Refusal) {
        let user = try await user(named: username, of: website)
        _ = try await cancel(id, of: user.id, by: .website, website.name)
    }

    public func cancelRecovery(_ id: RecoveryID, by phone: PhoneCredential) async throws(Refusal) {
        _ = try await cancel(id, of: phone.user, by: .phone, phone.website.name)
    }

    /// Logs the recoveries that another change of the user has ended. The log is no part of the
    /// change: if the store does not answer now, only the audit has their end.
    func reportEndedRecoveries(
        by operation: Operation, of user: UserID, _ website: String?, _ reason: RecoveryEndReason
    ) async {
        await reportEndedRecoveries(noted: operation.endOfRecoveries, of: user, website, reason)
    }

    /// - Parameter noted: the id of the audit row of the end.
    func reportEndedRecoveries(
        noted: OperationID, of user: UserID, _ website: String?, _ reason: RecoveryEndReason
    ) async {
        let event = try? await withStore("recovery") { () async throws(StoreFailure) in
            try await store.recordCodeUse(noted)
        }
        guard event != nil else { return }
        log.notice("recovery.cancelled", [.website: website, .user: user.text, .outcome: reason.rawValue])
        scheduleWebhooks()
    }

    private func cancel(
        _ id: RecoveryID, of user: UserID, by author: ChangeAuthor, _ website: String
    ) async throws(Refusal) -> Bool {
        let cancelling = RecoveryCancelling(id, of: user, by: author, at: time.now())
        let operation = operations.new()
        let isCancelled = try await withStore("recovery") { () async throws(StoreFailure) in
            try await store.cancel(cancelling, as: operation)
        }
        guard isCancelled else { return false }
        log.notice("recovery.cancelled", [.website: website, .user: user.text, .outcome: author.rawValue])
        scheduleWebhooks()
        return true
    }
}

/// The permission by which a factor is added.
enum FactorPermission: Sendable {
    /// The user or the website has approved it; nil if nobody was asked.
    case approved(Approved?)
    case recovered(RecoveryUse)

    var approved: Approved? { if case .approved(let approved) = self { approved } else { nil } }
    var recovery: RecoveryUse? { if case .recovered(let use) = self { use } else { nil } }
}

extension Policy {
    /// The time between the second proof of a recovery and the change.
    public var wait: Duration { .seconds(recoveryWait * 3600) }
}
