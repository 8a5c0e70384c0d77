/// The limits of the reader. The caller limits the length of the text.
public struct JSONLimits: Sendable {
    /// The maximum nesting of arrays and objects; the outermost counts as one. At most 512, so that
    /// the stack is not exhausted.
    public let maxDepth: Int
    /// The maximum number of members in one object.
    public let maxMembers: Int

    public init(maxDepth: Int = 16, maxMembers: Int = 256) {
        self.maxDepth = min(maxDepth, 512)
        self.maxMembers = maxMembers
    }
}

/// Reads I-JSON (RFC 7493): only UTF-8, no duplicate names, no lone surrogates or noncharacters. In
/// addition, it refuses U+0000, and integers beyond 64 bits instead of rounding them. Tests:
/// `JSONReaderTests`.
public enum JSONReader {
    public static func read(_ bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) -> JSONValue {
        try read(bytes.span, limits: limits)
    }

    public static func read(_ text: Span<UInt8>, limits: JSONLimits = JSONLimits()) throws(JSONError) -> JSONValue {
        var parser = Parser(limits: limits)
        let value = try parser.value(text, depth: 0)
        parser.skipSpace(text)
        guard parser.at == text.count else { throw parser.error(.trailingBytes) }
        return value
    }
}

/// The position of the reader. The text is passed as an argument, because a span cannot be stored.
struct Parser {
    let limits: JSONLimits
    var at = 0

    init(limits: JSONLimits) { self.limits = limits }

    func error(_ kind: JSONError.Kind) -> JSONError { JSONError(offset: at, kind: kind) }

    func error(_ kind: JSONError.Kind, at offset: Int) -> JSONError { JSONError(offset: offset, kind: kind) }

    mutating func skipSpace(_ text: Span<UInt8>) {
        while at < text.count {
            switch text[at] {
            case 0x20, 0x0a, 0x0d, 0x09: at += 1
            default: return
            }
        }
    }

    /// Returns the next byte that is not white space.
    private mutating func next(_ text: Span<UInt8>) throws(JSONError) -> UInt8 {
        skipSpace(text)
        guard at < text.count else { throw error(.incomplete) }
        return text[at]
    }

    private func unexpected(_ text: Span<UInt8>) -> JSONError {
        at < text.count ? error(.unexpectedByte(text[at])) : error(.incomplete)
    }

    mutating func value(_ text: Span<UInt8>, depth: Int) throws(JSONError) -> JSONValue {
        switch try next(text) {
        case UInt8(ascii: "{"): return .object(try object(text, depth: depth + 1))
        case UInt8(ascii: "["): return .array(try array(text, depth: depth + 1))
        case UInt8(ascii: "\""): return .string(try string(text))
        case UInt8(ascii: "t"): return try word("true", .bool(true), text)
        case UInt8(ascii: "f"): return try word("false", .bool(false), text)
        case UInt8(ascii: "n"): return try word("null", .null, text)
        case UInt8(ascii: "-"), 0x30...0x39: return try number(text)
        default: throw unexpected(text)
        }
    }

    private mutating func word(
        _ word: StaticString, _ value: JSONValue, _ text: Span<UInt8>
    ) throws(JSONError) -> JSONValue {
        for index in 0..<word.utf8CodeUnitCount {
            guard at < text.count, text[at] == word.utf8Start[index] else { throw unexpected(text) }
            at += 1
        }
        return value
    }

    private mutating func object(_ text: Span<UInt8>, depth: Int) throws(JSONError) -> JSONObject {
        guard depth <= limits.maxDepth else { throw error(.tooDeep) }
        at += 1
        var object = JSONObject()
        var names = MemberNames()
        if try next(text) == UInt8(ascii: "}") {
            at += 1
            return object
        }
        while true {
            guard try next(text) == UInt8(ascii: "\"") else { throw unexpected(text) }
            guard object.count < limits.maxMembers else { throw error(.tooManyMembers) }
            let start = at
            let name = try string(text)
            guard names.insert(name, into: object) else { throw error(.duplicateName(name), at: start) }
            guard try next(text) == UInt8(ascii: ":") else { throw unexpected(text) }
            at += 1
            object.append(name, try value(text, depth: depth))
            switch try next(text) {
            case UInt8(ascii: ","): at += 1
            case UInt8(ascii: "}"):
                at += 1
                return object
            default: throw unexpected(text)
            }
        }
    }

    private mutating func array(_ text: Span<UInt8>, depth: Int) throws(JSONError) -> [JSONValue] {
        guard depth <= limits.maxDepth else { throw error(.tooDeep) }
        at += 1
        var array: [JSONValue] = []
        if try next(text) == UInt8(ascii: "]") {
            at += 1
            return array
        }
        while true {
            array.append(try value(text, depth: depth))
            switch try next(text) {
            case UInt8(ascii: ","): at += 1
            case UInt8(ascii: "]"):
                at += 1
                return array
            default: throw unexpected(text)
            }
        }
    }
}

/// The names of an object, to find duplicates. Most objects are small, and searching them is faster
/// than hashing. Beyond that, a set keeps the time linear.
private struct MemberNames {
    private struct Name: Hashable {
        /// Compared as well, for the same reason as in `JSONObject.index(of:)`.
        let length: Int
        let name: String
    }

    private static let small = 32
    private var names: Set<Name> = []

    /// Returns false if the object already has this name.
    mutating func insert(_ name: String, into object: JSONObject) -> Bool {
        guard object.count >= Self.small else { return object.index(of: name) == nil }
        if names.isEmpty { for other in object.names { names.insert(Self.name(other)) } }
        return names.insert(Self.name(name)).inserted
    }

    private static func name(_ name: String) -> Name { Name(length: name.utf8.count, name: name) }
}
