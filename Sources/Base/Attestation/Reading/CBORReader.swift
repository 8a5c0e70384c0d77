/// The limits of the reader. The caller limits the number of bytes.
public struct CBORLimits: Sendable {
    /// The maximum nesting of arrays and maps; the outermost counts as one.
    public let maxDepth: Int
    /// The maximum number of values, including keys and everything nested.
    public let maxValues: Int

    public init(maxDepth: Int = 6, maxValues: Int = 64) {
        self.maxDepth = min(maxDepth, 64)
        self.maxValues = maxValues
    }
}

/// The reason why bytes are not accepted as CBOR.
public enum CBORError: Error, Sendable, Equatable {
    /// The bytes end inside a value.
    case incomplete
    case trailingBytes
    case tooDeep
    case tooManyValues
    /// A length or number is not in its shortest form.
    case notShortest
    /// A string, array or map of indefinite length.
    case indefiniteLength
    /// A floating-point number, a tag, or a simple value other than true, false and null.
    case unsupported
    case invalidUTF8
    case duplicateKey
}

/// Reads one value of CBOR (RFC 8949) strictly: definite lengths, shortest forms, valid UTF-8, and
/// no key twice. So a peer cannot show two readers different values. Lengths are compared with the
/// bytes that are left before memory is reserved. Tests: `CBORReaderTests`.
public struct CBORReader {
    private var rest: ArraySlice<UInt8>
    private var valuesLeft: Int
    private let maxDepth: Int

    private init(_ bytes: ArraySlice<UInt8>, _ limits: CBORLimits) {
        rest = bytes
        valuesLeft = limits.maxValues
        maxDepth = limits.maxDepth
    }

    public static func read(_ bytes: [UInt8], limits: CBORLimits = CBORLimits()) throws(CBORError) -> CBORValue {
        var rest = bytes[...]
        let value = try readFirst(&rest, limits: limits)
        guard rest.isEmpty else { throw .trailingBytes }
        return value
    }

    /// Reads the first value and removes its bytes. Authenticator data has values one after
    /// another.
    static func readFirst(
        _ bytes: inout ArraySlice<UInt8>, limits: CBORLimits = CBORLimits()
    ) throws(CBORError) -> CBORValue {
        var reader = CBORReader(bytes, limits)
        let value = try reader.value(depth: 1)
        bytes = reader.rest
        return value
    }

    private mutating func value(depth: Int) throws(CBORError) -> CBORValue {
        guard valuesLeft > 0 else { throw .tooManyValues }
        valuesLeft -= 1
        guard let first = rest.popFirst() else { throw .incomplete }
        let (type, detail) = (first >> 5, first & 31)
        if type == 7 { return try simple(detail) }
        let argument = try argument(detail)
        switch type {
        case 0: return .unsigned(argument)
        case 1: return .negative(argument)
        case 2: return .bytes(Array(try take(argument)))
        case 3:
            guard let text = String(validating: try take(argument), as: UTF8.self) else { throw .invalidUTF8 }
            return .text(text)
        case 4: return .array(try array(argument, depth: depth))
        case 5: return .map(try map(argument, depth: depth))
        default: throw .unsupported
        }
    }

    private func simple(_ detail: UInt8) throws(CBORError) -> CBORValue {
        switch detail {
        case 20: return .bool(false)
        case 21: return .bool(true)
        case 22: return .null
        case 31: throw .indefiniteLength
        default: throw .unsupported
        }
    }

    /// Reads the number that follows the first byte, or is a part of it.
    private mutating func argument(_ detail: UInt8) throws(CBORError) -> UInt64 {
        switch detail {
        case 0...23: return UInt64(detail)
        case 24...27:
            let count = 1 << Int(detail - 24)
            let number = try take(UInt64(count)).reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
            let least: UInt64 = count == 1 ? 24 : 1 << UInt64(count * 4)
            guard number >= least else { throw .notShortest }
            return number
        case 31: throw .indefiniteLength
        default: throw .unsupported
        }
    }

    private mutating func take(_ count: UInt64) throws(CBORError) -> ArraySlice<UInt8> {
        guard count <= UInt64(rest.count) else { throw .incomplete }
        defer { rest = rest.dropFirst(Int(count)) }
        return rest.prefix(Int(count))
    }

    private mutating func array(_ count: UInt64, depth: Int) throws(CBORError) -> [CBORValue] {
        guard depth <= maxDepth else { throw .tooDeep }
        guard count <= UInt64(valuesLeft) else { throw .tooManyValues }
        var values: [CBORValue] = []
        for _ in 0..<count { values.append(try value(depth: depth + 1)) }
        return values
    }

    private mutating func map(_ count: UInt64, depth: Int) throws(CBORError) -> [CBORMember] {
        guard depth <= maxDepth else { throw .tooDeep }
        guard count <= UInt64(valuesLeft / 2) else { throw .tooManyValues }
        var members: [CBORMember] = []
        for _ in 0..<count {
            let key = try value(depth: depth + 1)
            // Linear, as `maxValues` bounds the number of members.
            guard !members.contains(where: { Self.same($0.key, key) }) else { throw .duplicateKey }
            members.append(CBORMember(key: key, value: try value(depth: depth + 1)))
        }
        return members
    }

    /// Compares texts by their bytes. Swift also treats canonically equivalent strings as equal;
    /// these are two keys.
    private static func same(_ a: CBORValue, _ b: CBORValue) -> Bool {
        guard let a = a.text, let b = b.text else { return a == b }
        return a.utf8.elementsEqual(b.utf8)
    }
}
