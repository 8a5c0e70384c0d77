import Commands
import Daemon
import Directory
import JSON
import World

extension Tool {
    static let testDirectory = Subcommand(
        command: Command(
            "directory test", "Reads a source of users, and shows what it returns; the store is not used.",
            operands: [.init("NAME", "The directory, as the settings name it.")],
            options: [.init("user", .one("NAME"), "Only the entry of this user.")],
            notes: """
                It needs neither a relay nor the store, and changes nothing. Use it to find the right 'url', 'ca', 'base',
                'filter' and 'attributes'.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let directory = try settings.directory(named: invocation.operand(0))
        let content = try settings.content(of: directory, user: invocation.value("user"), time: SystemTime())
        return Report(
            content.text(directory),
            json: .object([
                "directory": .string(directory.name), "entries": .integer(Int64(content.count)),
                "users": .array(zip(content.records, content.entries).map { $0.json(entry: $1) }),
                "groups": .array(
                    zip(directory.groups, content.members).map { group, members in
                        .object([
                            "group": .text(group.group), "filter": .text(group.filter),
                            "members": .integer(Int64(members)),
                        ])
                    }),
                "conflicts": .array(content.conflicts.map(\.json)),
            ]))
    }
}

extension DirectoryContent {
    /// The number of users that the text shows.
    private static let shown = 10

    fileprivate func text(_ directory: Settings.DirectorySettings) -> String {
        var lines = ["\(count) entries: \(records.count) can be used, \(conflicts.count) cannot."]
        if !records.isEmpty {
            let rows = records.prefix(Self.shown).map { record in
                [
                    record.username, record.email ?? "", record.phone ?? "", record.displayName ?? "",
                    record.language ?? "", record.policy ?? "", record.id,
                ]
            }
            lines.append(Table(["USER", "EMAIL", "PHONE", "DISPLAY NAME", "LANGUAGE", "POLICY", "ID"], rows).text)
        }
        if records.count > Self.shown { lines.append("and \(records.count - Self.shown) more; --json shows all") }
        if !directory.groups.isEmpty {
            let rows = zip(directory.groups, members).map { [$0.group ?? $0.filter ?? "", String($1)] }
            lines += ["", Table(["GROUP", "MEMBERS"], rows).text]
        }
        return (lines + DirectoryConflict.lines(conflicts)).joined(separator: "\n")
    }
}

extension DirectoryRecord {
    fileprivate func json(entry: String) -> JSONValue {
        .object([
            "entry": .string(entry), "id": .string(id), "user": .string(username), "email": .text(email),
            "phone": .text(phone), "display_name": .text(displayName), "language": .text(language),
            "policy": .text(policy),
        ])
    }
}

extension DirectoryConflict {
    /// The number of conflicts that a text shows.
    private static let shown = 20

    static func lines(_ conflicts: [DirectoryConflict]) -> [String] {
        guard !conflicts.isEmpty else { return [] }
        var lines = ["", "Left as they are:"]
        lines += conflicts.prefix(shown).map { "  \($0.entry): \($0.message)" }
        if conflicts.count > shown { lines.append("  and \(conflicts.count - shown) more; --json shows all") }
        return lines
    }

    var json: JSONValue { .object(["entry": .string(entry), "message": .string(message)]) }
}
