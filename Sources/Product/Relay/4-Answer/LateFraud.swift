import Domain
import World

/// A signed report of fraud about a challenge that ended otherwise.
public struct LateFraud: Sendable {
    public let challenge: ChallengeID
    /// The phone that reports. The write is refused if its state has changed since it was read.
    public let phone: PhoneCredential
    public let at: Timestamp

    public init(challenge: ChallengeID, phone: PhoneCredential, at: Timestamp) {
        self.challenge = challenge
        self.phone = phone
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
        let operation = operations.fixed("fraud", phone.id.bytes + row.id.bytes)
        let closed = try await withStore("fraud") { () async throws(StoreFailure) in
            try await store.freeze(report, as: operation)
        }
        guard let closed else { return }
        follow(closed, row.id, of: phone.user, phone.website.name, by: phone.id)
        await reportEndedRecoveries(by: operation, of: phone.user, phone.website.name, .fraud)
    }
}
