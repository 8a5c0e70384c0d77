import Domain
import World

/// A signed report of fraud about a challenge that has another end.
public struct LateFraud: Sendable {
    public let challenge: ChallengeID
    /// What is known of it must still be true when this is written.
    public let phone: PhoneCredential
    public let at: Timestamp

    public init(challenge: ChallengeID, phone: PhoneCredential, at: Timestamp) {
        self.challenge = challenge
        self.phone = phone
        self.at = at
    }
}

extension Relay {
    /// Whoever can ask for logins could give each its end before its user has said that it was fraud. So the report
    /// counts for as long as the end can be read: the challenge keeps its end, and the user is frozen. Once for each
    /// phone and challenge, so that the same report does not freeze again whom somebody has unlocked since.
    func freezeOnLateReport(fraud row: ChallengeRow, by phone: PhoneCredential) async throws(Refusal) {
        guard row.life.decision != .fraud, result(row) != nil else { return }
        let report = LateFraud(challenge: row.id, phone: phone, at: time.now())
        let operation = operations.fixed("fraud", phone.id.bytes + row.id.bytes)
        let closed = try await withStore("fraud") { () async throws(StoreFailure) in
            try await store.freeze(report, as: operation)
        }
        if let closed { follow(closed, row.id, of: phone.user, phone.website.name, by: phone.id) }
    }
}
