import Bytes
import Crypto
import Testing

@Suite struct HashTests {
    @Test(
        "FIPS 180-4 examples",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            (
                String(repeating: "a", count: 1_000_000),
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
            ),
        ])
    func sha256MatchesPublishedVectors(message: String, hash: String) {
        #expect(Hex.encode(SHA256.hash(Array(message.utf8))) == hash)
    }

    struct Case: Sendable {
        let key: [UInt8]
        let message: [UInt8]
        let sha256: String
        let sha512: String
    }

    static let rfc4231 = [
        Case(
            key: Array(repeating: 0x0b, count: 20), message: Array("Hi There".utf8),
            sha256: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            sha512: "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
                + "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"),
        Case(
            key: Array("Jefe".utf8), message: Array("what do ya want for nothing?".utf8),
            sha256: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            sha512: "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
                + "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"),
        Case(
            key: Array(repeating: 0xaa, count: 20), message: Array(repeating: 0xdd, count: 50),
            sha256: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            sha512: "fa73b0089d56a284efb0f0756c890be9b1b5dbdd8ee81a3655f83e33b2279d39"
                + "bf3e848279a722c806b485a47e67c807b946a337bee8942674278859e13292fb"),
        Case(
            key: Array(1...25), message: Array(repeating: 0xcd, count: 50),
            sha256: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            sha512: "b0ba465637458c6990e5a8c5f61d4af7e576d97ff94b872de76f8050361ee3db"
                + "a91ca5c11aa25eb4d679275cc5788063a5f19741120c4f2de2adebeb10a298dd"),
        Case(
            key: Array(repeating: 0xaa, count: 131),
            message: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
            sha256: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            sha512: "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f352"
                + "6b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598"),
        Case(
            key: Array(repeating: 0xaa, count: 131),
            message: Array(
                ("This is a test using a larger than block-size key and a larger than block-size data. "
                    + "The key needs to be hashed before being used by the HMAC algorithm.").utf8),
            sha256: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
            sha512: "e37b6a775dc87dbaa4dfa9f96e5e3ffddebd71f8867289865df5a32d20cdc944"
                + "b6022cac3c4982b10d5eeb55c3e4de15134676fb6de0446065c97440fa8c6a58"),
    ]

    @Test("RFC 4231 §4", arguments: rfc4231) func hmacMatchesRFC4231Vectors(example: Case) {
        #expect(Hex.encode(HMAC.sha256(key: Secret(example.key), example.message)) == example.sha256)
        #expect(Hex.encode(HMAC.sha512(key: Secret(example.key), example.message)) == example.sha512)
    }

    @Test("RFC 2202 §3") func hmacSHA1MatchesRFC2202Vectors() {
        let first = HMAC.sha1(key: Secret(Array(repeating: 0x0b, count: 20)), Array("Hi There".utf8))
        #expect(Hex.encode(first) == "b617318655057264e28bc0b6fb378c8ef146be00")
        let second = HMAC.sha1(key: Secret(utf8: "Jefe"), Array("what do ya want for nothing?".utf8))
        #expect(Hex.encode(second) == "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")
    }

    @Test func hmacOfEmptyKeyAndMessageIsDefined() {
        #expect(
            Hex.encode(HMAC.sha256(key: Secret([]), []))
                == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
        #expect(
            HMAC.sha256(key: Secret(utf8: "k"), [1]) != HMAC.sha256(key: Secret([]), [1]))
    }

    @Test("RFC 2104 §2", arguments: [1, 63, 64]) func shortKeyIsPaddedWithZeros(length: Int) {
        let key = [UInt8](repeating: 7, count: length)
        let padded = key + [UInt8](repeating: 0, count: 64 - length)
        #expect(HMAC.sha256(key: Secret(key), [1, 2]) == HMAC.sha256(key: Secret(padded), [1, 2]))
    }

    @Test("RFC 2104 §2", arguments: [65, 128, 129]) func longKeyIsHashed(length: Int) {
        let key = [UInt8](repeating: 7, count: length)
        #expect(HMAC.sha256(key: Secret(key), [1, 2]) == HMAC.sha256(key: Secret(SHA256.hash(key)), [1, 2]))
    }

    @Test func longMessageHasTheCodeOfItsParts() {
        // Computes it by its definition, with hashes alone.
        let message = [UInt8](repeating: 9, count: 100_000)
        let inner = SHA256.hash([UInt8](repeating: 0x36 ^ 7, count: 64) + message)
        let code = SHA256.hash([UInt8](repeating: 0x5c ^ 7, count: 64) + inner)
        #expect(HMAC.sha256(key: Secret([UInt8](repeating: 7, count: 64)), message) == code)
    }
}
