import Bytes
import Crypto

/// The columns and the digest of an audit row.
///
/// The digest is computed twice: from the result of the INSERT, and later from a SELECT. So it
/// depends on values only, and not on how an engine types them: numbers count as their text.
enum AuditRow {
    /// The columns that the digest covers. The number of the row is one of them, because the order
    /// of two changes of a row is the order of their numbers.
    static let columns = [
        "id", "operation", "at", "event", "website_id", "user_id", "challenge_id", "device_id", "outcome", "proof",
        "actor", "request", "detail", "writer", "link",
    ]
    static let list = columns.joined(separator: ", ")

    static func digest(_ values: some Collection<SQLValue>) -> [UInt8] {
        var message = Array("twoefay audit row 1".utf8)
        message.reserveCapacity(512)
        for value in values { append(value, to: &message) }
        return SHA256.hash(message)
    }

    /// Appends a type, a length and the bytes, so that two different lists never give the same
    /// message.
    private static func append(_ value: SQLValue, to message: inout [UInt8]) {
        func append(_ type: UInt8, _ bytes: some Collection<UInt8>) {
            message.append(type)
            withUnsafeBytes(of: UInt32(clamping: bytes.count).bigEndian) { message.append(contentsOf: $0) }
            message.append(contentsOf: bytes)
        }
        switch value {
        case .null, .personal: message.append(0)
        case .integer(let number): append(2, String(number).utf8)
        case .text(let text): append(2, text.utf8)
        case .blob(let bytes): append(3, bytes)
        }
    }
}

/// The words of an audit row that tell who a person is or that a person wrote. They are in
/// `audit_detail`, so that they can be deleted; the row has a digest of them with a random salt.
struct AuditWords: Sendable, Equatable {
    static let saltBytes = 16

    /// Free text: an operator's words, or the new value.
    var note: String?
    /// The values before and after, as JSON.
    var changes: String?
    /// The reason that an operator gave.
    var reason: String?

    var isEmpty: Bool { note == nil && changes == nil && reason == nil }

    func digest(salt: [UInt8]) -> [UInt8] {
        AuditRow.digest([.text("detail"), .blob(salt), .text(note), .text(changes), .text(reason)])
    }

    func insertion(for operation: SQLValue, salt: [UInt8]) -> BoundStatement {
        insertDetail(
            operation: operation, salt: .blob(salt), note: .text(note), changes: .text(changes), reason: .text(reason))
    }
}

private let insertDetail = Statement(
    "INSERT INTO audit_detail (operation, salt, note, changes, reason) VALUES (:operation, :salt, :note, :changes, :reason)"
)
