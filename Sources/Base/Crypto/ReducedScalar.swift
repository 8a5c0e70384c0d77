import Bytes
import COpenSSL

extension P256PrivateKey {
    /// The bytes that `init(reducing:)` takes: 64 bits more than a scalar has, so that no scalar is
    /// noticeably more likely than another.
    public static let bytesToReduce = 40

    /// Makes a key from pseudo-random bytes, as FIPS 186-5, A.2.1 does with extra random bits: the
    /// scalar is (c mod (n − 1)) + 1, where c is the number that the bytes form, highest first.
    public convenience init(reducing bytes: Secret) throws(CryptoFailure) {
        try self.init(scalar: try Self.reduced(bytes))
    }

    static func reduced(_ secret: Secret) throws(CryptoFailure) -> Secret {
        let what = "reducing a number to a P-256 scalar"
        guard secret.count == bytesToReduce else { throw CryptoFailure("a scalar is reduced from 40 bytes") }
        var bytes = secret.reveal()
        defer { Wiping.wipe(&bytes) }
        let context = try Owned(BN_CTX_secure_new(), else: what) { BN_CTX_free($0) }
        let number = try Owned(BN_bin2bn(bytes, Int32(bytes.count), nil), else: what) { BN_clear_free($0) }
        let modulus = try Owned(BN_bin2bn(order, Int32(order.count), nil), else: what) { BN_clear_free($0) }
        let rest = try Owned(BN_new(), else: what) { BN_clear_free($0) }
        BN_set_flags(number.pointer, BN_FLG_CONSTTIME)
        var scalar = [UInt8](repeating: 0, count: order.count)
        defer { Wiping.wipe(&scalar) }
        guard BN_sub_word(modulus.pointer, 1) == 1,
            BN_div(nil, rest.pointer, number.pointer, modulus.pointer, context.pointer) == 1,
            BN_add_word(rest.pointer, 1) == 1,
            BN_bn2binpad(rest.pointer, &scalar, Int32(scalar.count)) == Int32(scalar.count)
        else { throw CryptoFailure.drained(what) }
        return Secret(scalar)
    }
}
