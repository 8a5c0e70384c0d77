/// A value that a log key may have.
public protocol LogValue: Sendable {
    var logged: LoggedValue { get }
}

public enum LoggedValue: Sendable, Equatable {
    case text(String)
    case integer(Int64)
    case bool(Bool)
}

extension String: LogValue {
    public var logged: LoggedValue { .text(self) }
}

extension StaticString: LogValue {
    public var logged: LoggedValue { .text(description) }
}

extension Bool: LogValue {
    public var logged: LoggedValue { .bool(self) }
}

extension LogValue where Self: BinaryInteger {
    public var logged: LoggedValue { .integer(Int64(clamping: self)) }
}

extension Int: LogValue {}
extension Int32: LogValue {}
extension Int64: LogValue {}
extension UInt16: LogValue {}
extension UInt32: LogValue {}
extension UInt64: LogValue {}

/// Keys and values in the order in which they were given.
public struct LogFields: Sendable, ExpressibleByDictionaryLiteral {
    private(set) var all: [(key: LogKey, value: LoggedValue)] = []

    public init() {}

    /// Makes fields from a literal. A nil value omits its key. A key that occurs twice has its last
    /// value.
    public init(dictionaryLiteral elements: (LogKey, (any LogValue)?)...) {
        all.reserveCapacity(elements.count)
        for (key, value) in elements {
            guard let value else { continue }
            set(key, value.logged)
        }
    }

    private mutating func set(_ key: LogKey, _ value: LoggedValue) {
        all.removeAll { $0.key == key }
        all.append((key, value))
    }

    func merging(_ other: LogFields) -> LogFields {
        var merged = self
        for (key, value) in other.all { merged.set(key, value) }
        return merged
    }

    /// Names the request at the end, and its trace if it has one, unless the fields name a request.
    func during(_ request: LoggedRequest.Names?) -> LogFields {
        guard let request, !all.contains(where: { $0.key == .request }) else { return self }
        var fields = self
        fields.set(.request, .text(request.id))
        if let trace = request.trace { fields.set(.trace, .text(trace)) }
        return fields
    }
}
