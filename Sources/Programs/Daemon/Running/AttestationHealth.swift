import Attestation
import Metrics
import Synchronization
import World

/// The state of the revocation list, for `/ready` and the metrics.
final class AttestationHealth: Sendable {
    private let verifier: Mutex<AttestationVerifier>
    private let time: any TimeSource

    init(_ verifier: AttestationVerifier, time: any TimeSource, _ registry: Registry) {
        self.verifier = Mutex(verifier)
        self.time = time
        registry.duration(
            "twoefay_attestation_revocations_age_seconds",
            "Age of the revocation list for Android, in seconds; 0 without one."
        ) { [self] in age ?? .zero }
    }

    func replace(_ verifier: AttestationVerifier) { self.verifier.withLock { $0 = verifier } }

    private var age: Duration? { verifier.withLock { $0 }.revocationList.map { time.now() - $0.fetchedAt } }

    var hasList: Bool { verifier.withLock { $0 }.revocationList != nil }

    /// The reason why the list no longer counts; nil if it counts, or if there is none.
    var fault: String? {
        let verifier = verifier.withLock { $0 }
        guard let list = verifier.revocationList, !verifier.isFresh(list.fetchedAt, at: time.now()) else { return nil }
        return "the revocation list of \(list.fetchedAt.rfc3339) is too old, or dated in the future: fetch it again"
    }
}
