import Log
import Metrics
import Synchronization
import World

/// The end dates of the certificates and revocation lists that were read last: as a gauge, as
/// warnings in the log, and as a dependency of `/ready`.
final class Certificates: Sendable {
    private struct State {
        var known: [CertificateExpiry]
        var watch = ExpiryNotices()
    }

    private let state: Mutex<State>
    private let time: any TimeSource
    private let log: Log

    init(_ known: [CertificateExpiry], time: any TimeSource, log: Log, _ registry: Registry) {
        state = Mutex(State(known: known))
        self.time = time
        self.log = log
        // A reload may name other files.
        registry.growingGauges(
            "twoefay_certificate_expires_timestamp_seconds",
            "Expiry time of each certificate and revocation list, in seconds since 1970, by the setting that names it.",
            by: "certificate"
        ) { [weak self] in self?.ends ?? [:] }
    }

    private var ends: [String: Int64] {
        let known = state.withLock { $0.known }
        return Dictionary(known.map { ($0.setting, $0.notAfter.seconds) }, uniquingKeysWith: min)
    }

    /// The certificates and lists that have ended; nil if all of them are valid.
    var fault: String? {
        let now = time.now()
        let ended = state.withLock { $0.known.filter { $0.notAfter <= now } }
        guard !ended.isEmpty else { return nil }
        return ended.map { "\($0.setting) expired at \($0.notAfter.rfc3339)" }.joined(separator: ", ")
    }

    func replace(_ known: [CertificateExpiry]) {
        state.withLock { $0.known = known }
        look()
    }

    /// Logs each certificate that ends soon, as `ExpiryNotices` selects them.
    func look() {
        let now = time.now()
        for notice in state.withLock({ $0.watch.due($0.known, at: now) }) {
            let certificate = notice.certificate
            let fields: LogFields = [
                .setting: certificate.setting, .path: certificate.path, .days: certificate.days(at: now),
                .expiresAt: certificate.notAfter.rfc3339,
            ]
            if notice.isUrgent {
                log.error("certificate.expires", fields)
            } else {
                log.warning("certificate.expires", fields)
            }
        }
    }
}
