import Glibc

/// Memory that holds the bytes of a secret, and is wiped when the last copy of the secret is released.
enum SecretStorage: Sendable {
    case heap(HeapBytes)
    case locked(LockedBytes)
}

/// The bytes of a secret that lives for one request or a few: an array, taken over without a copy.
///
/// `@unchecked Sendable`: `bytes` is written by `init` and `deinit` alone, so threads that share it only read it. The
/// compiler cannot see that `deinit` has the object to itself.
final class HeapBytes: @unchecked Sendable {
    private(set) var bytes: [UInt8]

    init(_ bytes: consuming [UInt8]) { self.bytes = bytes }

    /// An array that somebody else still holds is copied before the write, and stays as it is.
    deinit { Wiping.wipe(&bytes) }
}

/// The bytes of a secret that lives as long as the process, in locked pages.
final class LockedBytes: Sendable {
    private let address: UInt
    let count: Int
    private let memory: LockedMemory

    /// - Parameter source: is copied; the caller wipes it.
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

/// Overwriting that no compiler leaves out.
public enum Wiping {
    /// Overwrites an array in place, if nobody else holds it.
    public static func wipe(_ bytes: inout [UInt8]) { bytes.withUnsafeMutableBytes { wipe($0) } }

    public static func wipe(_ buffer: UnsafeMutableRawBufferPointer) {
        if let start = buffer.baseAddress { explicit_bzero(start, buffer.count) }
    }
}
