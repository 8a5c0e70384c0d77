import Bytes
import Crypto
import JSON
import Testing
import World

private func bytes(_ hex: String) throws -> [UInt8] { try #require(Hex.decode(hex.lowercased())) }

@Suite struct P256KeyTests {
    static let scalar = "C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721"
    static let point =
        "0460FED4BA255A9D31C961EB74C6356D68C049B8923B61FA6CE669622E60F29FB6"
        + "7903FE1008B8BC99A41AE9E95628BC64F2F1B20C2D7E9F5177A3C294D4462299"
    static let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"

    @Test(
        "RFC 6979 A.2.5, SHA-256",
        arguments: [
            (
                "sample", "EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716",
                "F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8"
            ),
            (
                "test", "F1ABB023518351CD71D881567B1EA663ED3EFCF6C5132B354F28D3B0B7D38367",
                "019F4113742A2B14BD25926B49C649155F267E60D3814B4C0CC84250E46F0083"
            ),
        ])
    func publishedSignaturesVerify(message: String, r: String, s: String) throws {
        let key = try P256PublicKey(x963: try bytes(Self.point))
        #expect(key.verify(signature: try bytes(r + s), over: Array(message.utf8)))
        #expect(!key.verify(signature: try bytes(s + r), over: Array(message.utf8)))
        #expect(!key.verify(signature: try bytes(r + s), over: Array("other".utf8)))
        // The signature with n - s in place of s is valid, too.
        let mirrored = try subtract(bytes(Self.order), bytes(s))
        #expect(key.verify(signature: try bytes(r) + mirrored, over: Array(message.utf8)))
    }

    private func subtract(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
        var result = a
        var borrow = 0
        for at in a.indices.reversed() {
            let digit = Int(a[at]) - Int(b[at]) - borrow
            borrow = digit < 0 ? 1 : 0
            result[at] = UInt8(digit + borrow * 256)
        }
        return result
    }

    @Test func privateKeyDerivesItsPublicKey() throws {
        let key = try P256PrivateKey(scalar: Secret(try bytes(Self.scalar)))
        #expect(key.publicKey.x963 == (try bytes(Self.point)))
        let again = try P256PrivateKey(pem: try key.pem())
        #expect(again.publicKey == key.publicKey)
        #expect(again.publicKey.hashValue == key.publicKey.hashValue)
    }

    @Test func signatureVerifies() throws {
        let key = try P256PrivateKey.generate()
        let other = try P256PrivateKey.generate()
        #expect(key.publicKey != other.publicKey)
        // Enough rounds to produce numbers with leading zeros.
        for round in 0..<600 {
            let message = Array("message \(round)".utf8)
            let signature = try key.sign(message)
            #expect(signature.count == 64)
            #expect(key.publicKey.verify(signature: signature, over: message))
            #expect(!other.publicKey.verify(signature: signature, over: message))
        }
        #expect(key.publicKey.verify(signature: try key.sign([]), over: []))
    }

    @Test("Only r‖s of 64 bytes in the valid range is accepted") func invalidSignaturesAreRefused() throws {
        let key = try P256PrivateKey.generate()
        let signature = try key.sign([1])
        let verify = { (bytes: [UInt8]) in key.publicKey.verify(signature: bytes, over: [1]) }
        let order = try bytes(Self.order)
        let zero = [UInt8](repeating: 0, count: 32)
        #expect(verify(signature))
        #expect(!verify([]))
        #expect(!verify(Array(signature.dropLast())))
        #expect(!verify(signature + [0]))
        #expect(!verify(zero + zero))
        #expect(!verify(zero + signature[32...]))
        #expect(!verify(signature[..<32] + zero))
        #expect(!verify(signature[..<32] + order))
        #expect(!verify(order + signature[32...]))
        #expect(!verify(Array(repeating: 0xff, count: 64)))
        let der: [UInt8] = [0x30, 0x44, 0x02, 0x20] + signature[..<32] + [0x02, 0x20] + signature[32...]
        #expect(!verify(der))
        for bit in stride(from: 0, to: 512, by: 7) {
            var changed = signature
            changed[bit / 8] ^= 1 << (bit % 8)
            #expect(!verify(changed))
        }
    }

    @Test func pointsOffTheCurveAreRefused() throws {
        let good = try bytes(Self.point)
        #expect(throws: CryptoFailure.self) { try P256PublicKey(x963: []) }
        #expect(throws: CryptoFailure.self) { try P256PublicKey(x963: [0]) }
        #expect(throws: CryptoFailure.self) { try P256PublicKey(x963: Array(good.dropLast())) }
        #expect(throws: CryptoFailure.self) { try P256PublicKey(x963: [2] + good[1..<33]) }
        #expect(throws: CryptoFailure.self) { try P256PublicKey(x963: [6] + good[1...]) }
        #expect(throws: CryptoFailure.self) { try P256PublicKey(x963: [4] + [UInt8](repeating: 0, count: 64)) }
        #expect(throws: CryptoFailure.self) { try P256PublicKey(x963: [4] + [UInt8](repeating: 0xff, count: 64)) }
        var off = good
        off[64] ^= 1
        #expect(throws: CryptoFailure.self) { try P256PublicKey(x963: off) }
    }

    @Test func scalarsOutOfRangeAreRefused() throws {
        for text in [Self.order, String(repeating: "0", count: 64), String(repeating: "f", count: 64), "01"] {
            #expect(throws: CryptoFailure.self) { try P256PrivateKey(scalar: Secret(try bytes(text))) }
        }
        let one = String(repeating: "0", count: 63) + "1"
        let generator = try P256PrivateKey(scalar: Secret(try bytes(one))).publicKey.x963
        #expect(Hex.encode(generator[1..<33]) == "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296")
    }

    @Test func keyIsGeneratedFromTheGivenRandomness() throws {
        struct Counting: Randomness {
            func fill(_ bytes: UnsafeMutableRawBufferPointer) {
                for at in bytes.indices { bytes[at] = UInt8(at) }
            }
        }
        #expect(try P256PrivateKey.generate(Counting()).publicKey == P256PrivateKey.generate(Counting()).publicKey)
    }

    @Test("The error queue is empty afterwards, so a later call reports no old error") func openSSLErrorQueueIsDrained()
        throws
    {
        #expect(throws: CryptoFailure.self) { try P256PublicKey(x963: [4] + [UInt8](repeating: 1, count: 64)) }
        #expect(throws: CryptoFailure.self) { try P256PrivateKey(pem: Secret(utf8: "nonsense")) }
        #expect(throws: CryptoFailure.self) { try Certificate(der: [0x30, 0x01]) }
        _ = try P256PrivateKey.generate().publicKey.verify(signature: [UInt8](repeating: 1, count: 64), over: [])
        #expect(CryptoFailure.drained("nothing").reasons == [])
    }
}

@Suite struct JWKTests {
    static let rfc7515 = """
        {"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
         "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}
        """

    private func read(_ text: String) throws -> P256PublicKey {
        try P256PublicKey(jwk: try JSONReader.read(Array(text.utf8)))
    }

    @Test func jwkRoundTrips() throws {
        let key = try read(Self.rfc7515)
        #expect(key.jwk["x"] == "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU")
        #expect(key.jwk["y"] == "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")
        #expect(try P256PublicKey(jwk: .object(key.jwk)) == key)
        #expect(try P256PublicKey(spki: key.spki) == key)
        #expect(key.spkiThumbprint == SHA256.hash(key.spki))
    }

    @Test("The key of RFC 9449 §4.1 and its thumbprint of §6.1") func thumbprintMatchesRFC7638Example() throws {
        let key = try read(
            """
            {"kty":"EC","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
             "y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA","crv":"P-256"}
            """)
        #expect(key.thumbprint == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I")
    }

    @Test(
        "Other keys are refused",
        arguments: [
            #"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#, #"{"kty":"EC","crv":"P-384","x":"X","y":"Y"}"#,
            #"{"kty":"EC","crv":"P-256","x":"X","y":"Y","d":"D"}"#, #"{"kty":"EC","crv":"P-256","x":"X"}"#,
            #"{"kty":"EC","crv":"P-256","x":"X","y":"Y","alg":"RS256"}"#,
            #"{"kty":"EC","crv":"P-256","x":"X","y":"Y","alg":1}"#,
            #"{"kty":"EC","crv":"P-256","x":"X","y":"Y","use":"enc"}"#,
            #"{"kty":"EC","crv":"P-256","x":"X=","y":"Y"}"#, #"{"kty":"EC","crv":"P-256","x":"AQ","y":"Y"}"#,
            #"{"kty":"EC","crv":"P-256","x":1,"y":"Y"}"#, #"{"kty":"EC","crv":"P-256","x":"Y","y":"X"}"#, "[]", "null",
        ])
    func malformedJWKIsRefused(text: String) {
        let key = text.replacing("\"X", with: "\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU")
            .replacing("\"Y", with: "\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0")
        #expect(throws: CryptoFailure.self) { try read(key) }
    }
}
