import FakePushServices
import Glibc
import JSON
import TestSupport
import Testing

/// The metrics page, as a Prometheus on the relay's machine reads it.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct MetricsPageTests {
    @Test func metricsCountLogins() async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(apple: apple) { try $0.set("metrics.listen", to: "127.0.0.1:0") }
        let address = try await MetricsPage.address(of: fixture.relay)
        let before = try await MetricsPage.curl(address, "/metrics")
        #expect(before.output.hasPrefix("HTTP/1.1 200"), "\(before)")
        #expect(before.output.lowercased().contains("content-type: text/plain; version=0.0.4"))
        let ended = "twoefay_challenges_ended_total"
        #expect(MetricsPage.number("twoefay_challenges_asked_total", before) == 0)
        #expect(MetricsPage.number(ended, before) == 0)

        let (token, phone) = try await fixture.enrol("anna")
        let first = try await fixture.login(token, ["ip": "203.0.113.77", "service": "the till"])
        try await fixture.relay.logged("event=push.accepted challenge=\(first.challenge)")
        let second = try await fixture.login(token)
        try await fixture.relay.logged("event=push.accepted challenge=\(second.challenge)")
        try await fixture.finish(second, by: phone)
        let after = try await MetricsPage.curl(address, "/metrics")
        #expect(MetricsPage.number("twoefay_challenges_asked_total{factor=\"push\"}", after) == 2)
        #expect(MetricsPage.number("twoefay_challenges_asked_total", after) == 2)
        #expect(MetricsPage.number("\(ended){result=\"success\"", after) == 1)
        #expect(MetricsPage.number("\(ended){result=\"failure\",reason=\"superseded\"", after) == 1)
        #expect(MetricsPage.number(ended, after) == 2)
        #expect(MetricsPage.number("twoefay_pushes_total{outcome=\"accepted\"}", after) == 2)
        #expect(MetricsPage.number("twoefay_limits_reached_total", after) == 0)
        #expect(MetricsPage.number("twoefay_apns_answers_total{status=\"200\",reason=\"Success\"}", after) == 2)
        #expect(MetricsPage.number("twoefay_apns_answers_total", after) == 2)
        #expect(MetricsPage.number("twoefay_apns_answer_seconds_count", after) == 2)
        #expect(try #require(MetricsPage.number("twoefay_apns_connections_opened_total", after)) >= 1)
        #expect(
            MetricsPage.number("twoefay_apns_in_flight", after) == 0
                && MetricsPage.number("twoefay_apns_queued", after) == 0)
        #expect(after.output.contains("\ntwoefay_apns_provider_token_age_seconds "))
        #expect(MetricsPage.number("twoefay_push_accepted_seconds_count", after) == 2)
        #expect(MetricsPage.number("twoefay_answer_seconds_count", after) == 1)
        for kind in ["read", "write"] {
            let count = "twoefay_store_seconds_count{kind=\"\(kind)\"}"
            #expect(try #require(MetricsPage.number(count, after)) > MetricsPage.number(count, before) ?? 0, "\(kind)")
        }
        let certificates = "\ntwoefay_certificate_expires_timestamp_seconds{certificate="
        for setting in ["tls.certificate", "tls.ca", "tls.websites", "tls.phones", "push.apns.ca"] {
            #expect(after.output.contains("\(certificates)\"\(setting)\"} "), "\(setting)")
        }
        let logins = "twoefay_requests_total{method=\"POST\",route=\"/login\",status=\"2xx\"}"
        #expect(MetricsPage.number(logins, after) == 2)
        #expect(MetricsPage.number("twoefay_dependency_ready{dependency=\"store\"}", after) == 1)
        #expect(MetricsPage.number("twoefay_dependency_ready{dependency=\"push\"}", after) == 1)
        #expect(after.output.contains("\ntwoefay_build_info{version=\""))
        // The kernel's own figures of the process. The hardening must not hide them.
        for figure in [
            "process_cpu_seconds_total", "process_resident_memory_bytes", "process_virtual_memory_bytes",
            "process_open_fds", "process_max_fds", "process_start_time_seconds",
        ] {
            let lines = after.output.split(separator: "\n")
            let line = try #require(lines.first { $0.hasPrefix("\(figure) ") }, "\(figure)")
            #expect(try #require(Double(line.dropFirst(figure.count + 1)), "\(line)") > 0, "\(line)")
        }
        // No text from a client, and nothing that identifies a user. The name of a website is a label of its own.
        for text in ["anna", "203.0.113", "the till", token, first.challenge, phone.device] {
            #expect(!after.output.contains(text), "\(text)")
        }
    }

    @Test func metricsPageAnswersOnlyLocalNames() async throws {
        let relay = try await RunningRelay.start { try $0.set("metrics.listen", to: "127.0.0.1:0") }
        let address = try await MetricsPage.address(of: relay)
        #expect(try await MetricsPage.curl(address, "/metrics", "--head").output.hasPrefix("HTTP/1.1 200"))
        let other = try await MetricsPage.curl(address, "/")
        #expect(other.output.hasPrefix("HTTP/1.1 404") && other.output.contains("/metrics"), "\(other)")
        #expect(try await MetricsPage.curl(address, "/metrics", "--data", "x").output.hasPrefix("HTTP/1.1 405"))
        let rebound = try await MetricsPage.curl(address, "/metrics", "--header", "host: rebound.example")
        #expect(rebound.output.hasPrefix("HTTP/1.1 421") && !rebound.output.contains("twoefay_"), "\(rebound)")
        // The public port has no metrics page.
        #expect(try await relay.caller().curl("GET", "/metrics").status == 404)
        #expect(await relay.stop().status == 0)
    }

    /// Prometheus's own tool finds no fault in the page.
    @Test(.enabled(if: access("/usr/bin/promtool", X_OK) == 0, "promtool is not installed; run: dev/need test"))
    func promtoolAcceptsThePage() async throws {
        let relay = try await RunningRelay.start { try $0.set("metrics.listen", to: "127.0.0.1:0") }
        let address = try await MetricsPage.address(of: relay)
        let script = """
            set -o pipefail
            curl --silent --show-error --fail --max-time 60 http://\(address)/metrics | promtool check metrics
            """
        let ended = try await Child.run("bash", ["-c", script])
        #expect(ended.status == 0 && ended.output + ended.errors == "", "\(ended)")
    }

    @Test func metricsPageIsOffByDefault() async throws {
        let relay = try await RunningRelay.start()
        #expect(!relay.log.contains("metrics.started"))
    }

    @Test func metricsPortInUseIsAnError() async throws {
        let first = try await RunningRelay.start { try $0.set("metrics.listen", to: "127.0.0.1:0") }
        let address = try await MetricsPage.address(of: first)
        let second = try await RunningRelay.start()
        await second.stop()
        try second.change { try $0.set("metrics.listen", to: address) }
        let refused = try await Child.run(try BuiltProgram.twoefayd.path, ["--config", second.settings])
        #expect(refused.status == 5)
        #expect(refused.errors.contains(address) && refused.errors.contains("metrics.listen"), "\(refused.errors)")
    }
}
