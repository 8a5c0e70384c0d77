import Bytes
import Commands
import Crypto
import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let adoptRow = Subcommand(
        command: Command(
            "rows adopt", "Signs a row that you changed by SQL, so that relays accept it again.",
            operands: [
                .init("TABLE", "The row's table, as in 'rows verify'."),
                .init("KEY", "The row's primary key, as in 'rows verify'."),
            ],
            options: [
                .init("show", .nothing, "Show the row, and change nothing.")
            ],
            notes: """
                It shows the values of the row and what is wrong with it. The earlier values are not kept, so compare the row with
                what you meant to write. The audit records row.adopted with the reason, so --reason must be given.
                """)
    ) { invocation throws(Failure) in
        let table = try table(invocation.operand(0))
        let text = invocation.operand(1)
        guard let key = RowQueries.key(text, of: table) else {
            throw Failure(
                .usage, "KEY must be the \(table.key.joined(separator: " and ")) of the row",
                next: "'twoefay rows verify \(table.name)' shows keys in this form.")
        }
        let settings = try Settings.load(invocation)
        let keys = try settings.loadMasterKey()
        let authenticator = try keys.usableRowAuthenticator()
        let personal = settings.personalSealer(try keys.usableSealer())
        let store = try OperatorStore(settings)
        defer { store.close() }
        guard let row = try store.read(RowQueries.row(of: table, key: key, with: authenticator)) else {
            throw Failure(
                .notFound, "there is no row with this key in \(table.name)",
                next: "Nothing was changed. 'twoefay rows verify \(table.name)' shows the rows that are not genuine.")
        }
        guard !invocation.has("show") else {
            return Report(shown(row, personal), json: json(row, personal, adopted: false))
        }
        guard row.verdict != .genuine else {
            throw Failure(
                .conflict, "the row is genuine: a relay wrote it",
                next: "Nothing was changed, as nothing is to be adopted. 'twoefay rows verify' shows the other rows.")
        }
        guard let reason = settings.reason else {
            throw Failure(
                .usage, "--reason must be given",
                next: "Nothing was changed. To see the row: --show")
        }
        guard try store.run({ RowQueries.adopt(row, reason: reason, at: store.now, as: $0) }) else {
            throw Failure(
                .conflict, "the row was not signed: it was changed or deleted in the meantime",
                next: "'twoefay rows verify \(table.name)' shows its state.")
        }
        return Report(
            shown(row, personal) + "\nSigned. Relays accept the row from now on.",
            json: json(row, personal, adopted: true))
    }

    private static func shown(_ row: RowReport, _ personal: PersonalSealer) -> String {
        (["\(row.table.name) \(row.keyText): \(row.verdict.text)"]
            + row.columns.map { "  \($0.name): \(personal.shown($0.value).shown)" }).joined(separator: "\n")
    }

    private static func json(_ row: RowReport, _ personal: PersonalSealer, adopted: Bool) -> JSONValue {
        .object([
            "table": .string(row.table.name), "key": .string(row.keyText), "verdict": .string(row.verdict.word),
            "columns": .object(JSONObject(row.columns.map { ($0.name, .string(personal.shown($0.value).shown)) })),
            "adopted": .bool(adopted),
        ])
    }
}

extension SQLValue {
    /// The value for the terminal. A long value is cut, because it may be a sealed secret.
    fileprivate var shown: String {
        switch self {
        case .null, .personal: "NULL"
        case .integer(let number): String(number)
        case .text(let text):
            // An attacker may have written this text, so control characters must not reach the
            // terminal.
            (text.count > 200 ? text.prefix(200) + "…" : text).unicodeScalars.map { scalar in
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator: scalar.escaped(asASCII: true)
                default: String(scalar)
                }
            }.joined()
        case .blob(let bytes): bytes.count > 40 ? Hex.encode(bytes.prefix(40)) + "…" : Hex.encode(bytes)
        }
    }
}
