import APNs
import Metrics
import World

/// The metrics of the sender of pushes. Label values come from this program: the reasons that Apple
/// documents, and `Other` for every other text, so a peer cannot create labels.
///
/// Tested in `PushMetricsTests.swift`.
struct PushMetrics: APNsObserver {
    private let took: Histogram
    private let answers: Counters<Answer>
    private let unanswered: Counters<APNsUnansweredReason>
    private let unsent: Counters<APNsUnsentReason>
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
            + [
                "400": [
                    "BadCollapseId", "BadDeviceToken", "BadExpirationDate", "BadMessageId", "BadPriority", "BadTopic",
                    "DeviceTokenNotForTopic", "DuplicateHeaders", "IdleTimeout", "InvalidPushType",
                    "MissingDeviceToken", "MissingTopic", "PayloadEmpty", "TopicDisallowed",
                ],
                "403": [
                    "BadCertificate", "BadCertificateEnvironment", "BadEnvironmentKeyIdInToken",
                    "BadEnvironmentKeyInToken", "ExpiredProviderToken", "Forbidden", "InvalidProviderToken",
                    "MissingProviderToken", "UnrelatedKeyIdInToken",
                ],
                "404": ["BadPath"], "405": ["MethodNotAllowed"], "410": ["ExpiredToken", "Unregistered"],
                "413": ["PayloadTooLarge"], "429": ["TooManyProviderTokenUpdates", "TooManyRequests"],
                "500": ["InternalServerError"], "503": ["ServiceUnavailable", "Shutdown"],
            ].sorted { $0.key < $1.key }.flatMap { status, reasons in
                (reasons + ["Other"]).map { Answer(status: status, reason: $0) }
            } + [other]
        private static let other = Answer(status: "Other", reason: "Other")
        private static let known = Set(all)

        init(status: String, reason: String) {
            self.status = status
            self.reason = reason
        }

        /// The known answer with this status and reason. An unknown reason counts as `Other` of its
        /// status, an unknown status as `Other`.
        init(_ status: Int, _ reason: String) {
            let said = [reason, "Other"].lazy.map { Answer(status: String(status), reason: $0) }
            self = said.first { Self.known.contains($0) } ?? Self.other
        }
    }

    private static let bounds = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000].map {
        Duration.milliseconds($0)
    }

    init(_ registry: Registry) {
        took = registry.histogram(
            "twoefay_apns_answer_seconds", "From sending a push to Apple's answer, whatever it says.", upTo: Self.bounds
        )
        answers = registry.counters(
            "twoefay_apns_answers_total", "Apple's answers, by status and reason.", by: ["status", "reason"], Answer.all
        ) { [$0.status, $0.reason] }
        unanswered = registry.counters(
            "twoefay_apns_unanswered_total",
            "Pushes that were sent and of which nobody knows what became: timeout (no answer in time), reset (the stream "
                + "was ended), lost (the connection was).", by: "why")
        unsent = registry.counters(
            "twoefay_apns_unsent_total",
            "Pushes that were not sent, by what kept them; most of them are tried again.", by: "why")
        opened = registry.counter("twoefay_apns_connections_opened_total", "Connections that were opened.")
        ended = registry.counter(
            "twoefay_apns_connections_ended_total", "Connections that ended, and attempts that failed.")
        goAways = registry.counter(
            "twoefay_apns_goaways_total", "Connections that the service asked to leave (GOAWAY).")
        retired = registry.counter(
            "twoefay_apns_tokens_retired_total", "Push tokens that nothing is delivered to any more.")
    }

    /// Registers the gauges whose values are read from the sender at each request for `/metrics`.
    static func show(_ sender: APNsSender, in registry: Registry) {
        func gauge(_ name: String, _ about: String, _ read: @escaping @Sendable (APNsSnapshot) -> Int) {
            registry.gauge(name, about) { Int64(read(sender.snapshot())) }
        }
        gauge("twoefay_apns_connections", "Connections that take pushes now.") { $0.connections }
        gauge("twoefay_apns_in_flight", "Pushes that were sent and are not answered.") { $0.inFlight }
        gauge("twoefay_apns_queued", "Pushes that wait for a stream.") { $0.queued }
        gauge(
            "twoefay_apns_stream_limit", "How many streams the service allows now, on all open connections together."
        ) { $0.streamLimit }
        registry.duration(
            "twoefay_apns_oldest_queued_seconds", "How long the push has waited that waits longest for a stream."
        ) { sender.snapshot().oldestWait ?? .zero }
        registry.duration(
            "twoefay_apns_provider_token_age_seconds", "Age of the provider token; none where a certificate is shown."
        ) { sender.snapshot().providerTokenAge }
    }

    func answered(status: Int, reason: String, after duration: Duration) {
        took.observe(duration)
        answers.add(Answer(status, reason))
    }

    func unanswered(_ why: APNsUnansweredReason, after duration: Duration) { unanswered.add(why) }
    func unsent(_ why: APNsUnsentReason) { unsent.add(why) }
    func connected(host: String) { opened.add() }
    func disconnected(host: String, reason: String) { ended.add() }
    func goAway(host: String, reason: String) { goAways.add() }
    func tokenRetired(reason: String) { retired.add() }
}
