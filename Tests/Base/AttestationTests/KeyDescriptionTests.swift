import Attestation
import Bytes
import Crypto
import SimulatedAttestation
import Testing

@Suite struct KeyDescriptionTests {
    private func description(_ vector: String) throws -> KeyDescription {
        let values = try Vectors.chain(vector)[0].extensions(KeyDescription.identifier)
        #expect(values.count == 1)
        return try KeyDescription(values[0])
    }

    @Test func descriptionOfKeyMintIsRead() throws {
        // The expected values are those of `TEE_EC_2026_ROOT.json` in android/keyattestation.
        let description = try description("tegu-36")
        #expect(description.version == 400)
        #expect(description.attestationLevel == .trustedEnvironment)
        #expect(description.keyLevel == .trustedEnvironment)
        #expect(Base64.encode(description.challenge) == "NjQxN2Y5MmMtZGFlZi00Y2MxLTg4MjgtNWJiMzkzMzhmZmQ1")
        let software = description.softwareEnforced
        #expect(software.application?.packages == [.init(name: "com.google.android.attestation", version: 0)])
        #expect(
            software.application?.signatureDigests.map { Base64.encode($0) }
                == ["EDk47kU35Z6O55L2VFBPuDRvxrNG0LvEQV/DOfz8jsE="])
        #expect(software.rootOfTrust == nil)
        let hardware = description.hardwareEnforced
        #expect(hardware.purposes == [2, 3])
        #expect(hardware.algorithm == 3 && hardware.keySize == 256 && hardware.curve == 1)
        #expect(hardware.needsNoAuthentication && hardware.userAuthenticationType == nil)
        #expect(hardware.origin == 0)
        let rootOfTrust = try #require(hardware.rootOfTrust)
        #expect(rootOfTrust.isLocked)
        #expect(rootOfTrust.state == .verified)
        #expect(hardware.osVersion == 160_000 && hardware.osPatchLevel == 202_602)
    }

    @Test func descriptionOfKeymasterIsRead() throws {
        // The expected values are those of `TEE_EC_NONE.json` for the same device.
        let description = try description("blueline-28")
        #expect(description.version == 3)
        #expect(description.challenge == Array("challenge".utf8))
        #expect(description.hardwareEnforced.purposes == [2])
        #expect(description.hardwareEnforced.rootOfTrust?.isLocked == false)
        #expect(description.hardwareEnforced.rootOfTrust?.state == .unverified)
    }

    @Test func descriptionByStrongBoxIsRead() throws {
        let description = try description("caiman-36-strongbox")
        #expect(description.version == 300)
        #expect(description.attestationLevel == .strongBox && description.keyLevel == .strongBox)
        #expect(description.hardwareEnforced.osPatchLevel == 202_511)
    }

    @Test func descriptionBySoftwareIsRead() throws {
        let description = try description("marlin-29-software")
        #expect(description.version == 2)
        #expect(description.attestationLevel == .software && description.keyLevel == .trustedEnvironment)
        #expect(description.hardwareEnforced.rootOfTrust == nil)
    }

    @Test func severalPackagesWithOneUserIDAreRead() throws {
        let application = try #require(try description("sample-27").softwareEnforced.application)
        #expect(application.packages.count == 13)
        #expect(application.packages.first == .init(name: "android", version: 29))
        #expect(application.packages.last == .init(name: "com.android.providers.settings", version: 29))
        #expect(application.signatureDigests.count == 1)
    }

    @Test func tagsInAnotherOrderAreRead() throws {
        #expect(try description("unordered-tags").hardwareEnforced.rootOfTrust?.state == .unverified)
    }

    @Test func booleanThatIsNotDERIsRefused() throws {
        let values = try Vectors.chain("malformed-boolean")[0].extensions(KeyDescription.identifier)
        #expect(throws: DERError.content) { try KeyDescription(values[0]) }
    }

    @Test func userAuthenticationIsRead() throws {
        var android = SimulatedAndroid()
        android.needsNoAuthentication = false
        android.authenticationTimeout = 30
        let hardware = try KeyDescription(android.description([])).hardwareEnforced
        #expect(!hardware.needsNoAuthentication)
        #expect(hardware.userAuthenticationType == 2)
        #expect(hardware.authenticationTimeout == 30)
    }

    @Test(arguments: [1, 2, 3, 4, 100, 200, 300, 400]) func knownVersionIsRead(version: Int) throws {
        var android = SimulatedAndroid()
        android.version = version
        #expect(try KeyDescription(android.description([])).version == Int64(version))
    }

    @Test(arguments: [0, 5, 99, 500]) func unknownVersionIsRefused(version: Int) throws {
        var android = SimulatedAndroid()
        android.version = version
        let bytes = android.description([])
        #expect(throws: DERError.content) { try KeyDescription(bytes) }
    }

    @Test func changedAndTruncatedDescriptionsAreReadOrRefused() throws {
        let bytes = try Vectors.chain("tegu-36")[0].extensions(KeyDescription.identifier)[0]
        var refused = 0
        for at in bytes.indices {
            for change: UInt8 in [0x01, 0x20, 0x80, 0xff] {
                var changed = bytes
                changed[at] ^= change
                if (try? KeyDescription(changed)) == nil { refused += 1 }
            }
            #expect(throws: DERError.self) { try KeyDescription(Array(bytes[..<at])) }
        }
        #expect(refused > bytes.count)
        #expect(throws: DERError.trailingBytes) { try KeyDescription(bytes + [0]) }
    }

    /// A description whose hardware enforces `list`.
    private func description(_ list: [UInt8]) throws -> KeyDescription {
        try KeyDescription(
            DERWriter.sequence(
                DERWriter.integer(3), DERWriter.enumerated(1), DERWriter.integer(3), DERWriter.enumerated(1),
                DERWriter.octets([1]), DERWriter.octets([]), DERWriter.sequence(), DERWriter.sequence(list)))
    }

    @Test("Values that are not used can have any form")
    func otherFormsOfUnusedValuesAreRead() throws {
        for tag in [4, 5, 303, 506, 701, 703, 718, 719, 9999] {
            let list = DERWriter.tagged(tag, DERWriter.octets([1])) + DERWriter.tagged(702, DERWriter.integer(0))
            #expect(try description(list).hardwareEnforced.origin == 0)
        }
        for rest in [[], DERWriter.null, DERWriter.octets([1]) + DERWriter.octets([2])] {
            let root = DERWriter.sequence(DERWriter.null, DERWriter.boolean(true), DERWriter.enumerated(0), rest)
            let hardware = try description(DERWriter.tagged(704, root)).hardwareEnforced
            #expect(hardware.rootOfTrust?.isLocked == true && hardware.rootOfTrust?.state == .verified)
        }
    }

    @Test func tagThatOccursTwiceIsRefused() throws {
        let list = DERWriter.tagged(702, DERWriter.integer(0)) + DERWriter.tagged(702, DERWriter.integer(0))
        #expect(throws: DERError.content) { try description(list) }
    }
}
