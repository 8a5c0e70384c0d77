import Attestation
import Bytes
import Crypto
import SimulatedAttestation
import Testing
import World

@Suite struct AppAttestationTests {
    private static let clientDataHash = SHA256.hash(Array("client data".utf8))

    private let roots: [Certificate]

    init() throws { roots = try AttestationRoots.pinned().apple }

    /// Verifies Apple's sample, for which Apple passed the challenge itself as `clientDataHash`.
    private func verifyGuide(
        _ object: [UInt8], keyID: String = "bSrEhF8TIzIvWSPwvZ0i2+UOBre4ASH84rK15m6emNY=",
        challenge: String = "test_server_challenge", app: String = "0352187391.com.apple.example_app_attest",
        at time: String = "2024-04-18T00:00:00Z"
    ) throws -> AttestedDevice {
        let (id, now) = (try #require(Base64.decode(keyID)), try Vectors.time(time))
        return try AppAttestation.verify(
            object, keyID: id, clientDataHash: Array(challenge.utf8), apps: ["TEAM.other", app], roots: roots,
            at: now)
    }

    @Test func sampleOfTheGuideIsAccepted() throws {
        let device = try verifyGuide(try Vectors.base64("apple-2024"))
        #expect(device.platform == .ios && device.hardware == .secureEnclave)
        #expect(device.app == "0352187391.com.apple.example_app_attest")
        #expect(device.environment == .production)
        #expect(device.osVersion == DottedVersion("18.0"))
        #expect(device.appVersion == nil && device.boot == nil && device.isLocked == nil && device.patchLevel == nil)
        let attested = try #require(device.appAttest)
        #expect(
            Base64.encode(attested.key.x963)
                == "BIwuDKtvkiOXDn9atukv16TW1iGmDlSGRL8Zdk7x74U2EfbCtrtTsrui00aBl+S+qyw2ysDk4k9B81EyyUdeXCQ=")
        #expect(attested.receipt.starts(with: [0x30, 0x80, 0x06, 0x09]) && attested.receipt.count == 3877)
    }

    @Test func sampleWithExtensionsIsAccepted() throws {
        let device = try verifyGuide(
            try Vectors.base64("apple-2026"), keyID: "zgSY9YSD+7TaDXssY6WlOPVS1K3Lmk+pFhlcSWE+ZV0=",
            challenge: "example_server_challenge", app: "1234567890.com.example.myapp", at: "2026-04-21T18:13:12Z")
        #expect(device.environment == .production)
        #expect(device.appVersion == "1")
        #expect(device.osVersion == DottedVersion("27.0"))
    }

    @Test func sampleForDevelopmentIsAccepted() throws {
        let keyID = try #require(Base64.decode("YmbJO4x5nEHUvncp9zdWuVZjNBEMgJn3cdSToAXQe3M="))
        let device = try AppAttestation.verify(
            try Vectors.base64("ios-14.4-attestation"), keyID: keyID,
            clientDataHash: SHA256.hash(Array("wurzelpfropf".utf8)),
            apps: ["6MURL8TA57.de.vincent-haupert.apple-appattest-poc"], roots: roots,
            at: try Vectors.time("2021-01-23T12:13:33Z"))
        #expect(device.environment == .development)
    }

    @Test func sampleIsRefusedForAnythingElse() throws {
        let object = try Vectors.base64("apple-2024")
        #expect(throws: AttestationFault.validity) { try verifyGuide(object, at: "2024-04-17T16:14:52Z") }
        #expect(throws: AttestationFault.validity) { try verifyGuide(object, at: "2024-04-20T16:14:54Z") }
        #expect(throws: AttestationFault.challenge) { try verifyGuide(object, challenge: "test_server_challengE") }
        #expect(throws: AttestationFault.app) { try verifyGuide(object, app: "0352187391.com.apple.other") }
        #expect(throws: AttestationFault.key) {
            try verifyGuide(object, keyID: "zgSY9YSD+7TaDXssY6WlOPVS1K3Lmk+pFhlcSWE+ZV0=")
        }
        let android = try AttestationRoots.pinned().android
        let (keyID, now) = (
            try #require(Base64.decode("bSrEhF8TIzIvWSPwvZ0i2+UOBre4ASH84rK15m6emNY=")),
            try Vectors.time("2024-04-18T00:00:00Z")
        )
        #expect(throws: AttestationFault.root) {
            try AppAttestation.verify(
                object, keyID: keyID, clientDataHash: Array("test_server_challenge".utf8),
                apps: ["0352187391.com.apple.example_app_attest"], roots: android, at: now)
        }
    }

    @Test("No byte of the sample can be changed, but in the receipt, which nothing covers")
    func changedSampleIsRefused() throws {
        let object = try Vectors.base64("apple-2024")
        let receipt = try #require(try verifyGuide(object).appAttest).receipt
        let start = try #require(object.indices.first { object[$0...].starts(with: receipt) })
        let covered = object.indices.filter { !(start..<start + receipt.count).contains($0) }
        for at in covered {
            var changed = object
            changed[at] ^= 1 << UInt8(at % 8)
            #expect(throws: AttestationFault.self, "byte \(at)") { try verifyGuide(changed) }
        }
        for at in stride(from: start, to: start + receipt.count, by: 97) {
            var changed = object
            changed[at] ^= 0xff
            #expect(try verifyGuide(changed).appAttest?.receipt != receipt)
        }
    }

    @Test func truncatedAndExtendedSampleIsRefused() throws {
        let object = try Vectors.base64("apple-2024")
        for count in object.indices {
            #expect(throws: AttestationFault.malformed) { try verifyGuide(Array(object.prefix(count))) }
        }
        #expect(throws: AttestationFault.malformed) { try verifyGuide(object + [0]) }
        #expect(throws: AttestationFault.size) {
            try verifyGuide([UInt8](repeating: 0x81, count: AppAttestation.maxBytes + 1))
        }
    }

    // The tests' own root, for what no published sample has.

    private func verify(_ apple: SimulatedIPhone, clientDataHash: [UInt8] = clientDataHash) throws -> AttestedDevice {
        try AppAttestation.verify(
            try apple.object(Self.clientDataHash), keyID: apple.keyID, clientDataHash: clientDataHash,
            apps: [SimulatedIPhone.app], roots: [apple.root.certificate], at: SimulatedCertificate.start)
    }

    private func changed(_ change: (inout SimulatedIPhone) throws -> Void) throws -> SimulatedIPhone {
        var apple = try SimulatedIPhone()
        try change(&apple)
        return apple
    }

    @Test func objectUnderOurOwnRootIsAccepted() throws {
        let apple = try SimulatedIPhone()
        let device = try verify(apple)
        #expect(device.root == apple.root.certificate.spkiThumbprint)
        #expect(device.appAttest?.key == apple.key.publicKey)
        #expect(device.appAttest?.receipt == [1, 2, 3])
        #expect(device.osVersion == nil)
    }

    @Test func eachStepRefusesItsFault() throws {
        let cases: [(AttestationFault, (inout SimulatedIPhone) throws -> Void)] = [
            (.format, { $0.format = "packed" }),
            (
                .validity,
                { $0.validity = (SimulatedCertificate.start + .seconds(1), SimulatedCertificate.start + .seconds(9)) }
            ),
            (
                .validity,
                { $0.validity = (SimulatedCertificate.start - .seconds(9), SimulatedCertificate.start - .seconds(1)) }
            ),
            (.statement, { $0.hasNonce = false }),
            (.statement, { $0.leafExtensions = [("1.2.840.113635.100.8.2", DERWriter.sequence())] }),
            (
                .statement,
                {
                    $0.hasNonce = false
                    $0.leafExtensions = [("1.2.840.113635.100.8.2", DERWriter.octets([1]))]
                }
            ),
            (.app, { $0.app = "TEAM123456.com.example.another" }), (.counter, { $0.counter = 1 }),
            (.environment, { $0.aaguid = [UInt8](repeating: 0, count: 16) }),
            (.key, { $0.credentialID = [UInt8](repeating: 1, count: 32) }), (.key, { $0.credentialID = [] }),
            (.key, { $0.coseKey = try P256PrivateKey.generate().publicKey }),
            (.malformed, { $0.extensions = [0x01] }), (.malformed, { $0.extensions = [0xa0, 0xa0] }),
            (.malformed, { $0.extensions = CBORWriter.map([("apple_bundle_version_01", [0x01])]) }),
        ]
        for (fault, change) in cases {
            let apple = try changed(change)
            #expect(throws: fault) { try verify(apple) }
        }
        let apple = try SimulatedIPhone()
        #expect(throws: AttestationFault.challenge) { try verify(apple, clientDataHash: SHA256.hash([1])) }
    }

    @Test func environmentForDevelopmentIsReported() throws {
        #expect(try verify(try changed { $0.aaguid = Array("appattestdevelop".utf8) }).environment == .development)
    }

    @Test func unknownExtensionsAreIgnored() throws {
        let apple = try changed {
            $0.extensions = CBORWriter.map([
                ("apple_new_02", CBORWriter.array([])), ("apple_validation_category_01", [0x01]),
                ("apple_bundle_version_01", CBORWriter.text("2.1")),
            ])
        }
        #expect(try verify(apple).appVersion == "2.1")
    }

    @Test func forgedChainsAreRefused() throws {
        let apple = try SimulatedIPhone()
        let object = try apple.object(Self.clientDataHash)
        let sameName = try SimulatedCertificate.root("own root")
        let other = try SimulatedCertificate.root("another root")
        for (root, fault) in [(sameName, AttestationFault.chain), (other, .root)] {
            #expect(throws: fault) {
                try AppAttestation.verify(
                    object, keyID: apple.keyID, clientDataHash: Self.clientDataHash, apps: [SimulatedIPhone.app],
                    roots: [root.certificate], at: SimulatedCertificate.start)
            }
        }
        #expect(throws: AttestationFault.root) {
            try AppAttestation.verify(
                object, keyID: apple.keyID, clientDataHash: Self.clientDataHash, apps: [SimulatedIPhone.app], roots: [],
                at: SimulatedCertificate.start)
        }
    }
}
