import Metrics
import Synchronization
import Webhooks
import World

/// The metrics of webhooks.
struct WebhookMetrics: Sendable {
    enum Outcome: String, CaseIterable {
        case delivered, failed, unsubscribed, dead, unsent
    }

    private let attempts: Counters<Outcome>
    private let took: Histogram
    private let level = WebhookGauge()

    init(_ registry: Registry) {
        attempts = registry.counters(
            "twoefay_webhook_attempts_total",
            "Webhook attempts, by outcome: delivered, failed (will be retried), dead (no further attempt), "
                + "unsubscribed (410) or unsent (relay fault).",
            by: "outcome")
        took = registry.histogram(
            "twoefay_webhook_delivery_seconds", "Time from an event until its webhook was delivered, in seconds.",
            upTo: [.milliseconds(100), .milliseconds(250), .milliseconds(500)]
                + [1, 2, 5, 15, 60, 300, 1800, 7200, 21_600, 86_400].map { .seconds($0) })
        registry.duration(
            "twoefay_webhook_oldest_overdue_seconds",
            "Age of the oldest overdue webhook, in seconds; webhooks of disabled websites are not included."
        ) { [level] in level.late }
        registry.gauge("twoefay_webhook_dead_letters", "Dead letters that are webhooks.") {
            [level] in level.dead
        }
        registry.gauge(
            "twoefay_webhook_disabled_websites", "Websites whose webhooks are disabled until an operator enables them."
        ) { [level] in level.disabled }
    }

    func ended(_ outcome: WebhookOutcome, isDead: Bool) {
        switch outcome.meaning {
        case .delivered: attempts.add(.delivered)
        case .failed: attempts.add(isDead ? .dead : .failed)
        case .unsubscribed: attempts.add(.unsubscribed)
        case .notAttempted: attempts.add(.unsent)
        }
    }

    /// Counts a webhook that expired before it was sent.
    func expired() { attempts.add(.dead) }

    func delivered(after duration: Duration) { took.observe(max(duration, .zero)) }

    func set(_ backlog: WebhookBacklog, at now: Timestamp) { level.set(backlog, at: now) }
}

/// The backlog when it was last read.
private final class WebhookGauge: Sendable {
    private let level = Mutex((late: Duration.zero, dead: Int64(0), disabled: Int64(0)))

    var late: Duration { level.withLock { $0.late } }
    var dead: Int64 { level.withLock { $0.dead } }
    var disabled: Int64 { level.withLock { $0.disabled } }

    func set(_ backlog: WebhookBacklog, at now: Timestamp) {
        level.withLock { $0 = (backlog.oldestDue.map { now - $0 } ?? .zero, backlog.dead, backlog.disabled) }
    }
}
