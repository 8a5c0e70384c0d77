import Bytes
import Testing

@testable import Crypto

@Suite struct KeyAgreementTests {
    /// The test vector of RFC 8291, appendix A.
    @Test func ecdhMatchesThePublishedVector() throws {
        let sender = try key("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw")
        let receiver = try key("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")
        let secret = "kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs"
        #expect(try Base64URL.encode(sender.agree(with: receiver.publicKey).reveal()) == secret)
        #expect(try Base64URL.encode(receiver.agree(with: sender.publicKey).reveal()) == secret)
    }

    private func key(_ scalar: String) throws -> P256PrivateKey {
        try P256PrivateKey(scalar: Secret(#require(Base64URL.decode(scalar))))
    }

    struct Derivation: Sendable {
        let secret: [UInt8]
        let salt: [UInt8]
        let info: [UInt8]
        let key: String
    }

    /// The test vectors of RFC 5869, appendix A.1 to A.3.
    static let rfc5869 = [
        Derivation(
            secret: Array(repeating: 0x0b, count: 22), salt: Array(0x00...0x0c), info: Array(0xf0...0xf9),
            key: "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"),
        Derivation(
            secret: Array(0x00...0x4f), salt: Array(0x60...0xaf), info: Array(0xb0...0xff),
            key: "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
                + "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
                + "cc30c58179ec3e87c14c01d5c1f3434f1d87"),
        Derivation(
            secret: Array(repeating: 0x0b, count: 22), salt: [], info: [],
            key: "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"),
    ]

    @Test("RFC 5869", arguments: rfc5869) func hkdfMatchesRFC5869Vectors(_ sample: Derivation) {
        let derived = HKDF.sha256(
            Secret(sample.secret), salt: sample.salt, info: sample.info, count: sample.key.utf8.count / 2)
        #expect(Hex.encode(derived.reveal()) == sample.key)
    }

    /// Test case 2 of the GCM specification, with a key of 16 bytes.
    @Test func aes128GCMMatchesThePublishedVector() throws {
        let key = Secret(Array(repeating: 0, count: 16))
        let nonce: [UInt8] = Array(repeating: 0, count: 12)
        let zeros: [UInt8] = Array(repeating: 0, count: 16)
        let (ciphertext, tag) = try GCM.seal(zeros, key: key, nonce: nonce, authenticated: [])
        #expect(Hex.encode(ciphertext) == "0388dace60b6a392f328c2b971b2fe78")
        #expect(Hex.encode(tag) == "ab6e47d42cec13bdf53a67b21257bddf")
        #expect(GCM.open(ciphertext, tag: tag, key: key, nonce: nonce, authenticated: []) == zeros)
        #expect(GCM.open(zeros, tag: tag, key: key, nonce: nonce, authenticated: []) == nil)
    }
}
