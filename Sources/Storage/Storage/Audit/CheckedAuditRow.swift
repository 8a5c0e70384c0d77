import Relay

/// A row that a link names.
struct ExpectedRow {
    let digest: AuditDigest
    let writer: [UInt8]
    let link: Int64
}

/// An operation as two numbers, because arrays take three times the memory.
struct AuditKey: Hashable, Comparable {
    private let high: UInt64
    private let low: UInt64

    init?(_ bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        high = bytes[0..<8].reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
    }

    var bytes: [UInt8] {
        [high, low].flatMap { number in (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - $0 * 8)) } }
    }

    static func < (a: AuditKey, b: AuditKey) -> Bool { (a.high, a.low) < (b.high, b.low) }
}

/// A digest as four numbers.
struct AuditDigest: Equatable {
    private let first: AuditKey?
    private let second: AuditKey?

    init(_ bytes: [UInt8]) {
        first = AuditKey(Array(bytes.prefix(16)))
        second = AuditKey(Array(bytes.dropFirst(16)))
    }
}

/// An audit row as the check reads it.
struct CheckedAuditRow {
    enum Words: Equatable {
        case right, wrong, missing
        /// They are sealed under this key, which the program does not have.
        case sealed(String)
    }

    let id: Int64
    let operation: [UInt8]
    let event: String
    let user: [UInt8]?
    let writer: [UInt8]?
    let link: Int64?
    let digest: [UInt8]
    let words: Words

    /// Reads a row of `AuditReads`. A value of a wrong type must not stop the check, so it reads
    /// values and not columns of a type.
    init(_ row: Row) throws(StoreFailure) {
        var values: [SQLValue] = []
        for index in AuditRow.columns.indices { values.append(try row.value(at: index)) }
        digest = AuditRow.digest(values)
        id = try row.integer("id")
        operation = try row.value("operation").bytes ?? []
        event = try row.value("event").plainText ?? ""
        user = try row.value("user_id").bytes
        writer = try row.value("writer").bytes
        if case .integer(let number) = try row.value("link") { link = number } else { link = nil }
        words = try Self.words(of: row, operation)
    }

    /// Compares the words with the digest in the row. SQLite stores values of any type in any column,
    /// and readers of the words skip those of other types, so such a value counts as a change.
    private static func words(of row: Row, _ operation: [UInt8]) throws(StoreFailure) -> Words {
        let salt = try row.value("salt")
        let texts = [try row.value("note"), try row.value("changes"), try row.value("reason")]
        let isWritten = salt != .null || texts.contains { $0 != .null }
        guard let detail = try row.value("detail").bytes else { return isWritten ? .wrong : .right }
        guard isWritten else { return .missing }
        guard let salt = salt.bytes, texts.allSatisfy(\.isTextOrNull) else { return .wrong }
        let written = AuditWords(note: texts[0].plainText, changes: texts[1].plainText, reason: texts[2].plainText)
        return compare(written, row, operation) { detail == $0.digest(salt: salt) }
    }

    private static func compare(
        _ written: AuditWords, _ row: Row, _ operation: [UInt8], isRight: (AuditWords) -> Bool
    ) -> Words {
        do throws(AuditWords.Unreadable) {
            return isRight(try written.opened(by: row.personal, for: operation)) ? .right : .wrong
        } catch {
            if case .key(let id) = error { return .sealed(id) }
            return .wrong
        }
    }

    func finding(_ kind: AuditFinding.Kind) -> AuditFinding {
        let text =
            switch kind {
            case .inserted: "no link of a writer has this row (\(event))"
            case .detail: "its words \(words.fault) (\(event))"
            default: "the row was changed (\(event))"
            }
        return AuditFinding(kind, writer: writer, link: link, id: id, operation: operation, text)
    }
}

extension CheckedAuditRow.Words {
    fileprivate var fault: String {
        switch self {
        case .right, .wrong: "were changed"
        case .missing: "are missing"
        case .sealed(let id): "cannot be checked: they are sealed under the key \(id), which this program does not have"
        }
    }
}

extension SQLValue {
    fileprivate var isTextOrNull: Bool {
        switch self {
        case .text, .null: true
        case .integer, .blob, .personal: false
        }
    }

    var bytes: [UInt8]? { if case .blob(let bytes) = self { bytes } else { nil } }
    var plainText: String? {
        switch self {
        case .text(let text): text
        case .integer(let number): String(number)
        case .null, .blob, .personal: nil
        }
    }
}
