import LinuxPhone
import Testing
import TwoefayPhone

/// The vectors of the RFCs for what this package computes itself.
struct DerivationTests {
    private let cryptography = OpenSSLCryptography()

    /// RFC 7914, 12.
    @Test(arguments: [
        (
            "", "", 16, 1, 1,
            "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"
        ),
        (
            "password", "NaCl", 1024, 8, 16,
            "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b3731622eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
        ),
        (
            "pleaseletmein", "SodiumChloride", 16384, 8, 1,
            "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
        ),
    ])
    func scrypt(password: String, salt: String, n: Int, r: Int, p: Int, output: String) {
        let bytes = KeyDerivation.scrypt(
            Array(password.utf8), salt: Array(salt.utf8), n: n, r: r, p: p, count: 64, cryptography)
        #expect(bytes == hex(output))
    }

    /// RFC 5869, A.1 and A.3.
    @Test func hkdf() {
        let material = [UInt8](repeating: 0x0b, count: 22)
        let one = KeyDerivation.hkdf(
            material, salt: Array(0...12), info: Array(0xf0...0xf9), count: 42, cryptography)
        #expect(one == hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"))
        let three = KeyDerivation.hkdf(material, info: [], count: 42, cryptography)
        #expect(three == hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"))
    }

    /// The order of P-256 is ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551.
    @Test(arguments: [
        ("00", "1"), ("01", "2"),
        // n - 2, n - 1 and n give n - 1, 1 and 2.
        (
            "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc63254f",
            "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632550"
        ),
        ("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632550", "1"),
        ("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551", "2"),
        // 256 (n - 1) + 5.
        ("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc63255005", "6"),
    ])
    func scalarIsReduced(number: String, result: String) {
        let padded = String(repeating: "0", count: 64 - result.count) + result
        let bytes = hex(number)
        #expect(PINSecret.scalar([UInt8](repeating: 0, count: 40 - bytes.count) + bytes) == hex(padded))
    }

    /// RFC 6238, appendix B: the secrets have 20, 32 and 64 bytes.
    @Test(
        arguments: [
            (59, "94287082", "46119246", "90693936"), (1_111_111_109, "07081804", "68084774", "25091201"),
            (20_000_000_000, "65353130", "77737706", "47863826"),
        ] as [(Int64, String, String, String)])
    func codes(seconds: Int64, sha1: String, sha256: String, sha512: String) throws {
        let digits = "1234567890"
        let secrets: [(String, String, String)] = [
            ("sha1", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", sha1),
            ("sha256", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQGEZA", sha256),
        ]
        #expect(Base32.decode(secrets[0].1) == Array((digits + digits).utf8))
        for (algorithm, secret, code) in secrets {
            let codes = try #require(
                PhoneCodes([
                    "factor": "f", "secret": .string(secret), "algorithm": .string(algorithm), "digits": 8,
                    "period": 30,
                ]))
            let (shown, left) = codes.code(at: Timestamp(seconds: seconds), cryptography)
            #expect(shown == code && left == 30 - seconds % 30)
        }
    }
}
