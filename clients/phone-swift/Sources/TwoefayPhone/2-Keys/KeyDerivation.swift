/// Derives keys: HKDF (RFC 5869), PBKDF2 (RFC 8018) and scrypt (RFC 7914).
public enum KeyDerivation {
    /// Returns `count` bytes of HKDF with SHA-256.
    public static func hkdf(
        _ material: [UInt8], salt: [UInt8] = [], info: [UInt8], count: Int, _ cryptography: any Cryptography
    ) -> [UInt8] {
        let key = cryptography.hmac(.sha256, key: salt.isEmpty ? Array(repeating: 0, count: 32) : salt, material)
        var (output, block): ([UInt8], [UInt8]) = ([], [])
        while output.count < count {
            block = cryptography.hmac(.sha256, key: key, block + info + [UInt8(output.count / 32 + 1)])
            output += block
        }
        return Array(output.prefix(count))
    }

    /// Returns `count` bytes of PBKDF2 with HMAC-SHA-256 and one iteration, as scrypt needs it.
    static func pbkdf2(
        _ password: [UInt8], salt: [UInt8], count: Int, _ cryptography: any Cryptography
    ) -> [UInt8] {
        var output: [UInt8] = []
        var index: UInt32 = 1
        while output.count < count {
            let number = (0..<4).map { UInt8(truncatingIfNeeded: index >> UInt32(24 - 8 * $0)) }
            output += cryptography.hmac(.sha256, key: password, salt + number)
            index += 1
        }
        return Array(output.prefix(count))
    }

    /// Returns `count` bytes of scrypt. It takes 128 · n · r bytes of memory: 32 MiB for a PIN.
    ///
    /// - Parameters:
    ///   - n: the cost, a power of two.
    ///   - r: the size of a block, in units of 128 bytes.
    ///   - p: the number of blocks.
    public static func scrypt(
        _ password: [UInt8], salt: [UInt8], n: Int, r: Int, p: Int, count: Int, _ cryptography: any Cryptography
    ) -> [UInt8] {
        let size = 128 * r
        let first = pbkdf2(password, salt: salt, count: p * size, cryptography)
        var mixed: [UInt8] = []
        for index in 0..<p {
            var words = [UInt32](repeating: 0, count: 32 * r)
            for at in 0..<size { words[at / 4] |= UInt32(first[index * size + at]) << UInt32(at % 4 * 8) }
            mix(&words, n: n, r: r)
            for word in words {
                for shift in 0..<4 { mixed.append(UInt8(truncatingIfNeeded: word >> UInt32(8 * shift))) }
            }
        }
        return pbkdf2(password, salt: mixed, count: count, cryptography)
    }

    /// scryptROMix: fills the memory, and then reads it in an order that depends on its content.
    private static func mix(_ block: inout [UInt32], n: Int, r: Int) {
        let size = 32 * r
        // All words that depend on the PIN are in one piece of memory, which is wiped at the end.
        var memory = [UInt32](repeating: 0, count: (n + 2) * size)
        memory.withUnsafeMutableBufferPointer { memory in
            let (x, y) = (n * size, (n + 1) * size)
            for at in 0..<size { memory[x + at] = block[at] }
            for step in 0..<n {
                for at in 0..<size { memory[step * size + at] = memory[x + at] }
                mixBlock(memory, x, y, r)
            }
            for _ in 0..<n {
                let other = Int(memory[x + size - 16] & UInt32(n - 1)) * size
                for at in 0..<size { memory[x + at] ^= memory[other + at] }
                mixBlock(memory, x, y, r)
            }
            for at in 0..<size { block[at] = memory[x + at] }
            memory.update(repeating: 0)
        }
    }

    /// scryptBlockMix: mixes the block at `x` by way of the one at `y`.
    private static func mixBlock(_ memory: UnsafeMutableBufferPointer<UInt32>, _ x: Int, _ y: Int, _ r: Int) {
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 32) { state in
            for at in 0..<16 { state[at] = memory[x + (2 * r - 1) * 16 + at] }
            for index in 0..<(2 * r) {
                for at in 0..<16 { state[at] ^= memory[x + index * 16 + at] }
                salsa(state)
                // The even blocks come first, then the odd ones.
                let place = y + (index / 2 + (index % 2) * r) * 16
                for at in 0..<16 { memory[place + at] = state[at] }
            }
            for at in 0..<(32 * r) { memory[x + at] = memory[y + at] }
        }
    }

    /// Salsa20/8 of the first 16 words; the others are its workspace.
    private static func salsa(_ state: UnsafeMutableBufferPointer<UInt32>) {
        for at in 0..<16 { state[16 + at] = state[at] }
        @inline(__always) func turn(_ a: Int, _ b: Int, _ c: Int, _ bits: UInt32) {
            let sum = state[16 + b] &+ state[16 + c]
            state[16 + a] ^= sum &<< bits | sum &>> (32 &- bits)
        }
        @inline(__always) func quarter(_ a: Int, _ b: Int, _ c: Int, _ d: Int) {
            turn(b, a, d, 7)
            turn(c, b, a, 9)
            turn(d, c, b, 13)
            turn(a, d, c, 18)
        }
        for _ in 0..<4 {
            quarter(0, 4, 8, 12)
            quarter(5, 9, 13, 1)
            quarter(10, 14, 2, 6)
            quarter(15, 3, 7, 11)
            quarter(0, 1, 2, 3)
            quarter(5, 6, 7, 4)
            quarter(10, 11, 8, 9)
            quarter(15, 12, 13, 14)
        }
        for at in 0..<16 { state[at] &+= state[16 + at] }
    }
}
