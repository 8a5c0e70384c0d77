import Daemon
import JSON
import Storage

/// The costs of the websites in a month, for `twoefay status`; none if nothing has a price.
struct MonthCosts {
    private let websites: [(name: String, amount: String)]

    init(_ lines: [WebsiteUsageReport.Line], _ prices: Prices) {
        websites = lines.compactMap { line in
            prices.cost(of: line).map { (line.website, Settings.amount($0)) }
        }
    }

    var lines: [String] {
        guard !websites.isEmpty else { return [] }
        return [
            "Costs of this month (UTC): \(websites.map { "\($0.name) \($0.amount)" }.joined(separator: ", ")). "
                + "For more: twoefay website usage"
        ]
    }

    var json: JSONValue { .object(JSONObject(websites.map { ($0.name, .string($0.amount)) })) }
}
