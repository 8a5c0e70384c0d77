/// The reason why bytes are not accepted as DER.
public enum DERError: Error, Sendable, Equatable {
    /// The bytes end inside a value.
    case incomplete
    case trailingBytes
    /// A tag is not in its shortest form, or has more than four bytes.
    case tag
    /// A length is indefinite, not in its shortest form, or of more than three bytes.
    case length
    /// The value has another type than the schema requires.
    case type
    /// The content is not a canonical encoding of its type, or a number has more than 64 bits.
    case content
}

/// The tag of a value: its class, form and number.
public struct DERTag: Sendable, Hashable {
    /// 0 universal, 1 application, 2 context-specific, 3 private.
    public let kind: UInt8
    public let isConstructed: Bool
    public let number: UInt32

    public init(kind: UInt8, isConstructed: Bool, number: UInt32) {
        self.kind = kind
        self.isConstructed = isConstructed
        self.number = number
    }

    public static let boolean = universal(1)
    public static let integer = universal(2)
    public static let octets = universal(4)
    public static let null = universal(5)
    public static let identifier = universal(6)
    public static let enumerated = universal(10)
    public static let sequence = DERTag(kind: 0, isConstructed: true, number: 16)
    public static let set = DERTag(kind: 0, isConstructed: true, number: 17)

    public static func explicit(_ number: UInt32) -> DERTag { DERTag(kind: 2, isConstructed: true, number: number) }

    private static func universal(_ number: UInt32) -> DERTag { DERTag(kind: 0, isConstructed: false, number: number) }
}

/// Reads values of DER (X.690) one after another: only definite lengths, and only the one encoding
/// that DER allows for each value. Nested values are readers, which the caller opens by its schema,
/// so the depth is that of the schema. Tests: `DERReaderTests`.
public struct DERReader: Sendable {
    private(set) var rest: ArraySlice<UInt8>

    public init(_ bytes: [UInt8]) { rest = bytes[...] }

    init(_ content: ArraySlice<UInt8>) { rest = content }

    public var isAtEnd: Bool { rest.isEmpty }

    /// Throws unless everything was read.
    public func finish() throws(DERError) {
        guard rest.isEmpty else { throw .trailingBytes }
    }

    /// Reads the next value of any type.
    public mutating func next() throws(DERError) -> (tag: DERTag, content: ArraySlice<UInt8>) {
        let tag = try tag()
        let count = try length()
        guard count <= rest.count else { throw .incomplete }
        defer { rest = rest.dropFirst(count) }
        return (tag, rest.prefix(count))
    }

    /// Reads the content of the next value, which must have this tag.
    public mutating func content(_ tag: DERTag) throws(DERError) -> ArraySlice<UInt8> {
        let (found, content) = try next()
        guard found == tag else { throw .type }
        return content
    }

    /// Opens a sequence, a set, or an explicit tag.
    public mutating func open(_ tag: DERTag) throws(DERError) -> DERReader { DERReader(try content(tag)) }

    /// Opens the next value, which has an explicit tag that the caller chooses by its number.
    public mutating func openExplicit() throws(DERError) -> (number: UInt32, reader: DERReader) {
        let (tag, content) = try next()
        guard tag.kind == 2, tag.isConstructed else { throw .type }
        return (tag.number, DERReader(content))
    }

    public mutating func octets() throws(DERError) -> [UInt8] { Array(try content(.octets)) }

    public mutating func null() throws(DERError) {
        guard try content(.null).isEmpty else { throw .content }
    }

    public mutating func boolean() throws(DERError) -> Bool {
        switch Array(try content(.boolean)) {
        case [0]: return false
        case [0xff]: return true
        default: throw .content
        }
    }

    public mutating func integer() throws(DERError) -> Int64 { try number(try content(.integer)) }

    public mutating func enumerated() throws(DERError) -> Int64 { try number(try content(.enumerated)) }

    private func number(_ content: ArraySlice<UInt8>) throws(DERError) -> Int64 {
        guard let first = content.first, content.count <= 8 else { throw .content }
        if let second = content.dropFirst().first {
            // Nine equal bits at the beginning are not the shortest form.
            guard !(first == 0 && second < 0x80), !(first == 0xff && second >= 0x80) else { throw .content }
        }
        let start: Int64 = first >= 0x80 ? -1 : 0
        return content.reduce(start) { $0 << 8 | Int64($1) }
    }

    private mutating func tag() throws(DERError) -> DERTag {
        guard let first = rest.popFirst() else { throw .incomplete }
        let (kind, isConstructed) = (first >> 6, first & 0x20 != 0)
        guard first & 31 == 31 else {
            return DERTag(kind: kind, isConstructed: isConstructed, number: UInt32(first & 31))
        }
        var number: UInt32 = 0
        for position in 0..<4 {
            guard let byte = rest.popFirst() else { throw .incomplete }
            guard position > 0 || byte != 0x80 else { throw .tag }
            number = number << 7 | UInt32(byte & 0x7f)
            if byte < 0x80 {
                guard number >= 31 else { throw .tag }
                return DERTag(kind: kind, isConstructed: isConstructed, number: number)
            }
        }
        throw .tag
    }

    private mutating func length() throws(DERError) -> Int {
        guard let first = rest.popFirst() else { throw .incomplete }
        guard first >= 0x80 else { return Int(first) }
        let digits = Int(first & 0x7f)
        guard (1...3).contains(digits) else { throw .length }
        guard digits <= rest.count else { throw .incomplete }
        let count = rest.prefix(digits).reduce(0) { $0 << 8 | Int($1) }
        guard count >= 0x80, count >= 1 << (8 * (digits - 1)) else { throw .length }
        rest = rest.dropFirst(digits)
        return count
    }
}
