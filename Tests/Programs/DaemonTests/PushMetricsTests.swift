import Metrics
import Pushes
import TestSupport
import Testing

@testable import Daemon

/// The number of series is constant, whatever the push service answers.
@Suite struct PushMetricsTests {
    @Test func apnsAnswersAreCountedByKnownReason() {
        let registry = Registry()
        let metrics = PushMetrics(of: .apns, registry)
        let lines = String(decoding: registry.exposition(), as: UTF8.self).split(separator: "\n").count
        let said: [(status: Int, reason: String, labels: String)] = [
            (200, "Success", #"status="200",reason="Success""#),
            (410, "Unregistered", #"status="410",reason="Unregistered""#),
            (400, "NewsFromApple", #"status="400",reason="Other""#),
            (418, "BadPath", #"status="Other",reason="Other""#),
        ]
        for (status, reason, _) in said { metrics.answered(status: status, reason: reason, after: .milliseconds(40)) }
        for (_, _, labels) in said {
            #expect(registry.number("twoefay_apns_answers_total{\(labels)}") == 1, "\(labels)")
        }
        #expect(registry.number("twoefay_apns_answer_seconds_bucket{le=\"0.025\"}") == 0)
        #expect(registry.number("twoefay_apns_answer_seconds_bucket{le=\"0.05\"}") == 4)
        #expect(String(decoding: registry.exposition(), as: UTF8.self).split(separator: "\n").count == lines)
    }

    @Test func connectionEventsAreCounted() {
        let registry = Registry()
        let metrics = PushMetrics(of: .apns, registry)
        for _ in 0..<3 { metrics.connected(host: "api.push.apple.com") }
        for _ in 0..<2 { metrics.disconnected(host: "api.push.apple.com", reason: "reset by peer") }
        metrics.goAway(host: "api.push.apple.com", reason: "bye")
        metrics.tokenRetired(reason: "Unregistered")
        metrics.unanswered(.lost, after: .seconds(1))
        metrics.unsent(.full)
        let expected: [(String, Double)] = [
            ("connections_opened_total", 3), ("connections_ended_total", 2), ("goaways_total", 1),
            ("tokens_retired_total", 1), ("unanswered_total{reason=\"lost\"}", 1),
            ("unanswered_total{reason=\"reset\"}", 0),
            ("unsent_total{reason=\"full\"}", 1),
        ]
        for (series, value) in expected { #expect(registry.number("twoefay_apns_\(series)") == value, "\(series)") }
    }
}
