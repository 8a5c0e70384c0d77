/// A JSON value. Whole numbers are integers; a number with a fraction or an exponent is a double.
public enum JSONValue: Sendable, Equatable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}

/// Typed access to a value; nil if it has another type. Nothing is converted.
extension JSONValue {
    public var isNull: Bool {
        if case .null = self { true } else { false }
    }

    public var bool: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    public var integer: Int64? {
        if case .integer(let value) = self { value } else { nil }
    }

    /// The value of any number. Integers beyond 2^53 lose precision.
    public var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    public var string: String? {
        if case .string(let value) = self { value } else { nil }
    }

    public var array: [JSONValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    public var object: JSONObject? {
        if case .object(let value) = self { value } else { nil }
    }
}

/// Values that are null if they are missing.
extension JSONValue {
    @inlinable public static func text(_ text: String?) -> JSONValue { text.map { .string($0) } ?? .null }

    // Inlined, because generic code is not specialised for other modules.
    @inlinable public static func word<Word: RawRepresentable<String>>(_ word: Word?) -> JSONValue {
        text(word?.rawValue)
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(integerLiteral value: Int64) { self = .integer(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(JSONObject(elements)) }
}
