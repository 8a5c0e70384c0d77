import Domain
import Metrics
import Synchronization
import World

/// The metrics of single websites.
///
/// The label `website` has names that only an operator can give. There are at most `most` of them:
/// the websites that were known first. All others share the name `other`. So a relay with thousands
/// of websites has a bounded number of series.
final class WebsiteMetrics: Sendable {
    /// The most websites with series of their own.
    static let most = 100
    static let other = "other"

    private struct Subject: Hashable {
        let website: String
        let limit: WebsiteLimit
    }

    private let names = Mutex<Set<String>>([])
    private let reached: GrowingCounters<Subject>
    private let shown = ShownValues()

    /// The values of the gauges, by label.
    private final class ShownValues: Sendable {
        let percents = Mutex<[String: Int64]>([:])
        let logins = Mutex<[String: Int64]>([:])
    }

    init(_ registry: Registry) {
        reached = registry.growingCounters(
            "twoefay_website_limit_reached_total",
            "Requests, pushes and messages of a website that one of its limits refused, by website and limit.",
            by: ["website", "limit"]
        ) { [$0.website, $0.limit.rawValue] }
        registry.growingGauges(
            "twoefay_website_limit_used_percent",
            "The part of its fullest limit that a website has used, in percent, by website.", by: "website"
        ) { [shown] in shown.percents.withLock { $0 } }
        registry.growingGauges(
            "twoefay_website_logins_today",
            "Logins of a website on this day (UTC) at all relays, by website.", by: "website"
        ) { [shown] in shown.logins.withLock { $0 } }
        know(Self.other)
    }

    /// Declares the counters of a website with the value 0. A series that first appears with its
    /// first event would hide that event.
    private func know(_ label: String) {
        reached.know(WebsiteLimit.allCases.map { Subject(website: label, limit: $0) })
    }

    /// The label of a website.
    private func label(_ website: String) -> String {
        names.withLock { names in
            if names.contains(website) { return website }
            guard names.count < Self.most else { return Self.other }
            names.insert(website)
            know(website)
            return website
        }
    }

    func reached(_ limit: WebsiteLimit, by website: String) {
        reached.add(Subject(website: label(website), limit: limit))
    }

    /// Shows the values of the last read.
    func set(_ shown: [(website: String, percent: Int64, logins: Int64)]) {
        var (percents, counts): ([String: Int64], [String: Int64]) = ([:], [:])
        for (website, percent, logins) in shown {
            let label = label(website)
            percents[label] = max(percents[label] ?? 0, percent)
            counts[label, default: 0] += logins
        }
        self.shown.percents.withLock { $0 = percents }
        self.shown.logins.withLock { $0 = counts }
    }
}
