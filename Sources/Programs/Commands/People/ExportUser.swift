import Bytes
import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let exportUser = Subcommand(
        command: Command(
            "user export", "Prints all that the store holds of a user, as JSON.",
            operands: [.init("USER", "The user name, as given to /register.")], options: [OperatorStore.usersWebsite],
            notes: """
                For a person who asks for their data. It opens sealed values, if it can read the master key. Secrets of codes, digests
                and the relay's own marks are left out: 'withheld' names the columns. The audit records user.exported.
                  twoefay --config /etc/twoefay/twoefay.yaml user export ada --website shop > ada.json
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        guard try store.run({ PersonalExport.audit(of: user.id, at: store.now, as: $0) }) else {
            throw Failure(
                .notFound, "\(user.fullName) was deleted in the meantime",
                next: "Nothing was exported. 'twoefay audit search --user \(user.id.text)' shows who deleted the user.")
        }
        let parts = try store.read(PersonalExport.all(of: user.id))
        let value = JSONValue.object([
            "user": .string(user.username), "website": .string(user.website), "id": .string(user.id.text),
            "exported_at": .string(store.now.rfc3339),
            "withheld": .array(PersonalExport.withheld.sorted().map { .string($0) }),
            "tables": .object(JSONObject(parts.map { part in (part.table, .array(part.rows.map(\.json))) })),
        ])
        return Report(JSONWriter.text(value), json: value)
    }
}

extension [(name: String, value: SQLValue)] {
    fileprivate var json: JSONValue { .object(JSONObject(map { ($0.name, $0.value.exported) })) }
}

extension SQLValue {
    /// Ids and keys as hexadecimal digits. A text that is itself JSON, such as what a phone was
    /// shown of a login, becomes a part of the document.
    fileprivate var exported: JSONValue {
        switch self {
        case .null, .personal: .null
        case .integer(let number): .integer(number)
        case .text(let text): Self.structured(Array(text.utf8)) ?? .string(text)
        case .blob(let bytes): Self.structured(bytes) ?? .string(Hex.encode(bytes))
        }
    }

    private static func structured(_ bytes: [UInt8]) -> JSONValue? {
        guard bytes.first == UInt8(ascii: "{"), let value = try? JSONReader.read(bytes), value.object != nil else {
            return nil
        }
        return value
    }
}
