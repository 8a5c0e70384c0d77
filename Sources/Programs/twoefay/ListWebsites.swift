import Daemon
import JSON
import Relay
import Storage
import World

extension Tool {
    static let listWebsites = Subcommand(
        command: Command("website list", "Lists the websites with their policies and the health of their webhooks.")
    ) { invocation throws(Failure) in
        let store = try Settings.load(invocation).openStore()
        defer { store.close() }
        let websites: [Websites.Listed]
        do throws(StoreFailure) {
            websites = try store.runBlocking(Websites.list())
        } catch {
            throw Failure(store: error)
        }
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
        let none = "There is no website yet. To add one: twoefay --config FILE website add NAME"
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

    /// Returns the policies that differ from those of the settings.
    private static func policies(_ website: Websites.Listed) -> [JSONObject.Member] {
        (try? JSONReader.read(Array(website.traits.policy.utf8)))?.object?.members ?? []
    }
}

/// A table of texts under their headings. Each column is as wide as its longest cell.
struct Table {
    let text: String

    init(_ headings: [String], _ rows: [[String]]) {
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
