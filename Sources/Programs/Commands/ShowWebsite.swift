import Bytes
import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let showWebsite = Subcommand(
        command: Command(
            "website show", "Shows a website: its keys, its policies and its webhook endpoint.",
            operands: [.init("NAME", "The website's name, as in 'website list'.")])
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let website = try store.website(named: invocation.operand(0))
        let policy = try WebsitePolicy(website.traits, settings: settings)
        let rows = policy.rows
        let totals = try store.read(WebsiteUsageRows.totals(of: [website.id], on: UsageDay(store.now)))
        let uses = LimitUse.all(of: website, totals[website.id], policy.policy, settings)
        let remarks = policy.remarks.map { "Warning: a stored policy is read as none: \($0)\n\n" }.joined()
        let keys = try store.read(Websites.keys(of: website.id))
        let current = try? WebsiteAuthority.current(settings)
        let keyText = keys.isEmpty ? "Keys: none" : Table(Websites.Key.headings, keys.map { $0.row(current) }).text
        let endpoint = try store.read(WebhookEndpoints.find(website.id))
        let health = endpoint?.lines(of: website.name, at: store.now).map { "\n  \($0)" }.joined() ?? ""
        return Report(
            """
            \(website.name), "\(website.traits.displayName)", is \(website.state). It was added at \(website.createdAt.rfc3339), \
            and has \(counted(website.users, "user")).
            \(keyText)
            Webhook URL: \(website.traits.webhookURL ?? "none")\(health)
            Used today and this month (UTC): \(uses.map(\.text).joined(separator: ", "))

            \(Table(["POLICY", "VALUE", "SOURCE"], rows.map { [$0.key, $0.text, $0.isOwn ? "website" : "settings"] }).text)

            \(remarks)To change a policy: twoefay website edit \(website.name) --POLICY VALUE
            """,
            json: .object([
                "website": .string(website.name), "display_name": .string(website.traits.displayName),
                "state": .string(website.state), "users": .integer(website.users),
                "webhook": .text(website.traits.webhookURL), "webhook_state": endpoint?.json(at: store.now) ?? .null,
                "created_at": .string(website.createdAt.rfc3339),
                "keys": .array(keys.map(\.json)),
                "policies": .object(JSONObject(rows.map { ($0.key, .string($0.text)) })),
                "remarks": .array(policy.remarks.map { .string($0) }),
                "used": .object(JSONObject(uses.map { ($0.limit.policy, $0.json) })),
                "own": .array(rows.filter(\.isOwn).map { .string($0.key) }),
            ]))
    }
}
