import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let editWebsite = Verb(
        command: Command(
            "website edit", "Changes a website's policies, its display name or its callback.",
            operands: [.init("NAME", "A website that 'website list' shows.")],
            options: [
                .init("display-name", .one("TEXT"), "What people are shown."),
                .init(
                    "callback", .one("URL"),
                    "Where results are to be sent, https, or \(WebsiteChange.none). Kept; nothing is sent there yet."),
            ] + Policy.keys.map { .init($0, .one("VALUE"), SettingsKeys.policyTexts[$0] ?? "") },
            notes: """
                What is not given stays. \(WebsiteChange.fromSettings) gives a policy back to the settings. A relay that runs sees the change at
                once; logins that were asked before keep the policies that they were asked under.
                  twoefay --config /etc/twoefay/twoefay.yaml website edit shop --number 6 --lifetime default
                """)
    ) { invocation throws(Failure) in
        let change = try WebsiteChange(
            displayName: invocation.value("display-name"), callback: invocation.value("callback"),
            policies: Policy.keys.compactMap { key in invocation.value(key).map { (key, $0) } })
        let settings = try Settings.load(invocation)
        let desk = try OperatorsDesk(settings)
        defer { desk.close() }
        let website = try desk.website(named: invocation.operand(0))
        let new = try change.applied(to: website.traits)
        let differences = try Difference.between(website.traits, new, settings: settings)
        let name = website.name
        guard new != website.traits else {
            return Report("\(name) is like that already.", json: Difference.json([], website: name))
        }
        let edited = try desk.run { operation in
            Websites.edit(website.id, from: website.traits, to: new, at: desk.now, as: operation)
        }
        guard edited else {
            throw Failure(
                .conflict, "somebody else changed \(name) at the same moment",
                next: "Nothing was changed here. Look at 'website show \(name)', and try again.")
        }
        return Report(
            """
            \(name) is changed. It holds for logins asked from now on.

            \(Table(["", "BEFORE", "AFTER"], differences.map { [$0.name, $0.before.shown, $0.after.shown] }).text)
            """,
            json: Difference.json(differences, website: name))
    }
}

/// One thing that an edit changes.
private struct Difference {
    struct Value: Equatable {
        let text: String?
        /// Nobody said so for this website: the settings say it for all.
        let isOfSettings: Bool

        var shown: String { (text ?? "") + (isOfSettings ? " (settings)" : "") }
        var json: JSONValue { text.map { .string($0) } ?? .null }
    }

    let name: String
    let before: Value
    let after: Value

    static func between(
        _ old: Websites.Traits, _ new: Websites.Traits, settings: Settings
    ) throws(Failure) -> [Difference] {
        let (before, after) = (try values(of: old, settings), try values(of: new, settings))
        return zip(before, after).map { Difference(name: $0.name, before: $0.value, after: $1.value) }
            .filter { $0.before != $0.after }
    }

    private static func values(
        of traits: Websites.Traits, _ settings: Settings
    ) throws(Failure) -> [(name: String, value: Value)] {
        let holding = try WebsitePolicy(traits, settings: settings)
        return [
            ("display-name", Value(text: traits.displayName, isOfSettings: false)),
            ("callback", Value(text: traits.callback, isOfSettings: false)),
        ] + holding.rows.map { ($0.key, Value(text: $0.text, isOfSettings: !$0.isOwn)) }
    }

    static func json(_ differences: [Difference], website: String) -> JSONValue {
        let changed = differences.map { difference in
            (difference.name, JSONValue.object(["before": difference.before.json, "after": difference.after.json]))
        }
        return .object(["website": .string(website), "changed": .object(JSONObject(changed))])
    }
}
