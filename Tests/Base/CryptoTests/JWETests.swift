import Bytes
import Crypto
import Glibc
import JSON
import Testing
import World

@testable import Crypto

@Suite struct JWETests {
    /// The keys of RFC 7518, appendix C.
    private static func alice() throws -> P256PrivateKey { try key("0_NxaRPUMQoAJt50Gz8YiTr8gRTwyEaCumd-MToTmIo") }
    private static func bob() throws -> P256PrivateKey { try key("VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw") }

    private static func key(_ scalar: String) throws -> P256PrivateKey {
        try P256PrivateKey(scalar: Secret(#require(Base64URL.decode(scalar))))
    }

    private let parties = JWE.Parties(sender: Array("Alice".utf8), recipient: Array("Bob".utf8))

    @Test("RFC 7518, appendix C") func keyDerivationMatchesThePublishedVector() throws {
        let secret = try Self.alice().agree(with: Self.bob().publicKey)
        let key = ConcatKDF.sha256(secret, algorithm: "A128GCM", parties: parties, count: 16)
        #expect(Base64URL.encode(key.reveal()) == "VqqN6vgjbSBcIijNcacQGg")
    }

    /// The content encryption of RFC 7516, A.1. The example wraps its key with RSA, which is not ours.
    @Test("RFC 7516, appendix A.1") func contentEncryptionMatchesThePublishedVector() throws {
        let key = Secret([
            177, 161, 244, 128, 84, 143, 225, 115, 63, 180, 3, 255, 107, 154, 212, 246, 138, 7, 110, 91, 112, 46, 34,
            105,
            47, 130, 203, 46, 122, 234, 64, 252,
        ])
        let header = Base64URL.encode(Array(#"{"alg":"RSA-OAEP","enc":"A256GCM"}"#.utf8))
        #expect(header == "eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ")
        let text = Array("The true sign of intelligence is not knowledge but imagination.".utf8)
        let nonce = try #require(Base64URL.decode("48V1_ALb6US04U3b"))
        let sealed = try GCM.seal(text, key: key, nonce: nonce, authenticated: Array(header.utf8))
        #expect(
            Base64URL.encode(sealed.ciphertext)
                == "5eym8TW_c8SuK0ltJ3rpYIzOeDQz7TALvtu6UG9oMo4vpzs9tX_EFShS8iB7j6jiSdiwkIr3ajwQzaBtQD_A")
        #expect(Base64URL.encode(sealed.tag) == "XFBoMYUZodetZdvTiFvSkQ")
        #expect(
            GCM.open(sealed.ciphertext, tag: sealed.tag, key: key, nonce: nonce, authenticated: Array(header.utf8))
                == text)
    }

    @Test func holderOfTheKeyReadsTextAndHeader() throws {
        let sealed = try JWE.seal(
            Secret(utf8: "The true sign"), to: Self.bob().publicKey, between: parties,
            header: ["typ": "a-test", "alg": "none"])
        let opened = try JWE.open(sealed, with: Self.bob(), between: parties)
        #expect(opened.plaintext.reveal() == Array("The true sign".utf8))
        #expect(opened.header["typ"] == "a-test" && opened.header["alg"] == "ECDH-ES")
    }

    @Test func everySealHasAKeyOfItsOwn() throws {
        let texts = try (0..<2).map { _ in
            try JWE.seal(Secret(utf8: "same"), to: Self.bob().publicKey, between: parties)
        }
        #expect(Set(texts.map { $0.split(separator: ".")[0] }).count == 2)
    }

    @Test func othersCannotOpenIt() throws {
        let sealed = try JWE.seal(Secret(utf8: "text"), to: Self.bob().publicKey, between: parties)
        #expect(throws: JWEError.tampered) { try JWE.open(sealed, with: Self.alice(), between: parties) }
        let other = JWE.Parties(sender: parties.sender, recipient: Array("Eve".utf8))
        #expect(throws: JWEError.parties) { try JWE.open(sealed, with: Self.bob(), between: other) }
    }

    @Test func everyChangedByteIsNoticed() throws {
        let sealed = Array(try JWE.seal(Secret(utf8: "text"), to: Self.bob().publicKey, between: parties).utf8)
        for index in sealed.indices {
            var changed = sealed
            changed[index] = changed[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
            #expect(throws: JWEError.self, "byte \(index)") {
                try JWE.open(String(decoding: changed, as: UTF8.self), with: Self.bob(), between: parties)
            }
        }
    }

    @Test(
        "refused headers",
        arguments: [
            (#"{"alg":"ECDH-ES+A128KW","enc":"A256GCM"}"#, JWEError.algorithm),
            (#"{"alg":"dir","enc":"A256GCM"}"#, .algorithm),
            (#"{"alg":"ECDH-ES","enc":"A128CBC-HS256"}"#, .algorithm),
            (#"{"alg":"ECDH-ES","enc":"A256GCM"}"#, .algorithm),
            // A point that is not on the curve.
            (#"{"alg":"ECDH-ES","enc":"A256GCM","epk":{"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"}}"#, .algorithm),
            (
                #"{"alg":"ECDH-ES","enc":"A256GCM","epk":{"kty":"EC","crv":"P-256","x":"gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0","y":"gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0"}}"#,
                .algorithm
            ),
            (#"{"alg":"ECDH-ES","enc":"A256GCM","zip":"DEF"}"#, .header),
            (#"{"alg":"ECDH-ES","enc":"A256GCM","crit":["exp"]}"#, .header),
            (#"["alg"]"#, .header),
        ])
    func refusedHeaders(header: String, error: JWEError) throws {
        let zeros = Base64URL.encode([UInt8](repeating: 0, count: 12))
        let tag = Base64URL.encode([UInt8](repeating: 0, count: 16))
        let text = "\(Base64URL.encode(Array(header.utf8)))..\(zeros).AAAA.\(tag)"
        #expect(throws: error) { try JWE.open(text, with: Self.bob(), between: parties) }
    }

    @Test(arguments: ["", "a.b.c", "....", "e30.AA.AAAAAAAAAAAAAAAA.AA.AAAAAAAAAAAAAAAAAAAAAA", "e30..AA.AA.AA"])
    func otherTextsAreMalformed(text: String) throws {
        #expect(throws: JWEError.malformed) { try JWE.open(text, with: Self.bob(), between: parties) }
    }

    @Test func longTextsAreRefused() throws {
        let text = String(repeating: "A", count: 101)
        #expect(throws: JWEError.tooLong) { try JWE.open(text, with: Self.bob(), between: parties, maxBytes: 100) }
    }

    // MARK: With another implementation

    private static let modules = "/usr/share/nodejs"
    static var hasJose: Bool { access("\(modules)/jose/package.json", R_OK) == 0 }

    /// Runs a script with the `jose` package of Debian. Returns what it prints.
    private func jose(_ script: String, _ argument: String) throws -> String {
        let shell = try Shell()
        try shell.write("script.js", Array(script.utf8))
        let ended = try shell.run("NODE_PATH=\(Self.modules) node script.js '\(argument)'")
        #expect(ended.status == 0, "\(ended.output)")
        return ended.output
    }

    private static let privateJWK = """
        {kty: "EC", crv: "P-256", d: "VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw",
         x: "weNJy2HscCSM6AEDTDg04biOvhFhyyWvOHQfeF_PxMQ", y: "e8lnCO-AlStT-NJVX-crhB7QRYhiix03illJOVAOyck"}
        """

    @Test(.enabled(if: hasJose, "install node-jose")) func joseOpensOurs() throws {
        let sealed = try JWE.seal(
            Secret(utf8: "The true sign"), to: Self.bob().publicKey, between: parties, header: ["typ": "a-test"])
        let printed = try jose(
            """
            const jose = require("jose");
            (async () => {
              const key = await jose.importJWK(\(Self.privateJWK), "ECDH-ES");
              const opened = await jose.compactDecrypt(process.argv[2], key);
              const text = new TextDecoder().decode(opened.plaintext);
              process.stdout.write(text + " " + opened.protectedHeader.typ);
            })();
            """, sealed)
        #expect(printed == "The true sign a-test")
    }

    @Test(.enabled(if: hasJose, "install node-jose")) func weOpenThatOfJose() throws {
        let sealed = try jose(
            """
            const jose = require("jose");
            (async () => {
              const {d, ...jwk} = \(Self.privateJWK);
              const key = await jose.importJWK(jwk, "ECDH-ES");
              const text = await new jose.CompactEncrypt(new TextEncoder().encode(process.argv[2]))
                .setProtectedHeader({alg: "ECDH-ES", enc: "A256GCM"})
                .setKeyManagementParameters({apu: new TextEncoder().encode("Alice"), apv: new TextEncoder().encode("Bob")})
                .encrypt(key);
              process.stdout.write(text);
            })();
            """, "The true sign")
        let opened = try JWE.open(sealed, with: Self.bob(), between: parties)
        #expect(opened.plaintext.reveal() == Array("The true sign".utf8))
    }
}
