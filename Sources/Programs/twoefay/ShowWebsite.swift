import Bytes
import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let showWebsite = Subcommand(
        command: Command(
            "website show", "Shows a website with all policies that hold for it.",
            operands: [.init("NAME", "A website that 'website list' shows.")])
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let desk = try OperatorStore(settings)
        defer { desk.close() }
        let website = try desk.website(named: invocation.operand(0))
        let rows = try WebsitePolicy(website.traits, settings: settings).rows
        let keys = try desk.read(Websites.keys(of: website.id))
        let keyRows = keys.map { [Hex.encode($0.thumbprint), $0.createdAt.rfc3339] }
        let keyText = keys.isEmpty ? "Keys: none" : Table(["KEY", "SINCE"], keyRows).text
        let endpoint = try desk.read(WebhookEndpoints.find(website.id))
        let standing = endpoint?.lines(of: website.name, at: desk.now).map { "\n  \($0)" }.joined() ?? ""
        return Report(
            """
            \(website.name), "\(website.traits.displayName)", is \(website.state), known since \(website.createdAt.rfc3339), \
            with \(website.users) users.
            \(keyText)
            Webhook URL: \(website.traits.webhookURL ?? "none")\(standing)

            \(Table(["POLICY", "VALUE", "FROM"], rows.map { [$0.key, $0.text, $0.isOwn ? "website" : "settings"] }).text)

            'twoefay website edit \(website.name) --POLICY VALUE' changes one.
            """,
            json: .object([
                "website": .string(website.name), "display_name": .string(website.traits.displayName),
                "state": .string(website.state), "users": .integer(website.users),
                "webhook": .text(website.traits.webhookURL), "webhook_state": endpoint?.json(at: desk.now) ?? .null,
                "created_at": .string(website.createdAt.rfc3339),
                "keys": .array(
                    keys.map {
                        .object([
                            "thumbprint": .string(Hex.encode($0.thumbprint)),
                            "created_at": .string($0.createdAt.rfc3339),
                        ])
                    }),
                "policies": .object(JSONObject(rows.map { ($0.key, .string($0.text)) })),
                "own": .array(rows.filter(\.isOwn).map { .string($0.key) }),
            ]))
    }
}
