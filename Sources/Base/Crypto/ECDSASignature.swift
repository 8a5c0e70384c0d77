/// The two forms of a P-256 ECDSA signature: r‖s for JWS, and DER for OpenSSL and X.509.
enum ECDSASignature {
    static func der(fromRaw raw: [UInt8]) -> [UInt8]? {
        guard raw.count == 64 else { return nil }
        return DER.sequence(DER.integer(raw[..<32]), DER.integer(raw[32...]))
    }

    /// Converts a signature that OpenSSL has made. Returns nil unless it consists of two positive
    /// numbers of at most 32 bytes.
    static func raw(fromDER der: [UInt8]) -> [UInt8]? {
        var rest = der[...]
        guard rest.popFirst() == 0x30, let length = rest.popFirst(), Int(length) == rest.count, length < 0x80 else {
            return nil
        }
        var raw: [UInt8] = []
        for _ in 0..<2 {
            guard rest.popFirst() == 0x02, let length = rest.popFirst(), length > 0, length <= 33,
                rest.count >= length
            else { return nil }
            let number = rest.prefix(Int(length)).drop { $0 == 0 }
            guard number.count <= 32 else { return nil }
            raw += [UInt8](repeating: 0, count: 32 - number.count) + number
            rest = rest.dropFirst(Int(length))
        }
        return rest.isEmpty ? raw : nil
    }
}
