import Bytes
import Daemon
import JSON
import Storage
import World

extension Tool {
    static let verifyAudit = Subcommand(
        command: Command(
            "audit verify", "Finds rows that are older than their last change in the audit.",
            notes: """
                Somebody who can write to the store has restored such a row to an earlier state, or a part of a backup was
                restored. The command checks websites, users, phones, their attestations and tagged certificates, and logins, as far
                back as the audit goes (retention.audit). It cannot see a counter of assertions that was turned back.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(try Settings.load(invocation))
        defer { store.close() }
        let found = try store.read(OutdatedRow.all)
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
            ["TABLE", "KEY", "WRITTEN", "MISSING EVENT", "EVENT TIME"],
            found.map { [$0.table, Hex.encode($0.key), $0.writtenAt.rfc3339, $0.event, $0.changedAt.rfc3339] })
        return Report(table.text, json: json, code: .failed)
    }
}
