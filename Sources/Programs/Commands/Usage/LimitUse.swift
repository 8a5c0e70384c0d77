import Daemon
import Domain
import JSON
import Relay
import Storage
import World

/// The use of one of a website's limits, at all relays together. Held requests, the logins of a
/// minute and the messages of outages are not in the store.
struct LimitUse: Equatable {
    let limit: WebsiteLimit
    let used: Int64
    let most: Int64

    /// Four fifths, at which a relay warns, too.
    var isNear: Bool { used * 5 >= most * 4 }

    /// Returns the limits that the website has, with what it has used of each.
    static func all(
        of website: Websites.Listed, _ totals: WebsiteUsageTotals?, _ policy: Policy, _ settings: Settings
    ) -> [LimitUse] {
        let totals = totals ?? WebsiteUsageTotals()
        return WebsiteLimit.allCases.compactMap { limit in
            let used: Int64? =
                switch limit {
                case .held, .loginsMinute, .outageMessages: nil
                case .loginsDay: totals.others.logins
                case .mailsDay: totals.others.mails
                case .mailsMonth: totals.others.mails + totals.earlier.mails
                case .pushesDay: totals.others.pushes
                case .textsDay: totals.textsDay
                case .textsMonth: totals.textsMonth
                case .users: website.users
                }
            let most = policy.limits[limit] ?? (limit == .users ? settings.quotas.users : nil)
            guard let used, let most else { return nil }
            return LimitUse(limit: limit, used: used, most: Int64(most))
        }
    }

    var text: String { "\(limit.policy) \(used) of \(most)" }

    var json: JSONValue { .object(["used": .integer(used), "limit": .integer(most)]) }
}

/// The uses of all active websites, for `twoefay status`.
struct TenantReport {
    let websites: [(name: String, uses: [LimitUse])]

    init(_ listed: [Websites.Listed], _ totals: [WebsiteID: WebsiteUsageTotals], _ settings: Settings) {
        websites = listed.filter { $0.state == "active" }.map { website in
            let policy = (try? WebsitePolicy(website.traits, settings: settings))?.policy ?? settings.policy
            return (website.name, LimitUse.all(of: website, totals[website.id], policy, settings))
        }
    }

    /// A warning for each website that has used four fifths of a limit or more.
    var lines: [String] {
        websites.compactMap { name, uses in
            let near = uses.filter(\.isNear)
            guard !near.isEmpty else { return nil }
            return "Warning: the website \(name) has used \(near.map(\.text).joined(separator: ", ")). "
                + "To change a limit: twoefay website edit \(name) --\(near[0].limit.policy) N"
        }
    }

    var json: JSONValue {
        .object(
            JSONObject(
                websites.map { name, uses in
                    (name, .object(JSONObject(uses.map { ($0.limit.policy, $0.json) })))
                }))
    }
}
