/// The name of a parameter or of a column, as the code writes it: a literal such as `"username"` or
/// the label `user:`.
public struct SQLName: Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    let text: StaticString

    public init(stringLiteral text: StaticString) { self.text = text }

    public var description: String { text.description }
}

/// An ordered list of names. All names are in one buffer, so that a search compares bytes and
/// allocates nothing.
struct SQLNames: Sendable {
    private var bytes: [UInt8] = []
    /// The end of each name in `bytes`. The next name begins there.
    private var ends: [Int] = []

    var count: Int { ends.count }

    subscript(index: Int) -> String { String(decoding: bytes[start(index)..<ends[index]], as: UTF8.self) }

    mutating func append(_ name: some Collection<UInt8>) {
        bytes.append(contentsOf: name)
        ends.append(bytes.count)
    }

    /// Returns the index of the first name that equals `name`; nil if there is none.
    func firstIndex(of name: SQLName) -> Int? { name.text.withUTF8Buffer { firstIndex(of: $0) } }

    func firstIndex(of name: some Collection<UInt8>) -> Int? {
        ends.indices.first { matches(name, at: $0) }
    }

    /// Returns the indices of `id1`, `id2` and so on, if `name` is `id`.
    func numbered(_ name: SQLName) -> [Int] {
        var found: [Int] = []
        while let index = firstIndex(of: "\(name)\(found.count + 1)".utf8) { found.append(index) }
        return found
    }

    func matches(_ name: SQLName, at index: Int) -> Bool { name.text.withUTF8Buffer { matches($0, at: index) } }

    @inline(__always)
    private func matches(_ name: some Collection<UInt8>, at index: Int) -> Bool {
        let start = start(index)
        return ends[index] - start == name.count && bytes[start..<ends[index]].elementsEqual(name)
    }

    private func start(_ index: Int) -> Int { index == 0 ? 0 : ends[index - 1] }
}
