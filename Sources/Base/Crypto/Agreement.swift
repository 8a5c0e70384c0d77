import Bytes
import COpenSSL

extension P256PrivateKey {
    /// The shared secret of this key and another one (ECDH): the x coordinate of the point, 32
    /// bytes. It is not a key yet; `HKDF` derives one from it.
    public func agree(with other: P256PublicKey) throws(CryptoFailure) -> Secret {
        let what = "agreeing on a secret"
        let context = try Owned(EVP_PKEY_CTX_new_from_pkey(nil, pointer, nil), else: what) { EVP_PKEY_CTX_free($0) }
        var bytes = [UInt8](repeating: 0, count: 32)
        var count = bytes.count
        guard EVP_PKEY_derive_init(context.pointer) == 1,
            EVP_PKEY_derive_set_peer(context.pointer, other.handle.pointer) == 1,
            EVP_PKEY_derive(context.pointer, &bytes, &count) == 1, count == 32
        else { throw CryptoFailure.drained(what) }
        return Secret(bytes)
    }
}

/// HKDF (RFC 5869) with SHA-256.
public enum HKDF {
    /// Derives bytes from a secret.
    /// - Parameter count: the number of bytes, at most 255 × 32.
    public static func sha256(_ secret: Secret, salt: [UInt8], info: [UInt8], count: Int) -> Secret {
        precondition((0...255 * 32).contains(count), "HKDF gives no more")
        let key = Secret(HMAC.sha256(key: Secret(salt), secret.reveal()))
        var bytes: [UInt8] = []
        var block: [UInt8] = []
        var number: UInt8 = 0
        while bytes.count < count {
            number += 1
            block = HMAC.sha256(key: key, block + info + [number])
            bytes += block
        }
        return Secret(Array(bytes.prefix(count)))
    }
}
