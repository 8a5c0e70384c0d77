import Daemon
import JSON
import Relay
import Storage
import World

extension Tool {
    static let listWebsites = Subcommand(
        command: Command(
            "website list", "Lists the websites with their policies and the health of their webhooks.",
            options: [
                .init(
                    "expiring", .optional("DAYS"),
                    "List only those whose certificates end within so many days (default: 30), the next one first."),
                .init("unmoved", .nothing, "List only those that use no certificate of the present authority yet."),
                .init("removed", .nothing, "List the removed websites instead."),
            ],
            notes: """
                A website without a valid certificate is refused. 'website renew NAME' issues another one.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        guard ["expiring", "unmoved", "removed"].count(where: invocation.has) < 2 else {
            throw Failure(
                .usage, "--expiring, --unmoved and --removed exclude each other",
                next: "Run 'twoefay website list --help' for usage.")
        }
        let store = try OperatorStore(invocation)
        defer { store.close() }
        if invocation.has("expiring") {
            let days = try DayCount.read(invocation, "expiring", from: 0) ?? 30
            return expiring(try store.read(Websites.expiries(at: store.now)), within: days, at: store.now)
        }
        if invocation.has("unmoved") {
            let issuer = try WebsiteAuthority.current(settings)
            return unmoved(try store.read(Websites.unmoved(to: issuer, at: store.now)))
        }
        return list(try store.read(Websites.list()), removed: invocation.has("removed"))
    }

    private static func list(_ all: [Websites.Listed], removed: Bool) -> Report {
        let websites = all.filter { $0.isRemoved == removed }
        let table = Table(
            ["NAME", "STATE", "USERS", "CREATED", "DISPLAY NAME", "POLICIES", "WEBHOOKS", "WEBHOOK URL"],
            websites.map { website in
                [
                    website.name, website.state, String(website.users), website.createdAt.rfc3339,
                    website.traits.displayName,
                    policies(website).map { "\($0.name)=\($0.value.string ?? "")" }.joined(separator: " "),
                    website.health?.word ?? "", website.traits.webhookURL ?? "",
                ]
            })
        let none =
            removed
            ? "No website is removed."
            : "There is no website yet. To add one: twoefay --config FILE website add NAME"
        return Report(
            websites.isEmpty ? none : table.text,
            json: .object([
                "websites": .array(
                    websites.map { website in
                        .object([
                            "website": .string(website.name), "display_name": .string(website.traits.displayName),
                            "state": .string(website.state), "users": .integer(website.users),
                            "policies": .object(JSONObject(policies(website).map { ($0.name, $0.value) })),
                            "webhook": .text(website.traits.webhookURL),
                            "webhook_state": website.health.map { .object($0.members) } ?? .null,
                            "created_at": .string(website.createdAt.rfc3339),
                        ])
                    })
            ]))
    }

    private static func expiring(_ all: [WebsiteExpiry], within days: Int64, at now: Timestamp) -> Report {
        let websites = all.filter { $0.expiresAt - now <= .seconds(days * 86_400) }
        let table = Table(["NAME", "EXPIRES"], websites.map { [$0.website, $0.expiresAt.rfc3339] })
        return Report(
            websites.isEmpty ? "No website's certificate ends within \(days) days." : table.text,
            json: .object([
                "days": .integer(days),
                "websites": .array(
                    websites.map {
                        .object(["website": .string($0.website), "expires_at": .string($0.expiresAt.rfc3339)])
                    }),
            ]))
    }

    private static func unmoved(_ websites: [Websites.Unmoved]) -> Report {
        let table = Table(
            ["NAME", "NEW CERTIFICATE", "FORMER KEY LAST USED"],
            websites.map {
                [
                    $0.name, $0.usesNew ? "used" : $0.hasNew ? "issued, not used" : "none",
                    $0.lastOldUse?.rfc3339 ?? "never",
                ]
            })
        return Report(
            websites.isEmpty ? "All websites use certificates of the present authority." : table.text,
            json: .object([
                "websites": .array(
                    websites.map {
                        .object([
                            "website": .string($0.name), "renewed": .bool($0.hasNew), "moving": .bool($0.usesNew),
                            "used_at": .text($0.lastOldUse?.rfc3339),
                        ])
                    })
            ]))
    }

    /// Returns the policies that differ from those of the settings.
    private static func policies(_ website: Websites.Listed) -> [JSONObject.Member] {
        (try? JSONReader.read(Array(website.traits.policy.utf8)))?.object?.members ?? []
    }
}

/// A table of texts under their headings. Each column is as wide as its longest cell.
public struct Table {
    public let text: String

    public init(_ headings: [String], _ rows: [[String]]) {
        let widths = headings.indices.map { column in ([headings] + rows).map { $0[column].count }.max() ?? 0 }
        let lines = ([headings] + rows).map { row in
            var line = ""
            for (column, cell) in row.enumerated() {
                line += cell + String(repeating: " ", count: widths[column] - cell.count + 2)
            }
            while line.hasSuffix(" ") { line.removeLast() }
            return line
        }
        text = lines.joined(separator: "\n")
    }
}
