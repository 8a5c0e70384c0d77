import Domain
import Log
import World

/// A decision that the relay refused, as it is recorded in the audit.
public struct RefusedDecision: Sendable, Equatable {
    public let fault: DecisionFault
    public let website: WebsiteID
    public let user: UserID
    public let device: DeviceID
    /// The challenge; nil if the phone's user has no challenge with this id.
    public let challenge: ChallengeID?
    public let at: Timestamp
}

extension Relay {
    /// Records a refused decision and returns the refusal for its sender. No state changes, and no
    /// failure is counted.
    ///
    /// The audit has one row for each fault, challenge and phone, however often the phone repeats
    /// the answer. For unknown challenges it has one row for each fault, phone and day. The rows of
    /// one phone in one minute are limited. So a flood cannot fill the disk, hide other events or
    /// block the store. The log and the metrics count all refusals.
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
        // The decision is refused even if this write fails.
        _ = try? await withStore("refusedDecision") { () async throws(StoreFailure) in
            try await store.recordRefusal(refused, as: operation)
        }
        return refusal
    }
}
