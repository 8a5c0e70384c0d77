/// A scanner for SQL that recognizes only quoted text, comments, parameters and semicolons.
struct SQLScanner {
    enum Piece {
        case bytes(ArraySlice<UInt8>)
        /// A parameter such as `:user`, with its colon.
        case parameter(ArraySlice<UInt8>)
        /// A question mark, which is a parameter without a name.
        case placeholder(ArraySlice<UInt8>)
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
        case UInt8(ascii: "?"):
            at += 1
            return .placeholder(bytes[start..<at])
        case UInt8(ascii: ":"):
            return name()
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

    /// Scans a parameter. A colon without a name, and two colons, are other text.
    private mutating func name() -> Piece {
        let start = at
        at += starts(with: "::") ? 2 : 1
        guard at == start + 1, at < bytes.count, Self.letters.contains(bytes[at]) else {
            return .bytes(bytes[start..<at])
        }
        while at < bytes.count, Self.letters.contains(bytes[at]) || Self.digits.contains(bytes[at]) { at += 1 }
        return .parameter(bytes[start..<at])
    }

    mutating func skipComment() {
        while at < bytes.count, !starts(with: "*/") { at += 1 }
        at = min(at + 2, bytes.count)
    }

    private func starts(with text: StaticString) -> Bool {
        guard at + text.utf8CodeUnitCount <= bytes.count else { return false }
        return (0..<text.utf8CodeUnitCount).allSatisfy { bytes[at + $0] == text.utf8Start[$0] }
    }

    private static let letters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_".utf8)
    private static let digits = Set("0123456789".utf8)
    private static let special = Set(";?:'\"`-*/".utf8)
}
