import Bytes
import Crypto
import Testing

/// The encryption of other manufacturers' token files.
@Suite struct LegacyFormatTests {
    /// The test vectors of NIST SP 800-38A, F.2.
    @Test(arguments: [
        (
            "2b7e151628aed2a6abf7158809cf4f3c",
            "7649abac8119b246cee98e9b12e9197d5086cb9b507219ee95db113a917678b2"
        ),
        (
            "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
            "4f021db243bc633d7178183a9fa071e8b4d9ada9ad7dedf4e5e738763f69145a"
        ),
        (
            "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
            "f58c4c04d6e5f1ba779eabfb5f7bfbd69cfc4e967edb808d679f777bc6702c7d"
        ),
    ]) func aesCBCMatchesPublishedVectors(key: String, ciphertext: String) throws {
        let key = Secret(try #require(Hex.decode(key)))
        let vector = try #require(Hex.decode("000102030405060708090a0b0c0d0e0f"))
        let opened = CBC.open(try #require(Hex.decode(ciphertext)), key: key, vector: vector)
        #expect(
            opened.map { Hex.encode($0) } == "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    }

    @Test func cbcRefusesInputOfAnotherSize() {
        let block = [UInt8](repeating: 1, count: 16)
        for count in [0, 1, 15, 17, 31] {
            #expect(CBC.open(Array(repeating: 1, count: count), key: Secret(block), vector: block) == nil)
            #expect(CBC.open(block, key: Secret(Array(repeating: 1, count: count)), vector: block) == nil)
            #expect(CBC.open(block, key: Secret(block), vector: Array(repeating: 1, count: count)) == nil)
        }
    }

    @Test(
        "RFC 6070",
        arguments: [
            ("password", "salt", 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
            ("password", "salt", 4096, "4b007901b765489abead49d926f721d065a429c1"),
            (
                "passwordPASSWORDpassword", "saltSALTsaltSALTsaltSALTsaltSALTsalt", 4096,
                "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038"
            ),
            ("pass\0word", "sa\0lt", 4096, "56fa6aa75548099dcc37d7f03425e0c3"),
        ]) func pbkdf2MatchesPublishedVectors(password: String, salt: String, iterations: Int, key: String) throws
    {
        let derived = try PBKDF2.derive(
            from: Secret(utf8: password), salt: Array(salt.utf8), iterations: iterations, count: key.utf8.count / 2,
            function: .sha1)
        #expect(Hex.encode(derived.reveal()) == key)
    }

    /// The test vector of RFC 7914 §11.
    @Test func pbkdf2DerivesKeysWithSHA256() throws {
        let derived = try PBKDF2.derive(
            from: Secret(utf8: "passwd"), salt: Array("salt".utf8), iterations: 1, count: 64, function: .sha256)
        #expect(
            Hex.encode(derived.reveal())
                == "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
                + "49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783")
    }

    @Test func pbkdf2RefusesInvalidParameters() {
        for (iterations, count) in [(0, 16), (-1, 16), (1 << 40, 16), (1, 0), (1, 1 << 20)] {
            #expect(throws: CryptoFailure.self) {
                try PBKDF2.derive(
                    from: Secret([]), salt: [], iterations: iterations, count: count, function: .sha512)
            }
        }
    }
}
