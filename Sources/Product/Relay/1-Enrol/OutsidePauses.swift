import Domain
import Synchronization
import World

/// The pauses of phones between requests to an authority outside of the installation.
///
/// Purpose: a request that ends without a recorded certificate counts nowhere in the store, so a
/// phone could repeat it without end, and each time the authority might issue a certificate or ask
/// a person. RFC 7030 (4.2.3) also forbids a repetition before the `Retry-After` of the server.
///
/// Invariant: each phone has at most one request under way for each purpose, and the next one
/// begins only after the pause that the outcome demands. The pauses are those of one relay: a
/// restart forgets them, and each relay of a cluster has its own.
///
/// Tests: `RelayTests/OutsideEnrolmentTests.swift`.
final class OutsidePauses: Sendable {
    /// The time for which a request blocks the next one if its outcome is never reported. It is
    /// longer than the deadline of any request.
    static let underWay = Duration.seconds(30)
    /// The pause after an authority did not answer.
    static let unavailable = Duration.seconds(60)
    /// The pause after a refusal, or after a certificate that was refused. Somebody must change
    /// something first.
    static let failed = Duration.seconds(3600)

    private struct Purpose: Hashable {
        let device: DeviceID
        let tag: String?
    }

    private let ends = Mutex(GenerationalCache<Purpose, Instant>(most: 65_536))

    /// Begins a request. Returns how long the phone must wait instead, if it is in a pause.
    func begin(_ order: CertificateOrder, at now: Instant) -> Duration? {
        ends.withLock { ends in
            let purpose = Purpose(device: order.device, tag: order.tag?.name)
            if let end = ends[purpose], end > now { return end - now }
            ends[purpose] = now + Self.underWay
            return nil
        }
    }

    /// Ends a request.
    ///
    /// - Parameter failure: the reason why there is no certificate; nil if there is one.
    func end(_ order: CertificateOrder, _ failure: CertificateFailure?, at now: Instant) {
        let pause: Duration? =
            switch failure {
            case .later(_, let pause): pause
            case .unavailable: Self.unavailable
            case .failed: Self.failed
            case .absent, nil: nil
            }
        ends.withLock { $0[Purpose(device: order.device, tag: order.tag?.name)] = pause.map { now + $0 } }
    }
}
