import Bytes
import Crypto
import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let verifyRows = Subcommand(
        command: Command(
            "rows verify", "Checks that a relay wrote the rows of the store that can help to an approval.",
            operands: [.init("TABLE", "Only those of these tables; all of them otherwise.", isMany: true)],
            notes: """
                Relays check each row when they use it, and refuse one that is not genuine (row.forged in the log). This checks all
                of them at once. It cannot see rows that were deleted; 'audit verify' sees rows that are older than the audit.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let authenticator = try settings.loadMasterKey().usableRowAuthenticator()
        let desk = try OperatorStore(settings)
        defer { desk.close() }
        let named = try invocation.operands.map { name throws(Failure) in try table(name) }
        let tables = named.isEmpty ? SignedTable.all : named
        var count = 0
        var found: [RowReport] = []
        for table in tables {
            var last: [SQLValue]?
            while true {
                let page = try desk.read(RowQueries.page(of: table, after: last, with: authenticator))
                guard let end = page.last else { break }
                guard end.key != last else {
                    throw Failure(
                        .failed, "the rows behind \(table.name) \(end.keyText) cannot be reached: its key is no bytes",
                        next: "No relay writes such a key. Delete that row, then verify again.")
                }
                last = end.key
                count += page.count
                found += page.filter { $0.verdict != .genuine }
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
        guard !found.isEmpty else { return Report("\(count) rows checked: all were written by a relay.", json: json) }
        let table = Table(
            ["TABLE", "KEY", "WHAT IS WRONG"], found.map { [$0.table.name, $0.keyText, $0.verdict.text] })
        return Report(
            table.text + """


                \(count) rows checked, \(found.count) not as a relay wrote them. No login succeeds with them.
                If you changed one yourself: twoefay rows adopt TABLE KEY --reason TEXT.
                If nobody of you did: see docs/internals/threat-model.md.
                """, json: json, code: .failed)
    }

    static func table(_ name: String) throws(Failure) -> SignedTable {
        guard let table = SignedTable.all.first(where: { $0.name == name }) else {
            throw Failure(
                .usage, "no signed table is called \(name)",
                next: "It is one of: \(SignedTable.all.map(\.name).joined(separator: ", ")).")
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
        case .unsigned: "no relay has signed it"
        case .unknownKey: "signed under a key that is not in the master key file"
        case .rightsGivenBack(let rights): "these hold again, and no relay said so: \(rights.joined(separator: ", "))"
        case .changed: "a value is another than the one that was signed"
        }
    }
}
