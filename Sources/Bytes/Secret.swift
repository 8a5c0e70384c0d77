/// Bytes that must not be printed, logged or compared in a way that tells how much of them was right.
public struct Secret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }
    public init(utf8 text: String) { self.bytes = Array(text.utf8) }

    public var count: Int { bytes.count }

    /// The bytes themselves, for the one call that needs them.
    public func reveal() -> [UInt8] { bytes }

    public var description: String { "[secret]" }
    public var debugDescription: String { "[secret]" }
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// Takes the same time wherever the first difference is.
    public static func matches(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
        // Arrays, because what is generic is not specialised for other modules, and costs several calls a byte.
        let (a, b) = (Array(a), Array(b))
        guard a.count == b.count else { return false }
        var difference: UInt8 = 0
        for at in a.indices { difference |= a[at] ^ b[at] }
        return difference == 0
    }
}
