/// A value of a settings file with its position, so that an error message can name the position.
public struct YAMLNode: Sendable, Equatable {
    public enum Content: Sendable, Equatable {
        /// `isPlain`: written without quotes, so it may also be a number, a truth value or null.
        case scalar(String, isPlain: Bool)
        case sequence([YAMLNode])
        case mapping([Member])
    }

    public struct Member: Sendable, Equatable {
        public let name: String
        /// The position of the name.
        public let place: YAMLPosition
        public let value: YAMLNode
    }

    public let content: Content
    public let place: YAMLPosition

    public var line: Int { place.line }
    public var column: Int { place.column }
}

/// A position in a file. Line and column count from 1; columns count characters.
public struct YAMLPosition: Sendable, Hashable {
    public let file: String
    public let line: Int
    public let column: Int

    public init(file: String, line: Int, column: Int) {
        self.file = file
        self.line = line
        self.column = column
    }
}

/// Typed access to a value; nil if the value has another type.
extension YAMLNode {
    /// The text of any scalar, unchanged.
    public var string: String? {
        if case .scalar(let text, _) = content { text } else { nil }
    }

    public var sequence: [YAMLNode]? {
        if case .sequence(let nodes) = content { nodes } else { nil }
    }

    public var mapping: [Member]? {
        if case .mapping(let members) = content { members } else { nil }
    }

    public subscript(name: String) -> YAMLNode? {
        mapping?.first { $0.name.utf8.elementsEqual(name.utf8) }?.value
    }

    /// Whether it is empty, `~` or `null`.
    public var isNull: Bool {
        if case .scalar(let text, isPlain: true) = content { ["", "~", "null"].contains(text) } else { false }
    }

    /// The truth value of `true` or `false`. As in YAML 1.2, other words of older YAML (`yes`,
    /// `on`) are text.
    public var bool: Bool? {
        guard case .scalar(let text, isPlain: true) = content else { return nil }
        switch text {
        case "true": return true
        case "false": return false
        default: return nil
        }
    }

    /// The integer, in decimal digits with an optional minus sign. Other forms (`0x10`, `010`,
    /// `1_000`) are refused, because parsers disagree about them.
    public var integer: Int64? {
        guard case .scalar(let text, isPlain: true) = content else { return nil }
        let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }), digits.count == 1 || digits.first != 0x30 else {
            return nil
        }
        return Int64(text)
    }
}

/// The reason why a file cannot be read, in the form that editors understand: `FILE:LINE:COLUMN:
/// message`.
public struct YAMLError: Error, Sendable, Equatable, CustomStringConvertible {
    public let place: YAMLPosition
    public let message: String

    public init(_ message: String, at place: YAMLPosition) {
        self.place = place
        self.message = message
    }

    public var description: String { "\(place.file):\(place.line):\(place.column): \(message)" }
}
