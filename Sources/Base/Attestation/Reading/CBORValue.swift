/// A value of CBOR (RFC 8949), without floating-point numbers, tags and `undefined`, which no
/// attestation has.
public indirect enum CBORValue: Sendable, Equatable {
    case unsigned(UInt64)
    /// The number −1 − n.
    case negative(UInt64)
    case bytes([UInt8])
    case text(String)
    case array([CBORValue])
    /// The members in their order. No key occurs twice.
    case map([CBORMember])
    case bool(Bool)
    case null
}

public struct CBORMember: Sendable, Equatable {
    public let key: CBORValue
    public let value: CBORValue

    public init(key: CBORValue, value: CBORValue) {
        self.key = key
        self.value = value
    }
}

/// Typed access to a value; nil if it has another type.
extension CBORValue {
    public var bytes: [UInt8]? {
        if case .bytes(let value) = self { value } else { nil }
    }

    public var text: String? {
        if case .text(let value) = self { value } else { nil }
    }

    public var array: [CBORValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    public var map: [CBORMember]? {
        if case .map(let value) = self { value } else { nil }
    }

    /// The member of a map with this text as its key.
    public subscript(key: String) -> CBORValue? {
        // Compared by bytes, because Swift treats canonically equivalent strings as equal.
        map?.first { $0.key.text?.utf8.elementsEqual(key.utf8) == true }?.value
    }

    /// The member of a map with this number as its key, as in COSE.
    public subscript(key: Int64) -> CBORValue? {
        let number: CBORValue = key < 0 ? .negative(UInt64(-1 - key)) : .unsigned(UInt64(key))
        return map?.first { $0.key == number }?.value
    }

    /// Whether this is a map with exactly these texts as its keys.
    public func hasExactly(_ keys: String...) -> Bool {
        map?.count == keys.count && keys.allSatisfy { self[$0] != nil }
    }
}
