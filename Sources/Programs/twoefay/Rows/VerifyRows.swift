import Bytes
import Commands
import Crypto
import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let verifyRows = Subcommand(
        command: Command(
            "rows verify", "Checks that a relay wrote every row on which an approval can depend.",
            operands: [.init("TABLE", "The tables to check (default: all signed tables).", isMany: true)],
            notes: """
                Relays check each row when they use it, and refuse a row that is not genuine (row.forged in the log). This command
                checks all rows. It cannot find deleted rows; 'audit verify' finds rows that are older than the audit.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let authenticator = try settings.loadMasterKey().usableRowAuthenticator()
        let store = try OperatorStore(settings)
        defer { store.close() }
        let named = try invocation.operands.map { name throws(Failure) in try table(name) }
        let tables = named.isEmpty ? SignedTable.all : named
        var count = 0
        var found: [RowReport] = []
        let progress = invocation.progress()
        for table in tables {
            var last: [SQLValue]?
            while true {
                let page = try store.read(RowQueries.page(of: table, after: last, with: authenticator))
                guard let end = page.last else { break }
                guard end.key != last else {
                    throw Failure(
                        .failed, "the rows after \(table.name) \(end.keyText) cannot be read: its key is not binary",
                        next: "No relay writes such a key. Delete this row, then run the command again.")
                }
                last = end.key
                count += page.count
                progress.show("\(count) rows checked")
                found += page.filter { $0.verdict != .genuine }
                guard page.count == RowQueries.pageSize else { break }
            }
        }
        return report(found, of: count)
    }

    private static func report(_ found: [RowReport], of count: Int) -> Report {
        let json = JSONValue.object([
            "rows": .integer(Int64(count)),
            "found": .array(
                found.map { row in
                    .object([
                        "table": .string(row.table.name), "key": .string(row.keyText),
                        "verdict": .string(row.verdict.word), "detail": .string(row.verdict.text),
                    ])
                }),
        ])
        guard !found.isEmpty else { return Report("\(count) rows checked. All were written by a relay.", json: json) }
        let table = Table(
            ["TABLE", "KEY", "WHAT IS WRONG"], found.map { [$0.table.name, $0.keyText, $0.verdict.text] })
        return Report(
            table.text + """


                \(count) rows checked, \(found.count) are not genuine. No login succeeds with these rows.
                If you changed a row yourself: twoefay rows adopt TABLE KEY --reason TEXT
                If not, treat it as a break-in: see docs/internals/threat-model.md.
                """, json: json, code: .failed)
    }

    static func table(_ name: String) throws(Failure) -> SignedTable {
        guard let table = SignedTable.all.first(where: { $0.name == name }) else {
            throw Failure(
                .usage, "there is no signed table \(name)",
                next: "The signed tables are \(SignedTable.all.map(\.name).joined(separator: ", ")).")
        }
        return table
    }
}

extension RowReport.Verdict {
    var word: String {
        switch self {
        case .genuine: "genuine"
        case .unsigned: "unsigned"
        case .unknownKey: "unknown_key"
        case .rightsGivenBack: "rights_given_back"
        case .changed: "changed"
        }
    }

    var text: String {
        switch self {
        case .genuine: "nothing"
        case .unsigned: "the row has no signature"
        case .unknownKey: "the row is signed under a key that is not in the master key file"
        case .rightsGivenBack(let rights): "restrictions lifted, but not by a relay: \(rights.joined(separator: ", "))"
        case .changed: "a value differs from the signed one"
        }
    }
}
