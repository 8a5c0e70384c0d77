import Domain
import Log
import World

/// A decision that was not taken, as the audit has it.
public struct RefusedDecision: Sendable, Equatable {
    public let fault: DecisionFault
    public let website: WebsiteID
    public let user: UserID
    public let device: DeviceID
    /// Nil where there is none of this phone's.
    public let challenge: ChallengeID?
    public let at: Timestamp
}

extension Relay {
    /// Writes a refused decision down and hands back what its sender is told. No state changes and no failure is counted.
    ///
    /// However often a phone sends the same, the audit has one row: for each fault, challenge and phone, and for
    /// challenges that are none one for each phone and day; and of one phone only so many are written in a minute. So a
    /// flood can neither fill the disk, nor hide what happened, nor keep others from the store; how much of it there was
    /// is in the log and in the metrics.
    func refused(
        _ fault: DecisionFault, _ challenge: ChallengeID?, by phone: PhoneCredential, as refusal: Refusal
    ) async -> Refusal {
        let now = time.now()
        metrics.refused(fault)
        log.info(
            "decision.refused",
            [
                .reason: fault.rawValue, .website: phone.website.name, .user: phone.user.text,
                .device: phone.id.text, .challenge: challenge?.text,
            ])
        let occasion = challenge?.bytes ?? Array("day \(now.seconds / 86_400)".utf8)
        let operation = operations.fixed(
            "refused", phone.id.bytes + occasion + Array(fault.rawValue.utf8))
        let refused = RefusedDecision(
            fault: fault, website: phone.website.id, user: phone.user, device: phone.id, challenge: challenge, at: now)
        guard refusals.spend(operation.id, of: phone.id, at: time.instant()) else { return refusal }
        // Whether or not it can be written, the decision is refused.
        _ = try? await withStore("refused") { () async throws(StoreFailure) in
            try await store.recordRefusal(refused, as: operation)
        }
        return refusal
    }
}
