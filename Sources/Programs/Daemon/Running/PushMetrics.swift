import Metrics
import Pushes
import World

/// The metrics of the sender of pushes. Label values come from this program: the reasons that Apple
/// documents, and `Other` for every other text, so a peer cannot create labels.
///
/// Tested in `PushMetricsTests.swift`.
struct PushMetrics: PushObserver {
    private let took: Histogram
    private let answers: Counters<Answer>
    private let unanswered: Counters<PushUnansweredReason>
    private let unsent: Counters<PushUnsentReason>
    private let opened: Counter
    private let ended: Counter
    private let goAways: Counter
    private let retired: Counter

    /// An answer of Apple's, as a pair of status and reason. Each known reason has one status.
    struct Answer: Hashable {
        let status: String
        let reason: String

        static let all: [Answer] =
            [Answer(status: "200", reason: "Success")]
            + reasons.flatMap { status, reasons in
                (reasons + ["Other"]).map { (reason: String) in Answer(status: status, reason: reason) }
            }
            + [other]
        /// The reasons of each status. The type is written out because the compiler takes 14 seconds
        /// to infer it.
        private static let reasons: [(status: String, reasons: [String])] = [
            (
                "400",
                [
                    "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
                    "DeviceTokenNotForTopic", "DuplicateHeaders", "IdleTimeout", "InvalidPushType",
                    "MissingDeviceToken", "MissingTopic", "PayloadEmpty", "TopicDisallowed",
                ]
            ),
            (
                "403",
                [
                    "BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyIdInToken",
                    "BadEnvironmentKeyInToken", "ExpiredProviderToken", "Forbidden", "InvalidProviderToken",
                    "MissingProviderToken", "UnrelatedKeyIdInToken",
                ]
            ),
            ("404", ["BadPath"]),
            ("405", ["MethodNotAllowed"]),
            ("410", ["ExpiredToken", "Unregistered"]),
            ("413", ["PayloadTooLarge"]),
            ("429", ["TooManyProviderTokenUpdates", "TooManyRequests"]),
            ("500", ["InternalServerError"]),
            ("503", ["ServiceUnavailable", "Shutdown"]),
        ]
        private static let other = Answer(status: "Other", reason: "Other")
        private static let known = Set(all)

        init(status: String, reason: String) {
            self.status = status
            self.reason = reason
        }

        /// The known answer with this status and reason. An unknown reason counts as `Other` of its
        /// status, an unknown status as `Other`.
        init(_ status: Int, _ reason: String) {
            let candidates = [reason, "Other"].lazy.map { Answer(status: String(status), reason: $0) }
            self = candidates.first { Self.known.contains($0) } ?? Self.other
        }
    }

    private static let bounds = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000].map {
        Duration.milliseconds($0)
    }

    init(_ registry: Registry) {
        took = registry.histogram(
            "twoefay_apns_answer_seconds", "Time from sending a push to the APNs response, in seconds.",
            upTo: Self.bounds)
        answers = registry.counters(
            "twoefay_apns_answers_total", "APNs responses, by HTTP status and reason.", by: ["status", "reason"],
            Answer.all
        ) { [$0.status, $0.reason] }
        unanswered = registry.counters(
            "twoefay_apns_unanswered_total",
            "Pushes sent without a response, by cause: timeout, reset (stream reset) or lost (connection lost).",
            by: "reason")
        unsent = registry.counters(
            "twoefay_apns_unsent_total",
            "Pushes that were not sent, by cause; most of them are retried.", by: "reason")
        opened = registry.counter("twoefay_apns_connections_opened_total", "Connections to APNs that were opened.")
        ended = registry.counter(
            "twoefay_apns_connections_ended_total",
            "Connections to APNs that ended, and connection attempts that failed.")
        goAways = registry.counter(
            "twoefay_apns_goaways_total", "Connections to APNs that received a GOAWAY frame.")
        retired = registry.counter(
            "twoefay_apns_tokens_retired_total", "Device tokens that became invalid and are no longer used.")
    }

    /// Registers the gauges whose values are read from the sender at each request for `/metrics`.
    static func show(_ sender: APNsSender, in registry: Registry) {
        func gauge(_ name: String, _ about: String, _ read: @escaping @Sendable (PushSnapshot) -> Int) {
            registry.gauge(name, about) { Int64(read(sender.snapshot())) }
        }
        gauge("twoefay_apns_connections", "Open connections to APNs that accept pushes.") { $0.connections }
        gauge("twoefay_apns_in_flight", "Pushes sent that await a response.") { $0.inFlight }
        gauge("twoefay_apns_queued", "Queued pushes that wait for an HTTP/2 stream.") { $0.queued }
        gauge(
            "twoefay_apns_stream_limit",
            "Concurrent HTTP/2 streams that APNs allows now, over all open connections."
        ) { $0.streamLimit }
        registry.duration(
            "twoefay_apns_oldest_queued_seconds",
            "Longest time that a queued push has waited for a stream, in seconds."
        ) { sender.snapshot().oldestWait ?? .zero }
        registry.duration(
            "twoefay_apns_provider_token_age_seconds",
            "Age of the provider token, in seconds; absent if a certificate is used."
        ) { sender.snapshot().tokenAge }
    }

    func answered(status: Int, reason: String, after duration: Duration) {
        took.observe(duration)
        answers.add(Answer(status, reason))
    }

    func unanswered(_ why: PushUnansweredReason, after duration: Duration) { unanswered.add(why) }
    func unsent(_ why: PushUnsentReason) { unsent.add(why) }
    func connected(host: String) { opened.add() }
    func disconnected(host: String, reason: String) { ended.add() }
    func goAway(host: String, reason: String) { goAways.add() }
    func tokenRetired(reason: String) { retired.add() }
}
