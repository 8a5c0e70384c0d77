/// An SQL dialect. Text inside `/*M! … */` is for MariaDB only, text inside `/*S! … */` for SQLite
/// only; all other text is for both.
enum Dialect: Sendable {
    case mariadb
    case sqlite

    private var own: UInt8 { self == .mariadb ? UInt8(ascii: "M") : UInt8(ascii: "S") }

    /// Returns the text with this dialect's own parts, without the other dialect's parts.
    func resolve(_ sql: String) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(sql.utf8.count)
        var scanner = Scanner(sql)
        // Inside text of this dialect, the closing mark is removed, too.
        var open = false
        while let piece = scanner.next(insideOwn: open) {
            switch piece {
            case .ownBegins(let letter):
                if letter == own { open = true } else { scanner.skipComment() }
                text.append(UInt8(ascii: " "))
            case .ownEnds:
                open = false
                text.append(UInt8(ascii: " "))
            case .bytes(let bytes), .comment(let bytes): text.append(contentsOf: bytes)
            case .semicolon: text.append(UInt8(ascii: ";"))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Splits a file into statements, without semicolons and comments. The body of a trigger ends
    /// with `END;`.
    func statements(of file: String) -> [String] {
        var statements: [String] = []
        var text: [UInt8] = []
        func finish() {
            let statement = String(decoding: text, as: UTF8.self).trimmed
            if !statement.isEmpty { statements.append(statement) }
            text = []
        }
        var scanner = Scanner(resolve(file))
        while let piece = scanner.next(insideOwn: false) {
            switch piece {
            case .semicolon:
                let soFar = String(decoding: text, as: UTF8.self).trimmed.uppercased()
                if soFar.hasPrefix("CREATE TRIGGER"), !soFar.hasSuffix("END") {
                    text.append(UInt8(ascii: ";"))
                } else {
                    finish()
                }
            case .bytes(let bytes): text.append(contentsOf: bytes)
            case .comment: text.append(UInt8(ascii: " "))
            case .ownBegins: scanner.skipComment()
            case .ownEnds: break
            }
        }
        finish()
        return statements
    }
}

/// A scanner for SQL that recognizes only quoted text, comments and semicolons.
private struct Scanner {
    enum Piece {
        case bytes(ArraySlice<UInt8>)
        case comment(ArraySlice<UInt8>)
        case ownBegins(UInt8)
        case ownEnds
        case semicolon
    }

    private let bytes: [UInt8]
    private var at = 0

    init(_ text: String) { bytes = Array(text.utf8) }

    mutating func next(insideOwn: Bool) -> Piece? {
        guard at < bytes.count else { return nil }
        let start = at
        switch bytes[at] {
        case UInt8(ascii: ";"):
            at += 1
            return .semicolon
        case UInt8(ascii: "'"), UInt8(ascii: "\""), UInt8(ascii: "`"):
            // A doubled quote inside is scanned as two adjacent quoted pieces, which gives the same
            // text.
            at = bytes[(at + 1)...].firstIndex(of: bytes[start]).map { $0 + 1 } ?? bytes.count
            return .bytes(bytes[start..<at])
        case UInt8(ascii: "-") where starts(with: "--"):
            at = bytes[at...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
            return .comment(bytes[start..<at])
        case UInt8(ascii: "*") where insideOwn && starts(with: "*/"):
            at += 2
            return .ownEnds
        case UInt8(ascii: "/") where starts(with: "/*M!") || starts(with: "/*S!"):
            at += 4
            return .ownBegins(bytes[start + 2])
        case UInt8(ascii: "/") where starts(with: "/*"):
            skipComment()
            return .comment(bytes[start..<at])
        default:
            at += 1
            while at < bytes.count, !Self.special.contains(bytes[at]) { at += 1 }
            return .bytes(bytes[start..<at])
        }
    }

    mutating func skipComment() {
        while at < bytes.count, !starts(with: "*/") { at += 1 }
        at = min(at + 2, bytes.count)
    }

    private func starts(with text: StaticString) -> Bool {
        guard at + text.utf8CodeUnitCount <= bytes.count else { return false }
        return (0..<text.utf8CodeUnitCount).allSatisfy { bytes[at + $0] == text.utf8Start[$0] }
    }

    private static let special = Set(";'\"`-*/".utf8)
}

extension String {
    fileprivate var trimmed: String {
        let end = utf8.lastIndex { !Self.blank.contains($0) }
        guard let start = utf8.firstIndex(where: { !Self.blank.contains($0) }), let end else { return "" }
        return String(self[start...end])
    }

    private static let blank = Set(" \t\r\n".utf8)
}
