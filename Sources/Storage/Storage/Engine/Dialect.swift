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
        var scanner = SQLScanner(sql)
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
            case .bytes(let bytes), .comment(let bytes), .parameter(let bytes), .placeholder(let bytes):
                text.append(contentsOf: bytes)
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
        var scanner = SQLScanner(resolve(file))
        while let piece = scanner.next(insideOwn: false) {
            switch piece {
            case .semicolon:
                let soFar = String(decoding: text, as: UTF8.self).trimmed.uppercased()
                if soFar.hasPrefix("CREATE TRIGGER"), !soFar.hasSuffix("END") {
                    text.append(UInt8(ascii: ";"))
                } else {
                    finish()
                }
            case .bytes(let bytes), .parameter(let bytes), .placeholder(let bytes): text.append(contentsOf: bytes)
            case .comment: text.append(UInt8(ascii: " "))
            case .ownBegins: scanner.skipComment()
            case .ownEnds: break
            }
        }
        finish()
        return statements
    }
}

extension String {
    fileprivate var trimmed: String {
        let end = utf8.lastIndex { !Self.blank.contains($0) }
        guard let start = utf8.firstIndex(where: { !Self.blank.contains($0) }), let end else { return "" }
        return String(self[start...end])
    }

    private static let blank = Set(" \t\r\n".utf8)
}
