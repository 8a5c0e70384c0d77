/// Header fields in their order, with names in lower case. They are stored as one run of bytes:
/// most fields are passed on unread, and a search does not decode the others.
public struct Fields: Sendable, Equatable {
    public struct Field: Sendable, Equatable {
        public let name: String
        public let value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// For each field: the length of its name, the length of its value, the name, and the value.
    private var bytes: [UInt8] = []

    public init() {}

    public init(_ all: [Field]) {
        for field in all { add(field) }
    }

    public mutating func add(_ field: Field) { add(field.name, field.value) }

    public mutating func add(_ name: String, _ value: String) {
        var name = name
        var value = value
        name.withUTF8 { name in value.withUTF8 { value in add(name, value) } }
    }

    package mutating func add(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
        // Enough for most messages.
        if bytes.isEmpty { bytes.reserveCapacity(256) }
        bytes.append(addingCapacity: Run.head + name.count + value.count) { span in
            span.withUnsafeMutableBufferPointer { free, count in
                let to = UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(free)[count...])
                to.storeBytes(of: UInt32(name.count), as: UInt32.self)
                to.storeBytes(of: UInt32(value.count), toByteOffset: 4, as: UInt32.self)
                UnsafeMutableRawBufferPointer(rebasing: to[Run.head...]).copyMemory(from: UnsafeRawBufferPointer(name))
                UnsafeMutableRawBufferPointer(rebasing: to[(Run.head + name.count)...])
                    .copyMemory(from: UnsafeRawBufferPointer(value))
                count += Run.head + name.count + value.count
            }
        }
    }

    public var all: [Field] {
        withRun { run in run.map { Field(String(decoding: $0, as: UTF8.self), String(decoding: $1, as: UTF8.self)) } }
    }

    /// The value of the first field with this name (given in lower case).
    public subscript(name: String) -> String? {
        var name = name
        return name.withUTF8 { name in
            withRun { run in
                run.first { Self.isSame($0.name, name) }.map { String(decoding: $0.value, as: UTF8.self) }
            }
        }
    }

    /// The values of all fields with this name, for fields that must not occur twice.
    public func values(_ name: String) -> [String] {
        var name = name
        return name.withUTF8 { name in
            withRun { run in
                var values: [String] = []
                for field in run where Self.isSame(field.name, name) {
                    values.append(String(decoding: field.value, as: UTF8.self))
                }
                return values
            }
        }
    }

    private static func isSame(_ a: UnsafeBufferPointer<UInt8>, _ b: UnsafeBufferPointer<UInt8>) -> Bool {
        a.count == b.count && a.elementsEqual(b)
    }

    /// Gives access to the fields in memory; valid only during `body`.
    package func withRun<Value>(_ body: (Run) -> Value) -> Value {
        bytes.withUnsafeBytes { body(Run(rest: $0)) }
    }

    package struct Run: Sequence, IteratorProtocol {
        /// The size of the two lengths, four bytes each.
        fileprivate static let head = 8
        fileprivate var rest: UnsafeRawBufferPointer

        package mutating func next() -> (name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>)? {
            guard !rest.isEmpty else { return nil }
            let name = Int(rest.loadUnaligned(as: UInt32.self))
            let value = Int(rest.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
            let middle = Self.head + name
            defer { rest = UnsafeRawBufferPointer(rebasing: rest[(middle + value)...]) }
            return (
                UnsafeRawBufferPointer(rebasing: rest[Self.head..<middle]).assumingMemoryBound(to: UInt8.self),
                UnsafeRawBufferPointer(rebasing: rest[middle..<(middle + value)]).assumingMemoryBound(to: UInt8.self)
            )
        }
    }
}
