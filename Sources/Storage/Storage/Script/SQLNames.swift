import Glibc

/// The name of a parameter or of a column, as the code writes it: a literal such as `"username"` or
/// the label `user:`.
public struct SQLName: Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    private let text: StaticString

    public init(stringLiteral text: StaticString) { self.text = text }

    /// The bytes of the literal, which live as long as the program.
    fileprivate var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    public var description: String { text.description }
}

/// An ordered list of names. All names are in one buffer, so that a search compares bytes and
/// allocates nothing.
struct SQLNames: Sendable {
    private var bytes: [UInt8] = []
    /// The end of each name in `bytes`. The next name begins there.
    private var ends: [Int] = []

    var count: Int { ends.count }

    subscript(index: Int) -> String {
        String(decoding: bytes[(index == 0 ? 0 : ends[index - 1])..<ends[index]], as: UTF8.self)
    }

    mutating func append(_ name: some Collection<UInt8>) {
        bytes.append(contentsOf: name)
        ends.append(bytes.count)
    }

    /// Returns the index of the first name that equals `name`; nil if there is none.
    func firstIndex(of name: SQLName) -> Int? { firstIndex(of: name.bytes) }

    func firstIndex(of name: some Collection<UInt8>) -> Int? {
        let copy = Array(name)
        return copy.withUnsafeBytes { firstIndex(of: $0) }
    }

    private func firstIndex(of name: UnsafeRawBufferPointer) -> Int? {
        bytes.withUnsafeBytes { bytes in
            var start = 0
            for (index, end) in ends.enumerated() {
                if Self.equals(bytes[start..<end], name) { return index }
                start = end
            }
            return nil
        }
    }

    /// Whether the labels of a call are these names, in this order.
    func equals(_ labels: KeyValuePairs<SQLName, SQLValue>) -> Bool {
        labels.count == ends.count && begin(with: labels)
    }

    /// Whether the first names are the labels of a call, in this order.
    func begin(with labels: KeyValuePairs<SQLName, SQLValue>) -> Bool {
        guard labels.count <= ends.count else { return false }
        return bytes.withUnsafeBytes { bytes in
            var start = 0
            for (label, end) in zip(labels, ends) {
                guard Self.equals(bytes[start..<end], label.key.bytes) else { return false }
                start = end
            }
            return true
        }
    }

    @inline(__always)
    private static func equals(_ name: Slice<UnsafeRawBufferPointer>, _ other: UnsafeRawBufferPointer) -> Bool {
        guard name.count == other.count, let start = name.base.baseAddress, let other = other.baseAddress else {
            return false
        }
        return memcmp(start + name.startIndex, other, name.count) == 0
    }

    /// Returns the indices of `id1`, `id2` and so on, if `name` is `id`.
    func numbered(_ name: SQLName) -> [Int] {
        var found: [Int] = []
        while let index = firstIndex(of: "\(name)\(found.count + 1)".utf8) { found.append(index) }
        return found
    }
}
