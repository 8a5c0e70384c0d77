/// The two forms of an ECDSA signature: r‖s for JWS, and DER for OpenSSL and X.509. `half` is the
/// length of r and of s: 32 bytes on P-256, 48 on P-384.
enum ECDSASignature {
    static func der(fromRaw raw: [UInt8], half: Int = 32) -> [UInt8]? {
        guard raw.count == 2 * half else { return nil }
        return DER.sequence(DER.integer(raw[..<half]), DER.integer(raw[half...]))
    }

    /// Converts a signature that OpenSSL has made. Returns nil unless it consists of two positive
    /// numbers of at most `half` bytes.
    static func raw(fromDER der: [UInt8], half: Int = 32) -> [UInt8]? {
        var rest = der[...]
        guard rest.popFirst() == 0x30, let length = rest.popFirst(), Int(length) == rest.count, length < 0x80 else {
            return nil
        }
        var raw: [UInt8] = []
        for _ in 0..<2 {
            guard rest.popFirst() == 0x02, let length = rest.popFirst(), length > 0, length <= half + 1,
                rest.count >= length
            else { return nil }
            let number = rest.prefix(Int(length)).drop { $0 == 0 }
            guard number.count <= half else { return nil }
            raw += [UInt8](repeating: 0, count: half - number.count) + number
            rest = rest.dropFirst(Int(length))
        }
        return rest.isEmpty ? raw : nil
    }
}
