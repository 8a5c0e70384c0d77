import Bytes
import Crypto
import Testing
import World

@Suite struct PasswordHashTests {
    /// The fourth example of the RFC needs a gigabyte and is omitted.
    @Test(
        "RFC 7914 §12",
        arguments: [
            (
                "", "", 4, 1, 1,
                "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442"
                    + "fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906"
            ),
            (
                "password", "NaCl", 10, 8, 16,
                "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162"
                    + "2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640"
            ),
            (
                "pleaseletmein", "SodiumChloride", 14, 8, 1,
                "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2"
                    + "d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887"
            ),
        ])
    func scryptMatchesRFC7914Vectors(password: String, salt: String, logarithm: Int, r: Int, p: Int, key: String) throws
    {
        let cost = try #require(PasswordHash.Cost(logarithmOfN: logarithm, r: r, p: p))
        let derived = try Scrypt.derive(from: Secret(utf8: password), salt: Array(salt.utf8), cost: cost, count: 64)
        #expect(Hex.encode(derived.reveal()) == key)
    }

    /// The hash is the example in Passlib's documentation of scrypt.
    @Test func passwordHashOfOtherProgramsIsRead() throws {
        let text = "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E"
        let hash = try #require(PasswordHash(text: text))
        #expect(hash.matches(Secret(utf8: "password")))
        #expect(!hash.matches(Secret(utf8: "Password")))
        #expect(hash.text == text)
    }

    @Test func onlyTheRightPasswordMatches() throws {
        let hash = try PasswordHash(Secret(utf8: "pässwörd 1"), cost: .usual, randomness: SystemRandomness())
        #expect(hash.text.hasPrefix("$scrypt$ln=15,r=8,p=3$"))
        let kept = try #require(PasswordHash(text: hash.text))
        #expect(kept == hash && kept.matches(Secret(utf8: "pässwörd 1")))
        for other in ["", "pässwörd 1 ", "pässwörd", "PÄSSWÖRD 1"] {
            #expect(!kept.matches(Secret(utf8: other)), "\(other)")
        }
    }

    @Test func equalPasswordsHaveDifferentSalts() throws {
        let cost = try #require(PasswordHash.Cost(logarithmOfN: 4, r: 8, p: 1))
        let texts = try (0..<2).map { _ in
            try PasswordHash(Secret(utf8: "same"), cost: cost, randomness: SystemRandomness()).text
        }
        #expect(texts[0] != texts[1])
    }

    @Test(arguments: [
        "", "$scrypt$", "password", "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$",
        "$scrypt$ln=40,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E",
        "$scrypt$ln=0,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E",
        "$scrypt$ln=16,r=8$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E",
        "$scrypt$r=8,ln=16,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E",
        "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q==$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E",
        "$argon2$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E",
        "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E$",
    ]) func malformedPasswordHashIsRefused(text: String) { #expect(PasswordHash(text: text) == nil) }
}
