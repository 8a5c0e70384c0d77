/// Bytes that must not be printed or logged, and are compared in constant time.
///
/// The bytes are wiped when the last copy of the value is released. A secret that lives for one
/// request is in ordinary memory. Keys that live as long as the process are `locked()` into pages
/// that are neither swapped nor dumped (`LockedMemory`). Tests: `BytesTests`, `LockedMemoryTests`.
public struct Secret: Sendable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let storage: SecretStorage

    /// Takes ownership of the bytes. If the caller keeps a copy of the array, that copy is not
    /// wiped.
    public init(_ bytes: consuming [UInt8]) { storage = .heap(HeapBytes(bytes)) }
    public init(utf8 text: String) { self.init(Array(text.utf8)) }

    /// Copies the bytes into locked pages. The caller must wipe the source.
    public init(locking source: UnsafeRawBufferPointer, in memory: LockedMemory = .shared) {
        storage = .locked(LockedBytes(source, in: memory))
    }

    /// The same secret in locked pages, for keys that live as long as the process.
    public func locked(in memory: LockedMemory = .shared) -> Secret {
        if case .locked = storage { return self }
        return withBytes { Secret(locking: $0, in: memory) }
    }

    public var isLocked: Bool { if case .locked = storage { true } else { false } }

    public var count: Int {
        switch storage {
        case .heap(let heap): heap.bytes.count
        case .locked(let locked): locked.count
        }
    }

    /// Gives access to the bytes for one call, without a copy that would have to be wiped.
    public func withBytes<Value, Problem: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Problem) -> Value
    ) throws(Problem) -> Value {
        switch storage {
        case .heap(let heap):
            // `withUnsafeBytes` rethrows untyped errors.
            return try heap.bytes.withUnsafeBytes { bytes in
                Result { () throws(Problem) in try body(bytes) }
            }.get()
        case .locked(let locked):
            return try withExtendedLifetime(locked) { () throws(Problem) in try body(locked.buffer) }
        }
    }

    /// The bytes as an array, for a call that requires one. For a locked secret this is a copy that
    /// is not wiped, so code that handles keys uses `withBytes`.
    public func reveal() -> [UInt8] {
        switch storage {
        case .heap(let heap): heap.bytes
        case .locked(let locked): Array(locked.buffer)
        }
    }

    public var description: String { "[secret]" }
    public var debugDescription: String { "[secret]" }
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// Compares bytes in a time that does not depend on the position of a difference.
    public static func matches(_ a: some Collection<UInt8>, _ b: some Collection<UInt8>) -> Bool {
        // Converted to arrays, because generic code is not specialised for other modules and costs
        // several calls per byte.
        let (a, b) = (Array(a), Array(b))
        guard a.count == b.count else { return false }
        var difference: UInt8 = 0
        for at in a.indices { difference |= a[at] ^ b[at] }
        return difference == 0
    }
}
