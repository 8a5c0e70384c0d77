/// The reason why a text is not accepted as JSON, and the offset of the byte.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    public enum Kind: Sendable, Equatable {
        /// The text ends inside a value.
        case incomplete
        case unexpectedByte(UInt8)
        case trailingBytes
        case tooDeep
        case tooManyMembers
        case duplicateName(String)
        case controlCharacter
        case invalidEscape
        case loneSurrogate
        case nonCharacter
        /// `\u0000`: valid JSON, but this program never needs it, and C code stops reading at it.
        case nul
        case invalidUTF8
        case invalidNumber
        /// An integer beyond 64 bits, or a number that no double can represent.
        case numberOutOfRange
    }

    public let offset: Int
    public let kind: Kind

    public init(offset: Int, kind: Kind) {
        self.offset = offset
        self.kind = kind
    }

    /// The message for a person. It never repeats more of the text than one byte or one name.
    public var message: String {
        let what =
            switch kind {
            case .incomplete: "the JSON text ends too early"
            case .unexpectedByte(let byte): "unexpected \(Self.show(byte))"
            case .trailingBytes: "text follows the JSON value"
            case .tooDeep: "nested too deeply"
            case .tooManyMembers: "an object has too many members"
            case .duplicateName(let name): "the name \"\(name.prefix(64))\" appears twice in one object"
            case .controlCharacter: "a control character in a string must be escaped"
            case .invalidEscape: "an unknown escape in a string"
            case .loneSurrogate: "half of a surrogate pair in a string"
            case .nonCharacter: "a string contains a code point that is not a character"
            case .nul: "a string contains U+0000"
            case .invalidUTF8: "a string is not valid UTF-8"
            case .invalidNumber: "not a JSON number"
            case .numberOutOfRange: "a number is too large"
            }
        return "\(what), at byte \(offset)"
    }

    public var description: String { message }

    /// Returns a byte as messages show it.
    public static func show(_ byte: UInt8) -> String {
        if (0x21...0x7e).contains(byte) { return "'\(Unicode.Scalar(byte))'" }
        let digits = String(byte, radix: 16)
        return "byte 0x\(digits.utf8.count < 2 ? "0" : "")\(digits)"
    }
}
