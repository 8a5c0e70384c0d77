import Metrics
import World

/// The requests by route and status class, and how long they took. The routes are those of the
/// table, so a peer cannot add a series.
struct RequestMetrics: Sendable {
    /// A method and path of the table, or one pair for all requests that match none.
    struct Endpoint: Hashable, Sendable {
        let method: String
        let route: String

        static let none = Endpoint(method: "other", route: "none")
    }

    enum Outcome: String, CaseIterable, Sendable {
        case success = "2xx"
        case redirection = "3xx"
        case refusal = "4xx"
        case failure = "5xx"
        /// The caller left before the answer.
        case gone

        init(_ status: Int?) {
            switch status {
            case nil: self = .gone
            case .some(..<300): self = .success
            case .some(..<400): self = .redirection
            case .some(..<500): self = .refusal
            case .some: self = .failure
            }
        }
    }

    private struct Key: Hashable {
        let endpoint: Endpoint
        let outcome: Outcome
    }

    private let known: Set<Endpoint>
    private let counts: Counters<Key>
    private let times: Histograms<Endpoint>

    private static let bounds: [Duration] = [
        .milliseconds(1), .milliseconds(2), .milliseconds(5), .milliseconds(10), .milliseconds(20), .milliseconds(50),
        .milliseconds(100), .milliseconds(200), .milliseconds(500), .seconds(1), .seconds(2), .seconds(5),
    ]

    init(_ routes: [Route], in registry: Registry) {
        let endpoints = routes.map { Endpoint(method: $0.method, route: $0.path.text) } + [.none]
        known = Set(endpoints)
        counts = registry.counters(
            "twoefay_requests_total", "Requests ended, by route and status class; gone if the caller left first.",
            by: ["method", "route", "status"],
            endpoints.flatMap { endpoint in Outcome.allCases.map { Key(endpoint: endpoint, outcome: $0) } }
        ) { [$0.endpoint.method, $0.endpoint.route, $0.outcome.rawValue] }
        times = registry.histograms(
            "twoefay_request_seconds", "Time from a request to its answer, of requests that were not held.",
            by: ["method", "route"], endpoints, upTo: Self.bounds
        ) { [$0.method, $0.route] }
    }

    /// Counts a request that ended.
    ///
    /// - Parameters:
    ///   - status: the status of the answer; nil if the caller left before it.
    ///   - taken: the time until the answer; nil for a request that was held, because that time is
    ///     the caller's choice.
    func ended(_ method: String?, _ route: String, status: Int?, taken: Duration?) {
        let named = Endpoint(method: method ?? Endpoint.none.method, route: route)
        let endpoint = known.contains(named) ? named : .none
        counts.add(Key(endpoint: endpoint, outcome: Outcome(status)))
        if let taken { times.observe(endpoint, taken) }
    }
}
