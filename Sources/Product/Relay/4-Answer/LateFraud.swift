import Domain
import Log
import World

/// A report of fraud that does not answer its challenge: a phone's signed one about a challenge that
/// ended otherwise, or one by the link to an account.
public struct LateFraud: Sendable {
    public let challenge: ChallengeID
    public let user: UserID
    /// The phone that reports; nil for a link. The write is refused if its state has changed since it
    /// was read.
    public let phone: PhoneCredential?
    public let at: Timestamp

    public init(challenge: ChallengeID, phone: PhoneCredential, at: Timestamp) {
        self.challenge = challenge
        user = phone.user
        self.phone = phone
        self.at = at
    }

    /// A report by a link.
    public init(challenge: ChallengeID, of user: UserID, at: Timestamp) {
        self.challenge = challenge
        self.user = user
        phone = nil
        self.at = at
    }
}

extension Relay {
    /// Freezes the user after a report of fraud about an ended challenge. An attacker who can open
    /// logins could otherwise end each one before the user reports it. Therefore a report counts as
    /// long as the result of the challenge can be read. The challenge keeps its end.
    ///
    /// A report counts once for each phone and challenge, so that a repetition does not freeze a
    /// user again who was unlocked since.
    func freezeOnLateReport(fraud row: ChallengeRow, by phone: PhoneCredential) async throws(Refusal) {
        guard row.life.decision != .fraud, result(row) != nil else { return }
        let report = LateFraud(challenge: row.id, phone: phone, at: time.now())
        _ = try await freeze(
            report, as: lateReport(about: row.id, by: phone.id), phone.website.name)
    }

    /// Freezes the user whom a link names, after a report of fraud about a challenge. It counts as
    /// long as one of a phone, and also while the challenge is open: a person without a phone cannot
    /// answer it. Each link reports once.
    ///
    /// - Parameters:
    ///   - text: the text of the link.
    ///   - sender: the source address of the request.
    public func reportFraud(_ challenge: ChallengeID, link text: String, from sender: String) async throws(Refusal) {
        let (link, holder) = try await opened(link: text, from: sender)
        let found = try await withStore("fraud") { () async throws(StoreFailure) in
            try await store.challenge(challenge, of: holder.user.id)
        }
        guard let found else { throw .notFound }
        let row = try await settled(found)
        guard row.life.decision != .fraud, result(row) != nil else { throw Self.tooLateToReport }
        let report = LateFraud(challenge: row.id, of: row.user, at: time.now())
        guard try await freeze(report, as: lateReport(by: link), holder.website.name) else {
            throw Self.tooLateToReport
        }
        log.notice(
            "account.reported",
            [
                .website: holder.website.name, .user: row.user.text, .challenge: row.id.text,
                .message: link.mail.text, .remote: sender,
            ])
    }

    /// Returns the operation of a report by a phone.
    func lateReport(about challenge: ChallengeID, by phone: DeviceID) -> Operation {
        operations.fixed("fraud", phone.bytes + challenge.bytes)
    }

    /// Returns the operation of a report by a link. There is one for each link, whatever it reports:
    /// whoever got hold of it can freeze the user once, and not again after each unlock.
    func lateReport(by link: AccountLink) -> Operation { operations.fixed("fraud by link", link.mail.bytes) }

    /// Returns whether the report counts.
    private func freeze(
        _ report: LateFraud, as operation: Operation, _ website: String
    ) async throws(Refusal) -> Bool {
        let closed = try await withStore("fraud") { () async throws(StoreFailure) in
            try await store.freeze(report, as: operation)
        }
        guard let closed else { return false }
        follow(closed, report.challenge, of: report.user, website, by: report.phone?.id)
        await reportEndedRecoveries(by: operation, of: report.user, website, .fraud)
        return true
    }

    private static let tooLateToReport = Refusal.conflict([
        FieldFault(
            "challenge", .state,
            LocalizedText(
                "can no longer be reported: it was reported before, or has been over for a day",
                de: "kann nicht mehr gemeldet werden: Die Anmeldung wurde schon gemeldet oder ist seit einem Tag vorbei"
            ))
    ])
}
