import Log
import Metrics
import Relay
import TestSupport
import Testing
import World

@testable import Daemon

/// An expiring certificate is reported in time, and once for each threshold.
@Suite struct CertificateExpiryTests {
    private let time = TestTime()
    private let sink = MemorySink()
    private let day = Duration.seconds(86_400)
    private var log: Log { Log(time: time, sink: sink) }

    private func certificate(_ setting: String, lasts days: Int64, and seconds: Int64 = 0) -> CertificateExpiry {
        let notAfter = time.now() + .seconds(days * 86_400 + seconds)
        return CertificateExpiry(setting: setting, path: "/etc/\(setting).pem", notAfter: notAfter)
    }

    @Test func eachExpiryThresholdIsLoggedOnce() {
        let certificates = Certificates(
            [certificate("tls.certificate", lasts: 31), certificate("tls.ca", lasts: 400)], time: time, log: log,
            Registry())
        var reported: [Int64: String] = [:]
        // Checks once an hour, as if checks were rare.
        for hour in Int64(0)...(32 * 24) {
            certificates.look()
            let lines = sink.drain()
            #expect(lines.count <= 1)
            if let line = lines.first { reported[hour] = line }
            time.advance(by: .seconds(3600))
        }
        #expect(reported.count == 5)
        let expected: [(day: Int64, left: Int, level: String)] = [
            (1, 30, "warning"), (17, 14, "warning"), (24, 7, "error"), (30, 1, "error"), (31, 0, "error"),
        ]
        for (day, days, level) in expected {
            let line = reported[day * 24] ?? "nothing"
            let rest = "event=certificate.expires setting=tls.certificate path=/etc/tls.certificate.pem days=\(days) "
            #expect(line.contains("level=\(level) \(rest)"), "\(line)")
        }
    }

    /// A relay that was stopped reports the threshold reached now, and no earlier one.
    @Test func onlyTheLatestPassedThresholdIsLogged() {
        var notices = ExpiryNotices()
        let certificate = certificate("tls.ca", lasts: 3, and: 7200)
        #expect(notices.due([certificate], at: time.now()).map(\.threshold) == [day * 7])
        #expect(notices.due([certificate], at: time.now()).isEmpty)
        // After a restart the threshold is reported again.
        var another = ExpiryNotices()
        #expect(another.due([certificate], at: time.now()).map(\.threshold) == [day * 7])
        #expect(certificate.days(at: time.now()) == 3)
    }

    @Test func thresholdIsExactToTheSecond() {
        for (seconds, threshold) in [(1, nil), (0, day * 30), (-1, day * 30)] as [(Int64, Duration?)] {
            var notices = ExpiryNotices()
            let due = notices.due([certificate("tls.ca", lasts: 30, and: seconds)], at: time.now())
            #expect(due.first?.threshold == threshold)
        }
    }

    /// The threshold of the notice about a list that is due; nil if none is.
    private func due(_ left: Duration, of life: Duration) -> Duration? {
        let list = CertificateExpiry(
            setting: "tls.revoked", path: "/etc/revoked.pem", notAfter: time.now() + left, life: life)
        var notices = ExpiryNotices()
        return notices.due([list], at: time.now()).first?.threshold
    }

    /// A revocation list that is made anew every week would otherwise be about to end always.
    @Test func listIsReportedInTheSecondHalfOfItsLife() {
        #expect(due(day * 30, of: day * 60) == day * 30)
        #expect(due(day * 30, of: day * 59) == nil)
        #expect(due(day * 14, of: day * 59) == day * 14)
        #expect(due(day * 2, of: day * 7) == nil)
        #expect(due(day, of: day * 7) == day)
        #expect(due(day, of: day * 2) == day)
        #expect(due(.zero, of: day * 7) == .zero)
    }

    /// Otherwise the first notice would come when all websites are locked out.
    @Test func shortListIsReportedWithAQuarterOfItsLifeLeft() {
        let hour = Duration.seconds(3600)
        for (life, quarter) in [(hour * 24, hour * 6), (hour * 47, hour * 47 / 4), (hour, .seconds(900))] {
            #expect(due(quarter + .seconds(1), of: life) == nil)
            #expect(due(quarter, of: life) == quarter)
            #expect(due(.seconds(1), of: life) == quarter)
            #expect(due(.zero, of: life) == .zero)
        }
    }

    @Test func filesThatAReloadNamesHaveAMetric() {
        let registry = Registry()
        let certificates = Certificates([certificate("tls.ca", lasts: 50)], time: time, log: log, registry)
        let series = "twoefay_certificate_expires_timestamp_seconds{certificate=\"webhooks.ca\"}"
        #expect(registry.number(series) == nil)
        certificates.replace([certificate("tls.ca", lasts: 50), certificate("webhooks.ca", lasts: 60)])
        #expect(registry.number(series) == Double(time.now().seconds + 60 * 86_400))
    }

    /// An expired list refuses every certificate of its issuer, so the relay must say so.
    @Test func endedListIsAFault() {
        let list = CertificateExpiry(
            setting: "tls.revoked", path: "/etc/revoked.pem", notAfter: time.now() + .seconds(10),
            life: .seconds(86_400))
        let registry = Registry()
        let certificates = Certificates([certificate("tls.ca", lasts: 5), list], time: time, log: log, registry)
        #expect(certificates.fault == nil)
        let series = "twoefay_certificate_expires_timestamp_seconds{certificate=\"tls.revoked\"}"
        #expect(registry.number(series) == Double(time.now().seconds + 10))
        time.advance(by: .seconds(10))
        #expect(certificates.fault == "tls.revoked expired at \(list.notAfter.rfc3339)")
        certificates.look()
        #expect(sink.drain().contains { $0.contains("level=error event=certificate.expires setting=tls.revoked") })
        certificates.replace([certificate("tls.ca", lasts: 5)])
        #expect(certificates.fault == nil)
    }

    @Test func websiteIsNamedBeforeItsCertificateEnds() {
        let registry = Registry()
        let websites = WebsiteExpiries(time: time, log: log, registry)
        let series = "twoefay_website_certificate_expires_timestamp_seconds{certificate=\"soonest\"}"
        #expect(registry.number(series) == nil)
        let (soon, late) = (time.now() + day * 8, time.now() + day * 400)
        let both = [WebsiteExpiry(website: "shop", expiresAt: soon), WebsiteExpiry(website: "bank", expiresAt: late)]
        for _ in 0..<2 { websites.note(both) }
        let lines = sink.drain()
        #expect(lines.count == 1)
        #expect(lines.first?.contains("level=warning event=website.expires website=shop days=8") == true, "\(lines)")
        #expect(registry.number(series) == Double(soon.seconds))
        time.advance(by: day * 2)
        websites.note(both)
        #expect(sink.drain().first?.contains("level=error event=website.expires website=shop days=6") == true)
        // After its renewal nothing more is said.
        websites.note([WebsiteExpiry(website: "shop", expiresAt: late)])
        #expect(sink.drain().isEmpty)
        #expect(registry.number(series) == Double(late.seconds))
    }

    @Test func renewedCertificateIsReportedAnew() {
        let registry = Registry()
        let certificates = Certificates([certificate("tls.ca", lasts: 5)], time: time, log: log, registry)
        let series = "twoefay_certificate_expires_timestamp_seconds{certificate=\"tls.ca\"}"
        certificates.look()
        #expect(sink.drain().count == 1)
        #expect(registry.number(series) == Double(time.now().seconds + 5 * 86_400))
        certificates.replace([certificate("tls.ca", lasts: 90)])
        #expect(sink.drain().isEmpty)
        #expect(registry.number(series) == Double(time.now().seconds + 90 * 86_400))
        time.advance(by: .seconds(61 * 86_400))
        certificates.look()
        #expect(sink.drain().map { $0.contains("level=warning event=certificate.expires") } == [true])
    }

    @Test func expiryWarningsAreReadable() {
        let now = time.now()
        #expect(certificate("a", lasts: 30, and: 1).warning(at: now) == nil)
        for (days, seconds, text) in [
            (12, 5, "expires in 12 days, at"), (1, 5, "expires in 1 day, at"), (0, 5, "expires within a day, at"),
            (0, 0, "expired at"), (-3, 0, "expired at"),
        ] as [(Int64, Int64, String)] {
            let warning = certificate("a", lasts: days, and: seconds).warning(at: now)
            #expect(warning?.hasPrefix("/etc/a.pem: \(text) 20") == true, "\(warning ?? "nothing")")
            #expect(warning?.hasSuffix("Z (a)") == true, "\(warning ?? "nothing")")
        }
        let list = CertificateExpiry(
            setting: "tls.revoked", path: "/etc/revoked.pem", notAfter: now, life: .seconds(86_400))
        #expect(
            list.warning(at: now)?.hasSuffix("Z (tls.revoked, a revocation list; to renew it: twoefay website crl)")
                == true)
        // A website's certificate is in no setting.
        let shop = CertificateExpiry(setting: "shop", path: "shop", notAfter: now)
        #expect(shop.warning(at: now) == "shop: expired at \(now.rfc3339)")
    }
}
