/// A value of a settings file and where it stands, so that whoever does not like it can say where.
public struct YAMLNode: Sendable, Equatable {
    public enum Content: Sendable, Equatable {
        /// `isPlain`: written without quotes, so that it may be meant as a number, a truth value or nothing.
        case scalar(String, isPlain: Bool)
        case sequence([YAMLNode])
        case mapping([Member])
    }

    public struct Member: Sendable, Equatable {
        public let name: String
        /// Of the name.
        public let place: YAMLPosition
        public let value: YAMLNode
    }

    public let content: Content
    public let place: YAMLPosition

    public var line: Int { place.line }
    public var column: Int { place.column }
}

/// Both count from 1; columns count characters.
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

/// What a value is, or nil if it is something else.
extension YAMLNode {
    /// The text of any scalar, as it stands.
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

    /// Nothing at all, `~` or `null`.
    public var isNull: Bool {
        if case .scalar(let text, isPlain: true) = content { ["", "~", "null"].contains(text) } else { false }
    }

    /// `true` or `false`. What older YAML takes for a truth value (`yes`, `on`) is text here, as in YAML 1.2.
    public var bool: Bool? {
        guard case .scalar(let text, isPlain: true) = content else { return nil }
        switch text {
        case "true": return true
        case "false": return false
        default: return nil
        }
    }

    /// Decimal digits with a sign at most: `0x10`, `010` and `1_000` mean different things to different readers.
    public var integer: Int64? {
        guard case .scalar(let text, isPlain: true) = content else { return nil }
        let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }), digits.count == 1 || digits.first != 0x30 else {
            return nil
        }
        return Int64(text)
    }
}

/// Why a file cannot be read: `FILE:LINE:COLUMN: what is wrong`, as editors understand it.
public struct YAMLError: Error, Sendable, Equatable, CustomStringConvertible {
    public let place: YAMLPosition
    public let message: String

    public init(_ message: String, at place: YAMLPosition) {
        self.place = place
        self.message = message
    }

    public var description: String { "\(place.file):\(place.line):\(place.column): \(message)" }
}
