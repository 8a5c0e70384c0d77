/// Reads I-JSON (RFC 7493), and refuses everything else.
///
/// Foundation's parser accepts a name that appears twice, and uses one of the two values. Another
/// program could use the other one. The phone would then show one amount, and the website would
/// execute another.
public struct JSONReader {
    /// The reason why a text is no I-JSON.
    public struct Malformed: Error, Sendable, Equatable {
        public let reason: String
        /// The position of the byte at which the reader stopped.
        public let offset: Int
    }

    private static let deepest = 32

    private let bytes: [UInt8]
    private var at = 0

    private init(_ bytes: [UInt8]) { self.bytes = bytes }

    public static func read(_ bytes: [UInt8]) throws(Malformed) -> JSONValue {
        var reader = JSONReader(bytes)
        let value = try reader.value(depth: 0)
        reader.skipSpaces()
        guard reader.at == bytes.count else { throw reader.malformed("text after the value") }
        return value
    }

    /// Reads an object; nil if the text is no object of I-JSON.
    public static func object(_ bytes: [UInt8]) -> JSONObject? { (try? read(bytes))?.object }

    private func malformed(_ reason: String) -> Malformed { Malformed(reason: reason, offset: at) }

    private var next: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func skipSpaces() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d { at += 1 }
    }

    private mutating func takes(_ byte: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: byte) else { return false }
        at += 1
        return true
    }

    private mutating func value(depth: Int) throws(Malformed) -> JSONValue {
        guard depth <= Self.deepest else { throw malformed("nested too deeply") }
        skipSpaces()
        switch next {
        case UInt8(ascii: "{"): return .object(try object(depth: depth + 1))
        case UInt8(ascii: "["): return .array(try array(depth: depth + 1))
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return try number()
        }
    }

    private mutating func word(_ word: String, _ value: JSONValue) throws(Malformed) -> JSONValue {
        guard bytes[at...].starts(with: word.utf8) else { throw malformed("no value") }
        at += word.utf8.count
        return value
    }

    private mutating func object(depth: Int) throws(Malformed) -> JSONObject {
        at += 1
        var object = JSONObject()
        skipSpaces()
        if takes("}") { return object }
        repeat {
            skipSpaces()
            guard next == UInt8(ascii: "\"") else { throw malformed("no name") }
            let name = try string()
            guard object[name] == nil else { throw malformed("a name appears twice") }
            skipSpaces()
            guard takes(":") else { throw malformed("no colon") }
            object[name] = try value(depth: depth)
            skipSpaces()
        } while takes(",")
        guard takes("}") else { throw malformed("the object does not end") }
        return object
    }

    private mutating func array(depth: Int) throws(Malformed) -> [JSONValue] {
        at += 1
        var values: [JSONValue] = []
        skipSpaces()
        if takes("]") { return values }
        repeat {
            values.append(try value(depth: depth))
            skipSpaces()
        } while takes(",")
        guard takes("]") else { throw malformed("the list does not end") }
        return values
    }

    private mutating func string() throws(Malformed) -> String {
        at += 1
        var text: [UInt8] = []
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                at += 1
                // Decoding replaces what is no UTF-8.
                let string = String(decoding: text, as: UTF8.self)
                guard string.utf8.elementsEqual(text) else { throw malformed("no UTF-8") }
                // I-JSON has no noncharacters.
                guard !string.unicodeScalars.contains(where: \.isNoncharacter) else {
                    throw malformed("a noncharacter")
                }
                return string
            case UInt8(ascii: "\\"):
                at += 1
                text += Array(String(try escaped()).utf8)
            case 0..<0x20: throw malformed("a control character in a text")
            default:
                text.append(byte)
                at += 1
            }
        }
        throw malformed("the text does not end")
    }

    private mutating func escaped() throws(Malformed) -> Unicode.Scalar {
        let byte = next
        at += 1
        switch byte {
        case UInt8(ascii: "\""): return "\""
        case UInt8(ascii: "\\"): return "\\"
        case UInt8(ascii: "/"): return "/"
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{c}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): break
        default: throw malformed("an unknown escape")
        }
        let high = try hexadecimal()
        if let scalar = Unicode.Scalar(high) { return scalar }
        guard (0xd800..<0xdc00).contains(high), takes("\\"), takes("u") else { throw malformed("half a surrogate") }
        let low = try hexadecimal()
        guard (0xdc00..<0xe000).contains(low),
            let scalar = Unicode.Scalar(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
        else { throw malformed("half a surrogate") }
        return scalar
    }

    private mutating func hexadecimal() throws(Malformed) -> UInt32 {
        let digits = bytes[at...].prefix(4)
        guard digits.count == 4, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }),
            let value = UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
        else { throw malformed("no four hexadecimal digits") }
        at += 4
        return value
    }

    private mutating func number() throws(Malformed) -> JSONValue {
        let start = at
        if next == UInt8(ascii: "-") { at += 1 }
        let digits = skipDigits()
        guard digits == 1 || digits > 1 && bytes[at - digits] != UInt8(ascii: "0") else { throw malformed("no value") }
        var isWhole = true
        if takes(".") {
            isWhole = false
            guard skipDigits() > 0 else { throw malformed("no digit after the point") }
        }
        if takes("e") || takes("E") {
            isWhole = false
            if !takes("+") { _ = takes("-") }
            guard skipDigits() > 0 else { throw malformed("no digit in the exponent") }
        }
        let text = String(decoding: bytes[start..<at], as: UTF8.self)
        if isWhole, let number = Int64(text) { return .integer(number) }
        guard let number = Double(text), number.isFinite else { throw malformed("a number that is too large") }
        return .number(number)
    }

    private mutating func skipDigits() -> Int {
        let start = at
        while let byte = next, (0x30...0x39).contains(byte) { at += 1 }
        return at - start
    }
}

extension Unicode.Scalar {
    fileprivate var isNoncharacter: Bool { value & 0xfffe == 0xfffe || (0xfdd0...0xfdef).contains(value) }
}
