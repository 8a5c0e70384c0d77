import Log
import Metrics
import Relay
import Synchronization
import World

/// The end dates of the websites' certificates: the soonest as a gauge, and each as warnings in the
/// log, on the same days as for the relay's own certificates.
///
/// The metric names no website, because metrics have no labels that websites choose.
final class WebsiteExpiries: Sendable {
    private struct State {
        var soonest: Timestamp?
        var notices = ExpiryNotices()
    }

    private let state = Mutex(State())
    private let time: any TimeSource
    private let log: Log

    init(time: any TimeSource, log: Log, _ registry: Registry) {
        self.time = time
        self.log = log
        registry.growingGauges(
            "twoefay_website_certificate_expires_timestamp_seconds",
            "Time at which the first active website has no valid certificate left, in seconds since 1970.",
            by: "certificate"
        ) { [weak self] in
            self?.state.withLock { $0.soonest.map { ["soonest": $0.seconds] } } ?? [:]
        }
    }

    /// Reads the dates, and logs each website whose certificate ends soon.
    func look(_ relay: Relay) async {
        guard let websites = await relay.websiteExpiries() else { return }
        note(websites)
    }

    func note(_ websites: [WebsiteExpiry]) {
        let now = time.now()
        let expiries = websites.map {
            CertificateExpiry(setting: $0.website, path: "", notAfter: $0.expiresAt)
        }
        let due = state.withLock { state in
            state.soonest = websites.map(\.expiresAt).min { $0 < $1 }
            return state.notices.due(expiries, at: now)
        }
        for notice in due {
            let fields: LogFields = [
                .website: notice.certificate.setting, .days: notice.certificate.days(at: now),
                .expiresAt: notice.certificate.notAfter.rfc3339,
            ]
            if notice.isUrgent {
                log.error("website.expires", fields)
            } else {
                log.warning("website.expires", fields)
            }
        }
    }
}
