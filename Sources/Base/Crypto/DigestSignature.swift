import COpenSSL

/// ECDSA signatures over a digest that somebody else has computed, in DER, as `openssl pkeyutl`
/// makes them.
///
/// Whoever signs a digest does not know what it is the digest of. So no key that signs statements
/// may be used in this way. Tests: `DigestSignatureTests`.
extension P256PublicKey {
    /// Verifies a signature over a SHA-256 digest.
    public func verify(derSignature der: [UInt8], ofDigest digest: [UInt8]) -> Bool {
        guard der.count <= 72, digest.count == 32,
            let context = EVP_PKEY_CTX_new_from_pkey(nil, handle.pointer, nil)
        else { return false }
        defer { EVP_PKEY_CTX_free(context) }
        if EVP_PKEY_verify_init(context) == 1,
            EVP_PKEY_verify(context, der, der.count, digest, digest.count) == 1
        {
            return true
        }
        ERR_clear_error()
        return false
    }
}

extension P256PrivateKey {
    /// Signs a SHA-256 digest. Returns the signature in DER.
    public func sign(digest: [UInt8]) throws(CryptoFailure) -> [UInt8] {
        let what = "signing a digest"
        guard digest.count == 32 else { throw CryptoFailure("a SHA-256 digest has 32 bytes") }
        let context = try Owned(EVP_PKEY_CTX_new_from_pkey(nil, pointer, nil), else: what) { EVP_PKEY_CTX_free($0) }
        var signature = [UInt8](repeating: 0, count: 80)
        var count = signature.count
        guard EVP_PKEY_sign_init(context.pointer) == 1,
            EVP_PKEY_sign(context.pointer, &signature, &count, digest, digest.count) == 1
        else { throw CryptoFailure.drained(what) }
        return Array(signature.prefix(count))
    }
}
