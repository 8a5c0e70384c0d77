import Bytes
import Daemon
import JSON
import Storage
import World

extension Tool {
    static let verifyAudit = Subcommand(
        command: Command(
            "audit verify", "Finds rows that are older than the last change of them in the audit.",
            notes: """
                Such a row was brought back as it once was, by somebody who can write to the store, or with a part of a backup. It
                looks at websites, users, phones and logins, as far back as the audit goes (retention.audit).
                """)
    ) { invocation throws(Failure) in
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let found = try desk.read(OutdatedRow.all)
        let json = JSONValue.object([
            "found": .array(
                found.map { row in
                    .object([
                        "table": .string(row.table), "key": .string(Hex.encode(row.key)),
                        "written_at": .string(row.writtenAt.rfc3339), "event": .string(row.event),
                        "changed_at": .string(row.changedAt.rfc3339),
                    ])
                })
        ])
        guard !found.isEmpty else { return Report("No row is older than its last change in the audit.", json: json) }
        let table = Table(
            ["TABLE", "KEY", "WRITTEN", "LACKS", "OF"],
            found.map { [$0.table, Hex.encode($0.key), $0.writtenAt.rfc3339, $0.event, $0.changedAt.rfc3339] })
        return Report(table.text, json: json, code: .failed)
    }
}
