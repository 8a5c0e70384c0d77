import Glibc

/// The memory of a secret, which is wiped when the last copy of the secret is released.
enum SecretStorage: Sendable {
    case heap(HeapBytes)
    case locked(LockedBytes)
}

/// The bytes of a secret that lives for one or a few requests: an array, taken over without a copy.
///
/// `@unchecked Sendable`: only `init` and `deinit` write `bytes`, so threads that share it only
/// read it. The compiler does not know that `deinit` has exclusive access.
final class HeapBytes: @unchecked Sendable {
    private(set) var bytes: [UInt8]

    init(_ bytes: consuming [UInt8]) { self.bytes = bytes }

    /// Wipes the array. If another owner still holds the array, the write makes a copy, and the
    /// other one remains.
    deinit { Wiping.wipe(&bytes) }
}

/// The bytes of a secret that lives as long as the process, in locked pages.
final class LockedBytes: Sendable {
    private let address: UInt
    let count: Int
    private let memory: LockedMemory

    /// Copies the bytes into locked pages.
    /// - Parameter source: the bytes to copy; the caller must wipe them.
    init(_ source: UnsafeRawBufferPointer, in memory: LockedMemory) {
        count = source.count
        self.memory = memory
        address = memory.allocate(count)
        if let from = source.baseAddress, let to = UnsafeMutableRawPointer(bitPattern: address) {
            to.copyMemory(from: from, byteCount: count)
        }
    }

    deinit { memory.release(address, count) }

    var buffer: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: address), count: count)
    }
}

/// Overwrites memory in a way that no compiler removes.
public enum Wiping {
    /// Overwrites an array in place, if it has no other owner.
    public static func wipe(_ bytes: inout [UInt8]) { bytes.withUnsafeMutableBytes { wipe($0) } }

    public static func wipe(_ buffer: UnsafeMutableRawBufferPointer) {
        if let start = buffer.baseAddress { explicit_bzero(start, buffer.count) }
    }
}
