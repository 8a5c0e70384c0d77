import Bytes
import Testing

@testable import Crypto

/// Signatures over digests.
@Suite struct DigestSignatureTests {
    /// The key and the digest of RFC 6979, A.2.5, with SHA-256 of "sample".
    private let scalar = "c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721"
    private let r = "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
    private let s = "f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"

    private func key() throws -> P256PrivateKey {
        try P256PrivateKey(scalar: Secret(try #require(Hex.decode(scalar))))
    }

    @Test("RFC 6979, A.2.5") func publishedSignatureIsValid() throws {
        let raw = try #require(Hex.decode(r + s))
        let der = try #require(ECDSASignature.der(fromRaw: raw))
        let digest = SHA256.hash(Array("sample".utf8))
        #expect(try key().publicKey.verify(derSignature: der, ofDigest: digest))
        #expect(try !key().publicKey.verify(derSignature: der, ofDigest: SHA256.hash(Array("test".utf8))))
    }

    /// A signature over a digest is one over the message, so the form proves nothing about what the
    /// signer saw.
    @Test func signatureOfADigestIsOneOfItsMessage() throws {
        let message = Array("message".utf8)
        let der = try key().sign(digest: SHA256.hash(message))
        #expect(try key().publicKey.verify(derSignature: der, ofDigest: SHA256.hash(message)))
        #expect(try key().publicKey.verify(derSignature: der, over: message))
        #expect(try !P256PrivateKey.generate().publicKey.verify(derSignature: der, ofDigest: SHA256.hash(message)))
    }

    @Test(arguments: [0, 31, 33, 64]) func digestOfAnotherLengthIsRefused(count: Int) throws {
        let digest = [UInt8](repeating: 1, count: count)
        #expect(throws: CryptoFailure.self) { try key().sign(digest: digest) }
        #expect(try !key().publicKey.verify(derSignature: key().sign(digest: SHA256.hash(digest)), ofDigest: digest))
    }
}
