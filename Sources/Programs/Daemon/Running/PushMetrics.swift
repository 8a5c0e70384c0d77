import Metrics
import Pushes
import World

/// The metrics of a sender of pushes. Label values come from this program: the reasons that the
/// service documents, and `Other` for every other text, so a peer cannot create labels.
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

    private let service: Service

    /// A push service, with the reasons of each status that it documents.
    struct Service: Sendable {
        /// The part of the metrics' names.
        let prefix: String
        let name: String
        /// The kind of token whose age is shown.
        let token: String
        let answers: [Answer]
        private let known: Set<Answer>

        fileprivate init(
            prefix: String, name: String, token: String, _ reasons: [(status: String, reasons: [String])]
        ) {
            self.prefix = prefix
            self.name = name
            self.token = token
            answers =
                [Answer(status: "200", reason: "Success")]
                + reasons.flatMap { status, reasons in
                    (reasons + ["Other"]).map { (reason: String) in Answer(status: status, reason: reason) }
                }
                + [.other]
            known = Set(answers)
        }

        /// Returns the known answer with this status and reason. An unknown reason counts as `Other`
        /// of its status, an unknown status as `Other`.
        func answer(_ status: Int, _ reason: String) -> Answer {
            let candidates = [reason, "Other"].lazy.map { Answer(status: String(status), reason: $0) }
            return candidates.first { known.contains($0) } ?? .other
        }
    }

    /// An answer, as a pair of status and reason. Each known reason has one status.
    struct Answer: Hashable {
        let status: String
        let reason: String

        fileprivate static let other = Answer(status: "Other", reason: "Other")
    }

    private static let bounds = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000].map {
        Duration.milliseconds($0)
    }

    init(of service: Service, _ registry: Registry) {
        self.service = service
        let (prefix, name) = ("twoefay_\(service.prefix)_", service.name)
        took = registry.histogram(
            prefix + "answer_seconds", "Time from sending a push to the \(name) response, in seconds.",
            upTo: Self.bounds)
        answers = registry.counters(
            prefix + "answers_total", "\(name) responses, by HTTP status and reason.", by: ["status", "reason"],
            service.answers
        ) { [$0.status, $0.reason] }
        unanswered = registry.counters(
            prefix + "unanswered_total",
            "Pushes sent without a response, by cause: timeout, reset (stream reset) or lost (connection lost).",
            by: "reason")
        unsent = registry.counters(
            prefix + "unsent_total",
            "Pushes that were not sent, by cause; most of them are retried.", by: "reason")
        opened = registry.counter(
            prefix + "connections_opened_total", "Connections to \(name) that were opened.")
        ended = registry.counter(
            prefix + "connections_ended_total",
            "Connections to \(name) that ended, and connection attempts that failed.")
        goAways = registry.counter(
            prefix + "goaways_total", "Connections to \(name) that received a GOAWAY frame.")
        retired = registry.counter(
            prefix + "tokens_retired_total", "Device tokens that became invalid and are no longer used.")
    }

    /// Registers the gauges whose values are read from the sender at each request for `/metrics`.
    static func show(
        _ service: Service, in registry: Registry, snapshot: @escaping @Sendable () -> PushSnapshot
    ) {
        let (prefix, name) = ("twoefay_\(service.prefix)_", service.name)
        func gauge(_ suffix: String, _ about: String, _ read: @escaping @Sendable (PushSnapshot) -> Int) {
            registry.gauge(prefix + suffix, about) { Int64(read(snapshot())) }
        }
        gauge("connections", "Open connections to \(name) that accept pushes.") { $0.connections }
        gauge("in_flight", "Pushes sent that await a response.") { $0.inFlight }
        gauge("queued", "Queued pushes that wait for an HTTP/2 stream.") { $0.queued }
        gauge("stream_limit", "Concurrent HTTP/2 streams that \(name) allows now, over all open connections.") {
            $0.streamLimit
        }
        registry.duration(
            prefix + "oldest_queued_seconds", "Longest time that a queued push has waited for a stream, in seconds."
        ) { snapshot().oldestWait ?? .zero }
        registry.duration(
            prefix + service.token + "_token_age_seconds",
            "Age of the \(service.token) token, in seconds; absent if there is none."
        ) { snapshot().tokenAge }
    }

    func answered(status: Int, reason: String, after duration: Duration) {
        took.observe(duration)
        answers.add(service.answer(status, reason))
    }

    func unanswered(_ why: PushUnansweredReason, after duration: Duration) { unanswered.add(why) }
    func unsent(_ why: PushUnsentReason) { unsent.add(why) }
    func connected(host: String) { opened.add() }
    func disconnected(host: String, reason: String) { ended.add() }
    func goAway(host: String, reason: String) { goAways.add() }
    func tokenRetired(reason: String) { retired.add() }
}

extension PushMetrics.Service {
    /// The list's type is written out because the compiler takes 14 seconds to infer it.
    static let apns: PushMetrics.Service = {
        let reasons: [(status: String, reasons: [String])] = [
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
        return PushMetrics.Service(prefix: "apns", name: "APNs", token: "provider", reasons)
    }()

    static let fcm: PushMetrics.Service = {
        let reasons: [(status: String, reasons: [String])] = [
            ("400", ["INVALID_ARGUMENT"]),
            ("401", ["THIRD_PARTY_AUTH_ERROR", "UNAUTHENTICATED"]),
            ("403", ["PERMISSION_DENIED", "SENDER_ID_MISMATCH"]),
            ("404", ["NOT_FOUND", "UNREGISTERED"]),
            ("429", ["QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED"]),
            ("500", ["INTERNAL"]),
            ("503", ["UNAVAILABLE"]),
        ]
        return PushMetrics.Service(prefix: "fcm", name: "FCM", token: "access", reasons)
    }()
}
