import Bytes
import Crypto
import JSON
import Relay

/// The words of audit rows under `seal: personal`.
///
/// Form: the column `changes` has one seal of all words of the row, and `note` and `reason` are NULL.
/// This hides which kinds of words a row has, and `changes` is the column with room for a long seal.
///
/// Invariants: the seal names the operation, so the words of another row do not open. It is random,
/// so equal words have different seals. The digest in the audit row is that of the words in the
/// clear, and so the chain does not depend on the form.
///
/// Failures: words that do not open are `Unreadable`. A reader shows them as they are, and
/// `audit verify` reports them. `AuditWordsSealingTests.swift` tests it.
extension AuditWords {
    /// The reason why words cannot be read.
    enum Unreadable: Error, Equatable {
        /// They are sealed under this key, which the program does not have.
        case key(String)
        /// Somebody has changed them.
        case forged
    }

    /// Whether the words have the sealed form. Words in the clear have JSON there, or nothing.
    private var isSealed: Bool { changes?.hasPrefix(PersonalSealer.marker) ?? false }

    /// Returns the words in the form that the store writes.
    func written(
        by personal: PersonalSealer?, for operation: [UInt8]
    ) throws(CryptoFailure) -> AuditWords {
        guard let personal, personal.seals || isSealed, !isEmpty else { return self }
        var members = JSONObject()
        members.set("note", note.map { .string($0) })
        members.set("changes", changes.map { .string($0) })
        members.set("reason", reason.map { .string($0) })
        let sealed = try personal.sealer.seal(JSONWriter.write(members), associated: Self.associated(operation))
        return AuditWords(changes: PersonalSealer.text(sealed))
    }

    /// Returns the words in the clear, from either form.
    func opened(by personal: PersonalSealer?, for operation: [UInt8]) throws(Unreadable) -> AuditWords {
        guard isSealed, let changes else { return self }
        guard note == nil, reason == nil, let sealed = PersonalSealer.sealed(changes) else { throw .forged }
        guard let personal else { throw .key((try? Sealer.keyID(of: sealed)) ?? "") }
        let text: [UInt8]
        do throws(SealFailure) {
            text = try personal.sealer.open(sealed, associated: Self.associated(operation))
        } catch {
            if case .unknownKey(let id) = error { throw .key(id) }
            throw .forged
        }
        guard let members = try? JSONReader.read(text).object else { throw .forged }
        return AuditWords(
            note: members["note"]?.string, changes: members["changes"]?.string, reason: members["reason"]?.string)
    }

    /// Returns the form that this store writes. Words that are sealed under the current key stay as they
    /// are, because a new seal would be another one.
    ///
    /// - Parameter clear: the same words in the clear.
    func rewritten(
        _ clear: AuditWords, by personal: PersonalSealer, for operation: [UInt8]
    ) throws(CryptoFailure) -> AuditWords {
        let isCurrent = changes?.hasPrefix("\(PersonalSealer.marker)\(personal.sealer.currentID):") ?? false
        if isCurrent, personal.seals || clear.isSealed { return self }
        return try clear.written(by: personal, for: operation)
    }

    private static func associated(_ operation: [UInt8]) -> [UInt8] {
        Array("twoefay personal audit words".utf8) + operation
    }
}

extension Row {
    /// Reads the words of an audit row for a person, from the columns `operation`, `note`, `changes` and
    /// `reason`. Words that do not open are returned as they are.
    func shownWords() throws(StoreFailure) -> AuditWords {
        let words = AuditWords(
            note: try optionalText("note"), changes: try optionalText("changes"), reason: try optionalText("reason"))
        guard let operation = try optionalBlob("operation") else { return words }
        return (try? words.opened(by: personal, for: operation)) ?? words
    }

    /// All columns in order, with the words in the clear if they open.
    func membersWithWords() throws(StoreFailure) -> [(name: String, value: SQLValue)] {
        let words = try shownWords()
        return members.map { name, value in
            switch name {
            case "note": (name, .text(words.note))
            case "changes": (name, .text(words.changes))
            case "reason": (name, .text(words.reason))
            default: (name, value)
            }
        }
    }
}
