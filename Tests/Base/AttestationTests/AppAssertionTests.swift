import Attestation
import Bytes
import Crypto
import SimulatedAttestation
import Testing

@Suite struct AppAssertionTests {
    private static let clientDataHash = SHA256.hash(Array("client data".utf8))

    /// The key of the attestation `ios-14.4-attestation`, as its publisher names it.
    private func publishedKey() throws -> P256PublicKey {
        try P256PublicKey(
            spki: try #require(
                Base64.decode(
                    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEiMA0oZCqfbxaBhUBxlQoA5QlghmLPxzFRnPKO5rSC0FSgmelT1/boEafr7Rr"
                        + "tpkKOWvwT5SknUMgyBx6skCjmA==")))
    }

    private func verifyPublished(_ assertion: [UInt8], clientData: String = "wurzelpfropf") throws -> UInt32 {
        try AppAssertion.verify(
            assertion, key: try publishedKey(), clientDataHash: SHA256.hash(Array(clientData.utf8)),
            app: "6MURL8TA57.de.vincent-haupert.apple-appattest-poc", after: 0)
    }

    @Test func publishedAssertionIsAccepted() throws {
        #expect(try verifyPublished(try Vectors.base64("ios-14.4-assertion")) == 1)
    }

    @Test func changedAndTruncatedAssertionIsRefused() throws {
        let assertion = try Vectors.base64("ios-14.4-assertion")
        for at in assertion.indices {
            for bit in 0..<8 {
                var changed = assertion
                changed[at] ^= 1 << UInt8(bit)
                #expect(throws: AttestationFault.self, "byte \(at)") { try verifyPublished(changed) }
            }
            #expect(throws: AttestationFault.malformed) { try verifyPublished(Array(assertion.prefix(at))) }
        }
        #expect(throws: AttestationFault.malformed) { try verifyPublished(assertion + [0]) }
        #expect(throws: AttestationFault.signature) { try verifyPublished(assertion, clientData: "wurzelpfropF") }
        #expect(throws: AttestationFault.size) {
            try verifyPublished([UInt8](repeating: 0, count: AppAssertion.maxBytes + 1))
        }
    }

    private func verify(
        _ assertion: [UInt8], by apple: SimulatedIPhone, key: P256PublicKey? = nil, app: String = SimulatedIPhone.app,
        after counter: UInt32
    ) throws -> UInt32 {
        try AppAssertion.verify(
            assertion, key: key ?? apple.key.publicKey, clientDataHash: Self.clientDataHash, app: app, after: counter)
    }

    @Test func counterMustGrow() throws {
        let apple = try SimulatedIPhone()
        let assertion = try apple.assertion(Self.clientDataHash, counter: 7)
        #expect(try verify(assertion, by: apple, after: 6) == 7)
        #expect(throws: AttestationFault.counter) { try verify(assertion, by: apple, after: 7) }
        #expect(throws: AttestationFault.counter) { try verify(assertion, by: apple, after: 8) }
        let last = try apple.assertion(Self.clientDataHash, counter: .max)
        #expect(try verify(last, by: apple, after: .max - 1) == .max)
    }

    @Test func assertionIsForOneKeyAndApp() throws {
        let apple = try SimulatedIPhone()
        let assertion = try apple.assertion(Self.clientDataHash, counter: 1)
        let other = try P256PrivateKey.generate().publicKey
        #expect(throws: AttestationFault.signature) { try verify(assertion, by: apple, key: other, after: 0) }
        #expect(throws: AttestationFault.app) { try verify(assertion, by: apple, app: "TEAM123456.other", after: 0) }
    }

    @Test func extensionsAreCoveredBySignature() throws {
        let apple = try SimulatedIPhone()
        let extensions = CBORWriter.map([("apple_bundle_version_01", CBORWriter.text("3"))])
        let assertion = try apple.assertion(Self.clientDataHash, counter: 1, extensions: extensions)
        #expect(try verify(assertion, by: apple, after: 0) == 1)
        let malformed = try apple.assertion(Self.clientDataHash, counter: 1, extensions: [0xff])
        #expect(throws: AttestationFault.malformed) { try verify(malformed, by: apple, after: 0) }
    }
}
