import Bytes
import COpenSSL

public enum SHA256 {
    public static func hash(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { buffer, filled in
            let done = EVP_Digest(bytes, bytes.count, buffer.baseAddress, nil, Algorithm.sha256.pointer, nil)
            precondition(done == 1, "SHA-256 fails only without memory")
            filled = 32
        }
    }
}

/// HMAC (RFC 2104).
public enum HMAC {
    public static func sha1(key: Secret, _ message: [UInt8]) -> [UInt8] {
        code(Algorithm.sha1, block: 64, count: 20, key: key, message)
    }

    public static func sha256(key: Secret, _ message: [UInt8]) -> [UInt8] {
        code(Algorithm.sha256, block: 64, count: 32, key: key, message)
    }

    public static func sha512(key: Secret, _ message: [UInt8]) -> [UInt8] {
        code(Algorithm.sha512, block: 128, count: 64, key: key, message)
    }

    /// Computes H(key ⊕ opad ‖ H(key ⊕ ipad ‖ message)) with two calls of the hash. For the short
    /// messages of this program, that takes a third of the time of OpenSSL's HMAC, which makes a
    /// dozen contexts for each code.
    private static func code(
        _ hash: SharedHandle, block: Int, count: Int, key: Secret, _ message: [UInt8]
    ) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { code, filled in
            // The outer block, and behind it the inner block with the message, or later its hash.
            withUnsafeTemporaryAllocation(byteCount: 2 * block + message.count, alignment: 16) { memory in
                let padded = UnsafeMutableRawBufferPointer(rebasing: memory[..<(2 * block)])
                defer { Wiping.wipe(padded) }
                pad(key, hash, block: block, into: padded)
                let inner = UnsafeMutableRawBufferPointer(rebasing: memory[block...])
                message.withUnsafeBytes {
                    UnsafeMutableRawBufferPointer(rebasing: inner[block...]).copyMemory(from: $0)
                }
                Self.hash(hash, UnsafeRawBufferPointer(inner), into: inner)
                let outer = UnsafeRawBufferPointer(rebasing: memory[..<(block + count)])
                Self.hash(hash, outer, into: UnsafeMutableRawBufferPointer(code))
            }
            filled = count
        }
    }

    /// Writes the outer and the inner block of a key. A key that is longer than a block is hashed.
    private static func pad(_ key: Secret, _ hash: SharedHandle, block: Int, into padded: UnsafeMutableRawBufferPointer)
    {
        padded.initializeMemory(as: UInt8.self, repeating: 0)
        key.withBytes { key in
            if key.count > block { Self.hash(hash, key, into: padded) } else { padded.copyMemory(from: key) }
        }
        for at in 0..<block {
            padded[block + at] = padded[at] ^ 0x36
            padded[at] ^= 0x5c
        }
    }

    private static func hash(
        _ hash: SharedHandle, _ bytes: UnsafeRawBufferPointer, into result: UnsafeMutableRawBufferPointer
    ) {
        let done = EVP_Digest(bytes.baseAddress, bytes.count, result.baseAddress, nil, hash.pointer, nil)
        precondition(done == 1, "a hash fails only without memory")
    }
}
