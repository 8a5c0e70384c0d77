import Attestation
import Bytes
import Crypto
import SimulatedAttestation
import Testing
import World

@Suite struct AndroidAttestationTests {
    private static let challenge = SHA256.hash(Array("challenge".utf8))
    private static let google = AndroidApp(
        package: "com.google.android.attestation",
        signatureDigests: [Hex.decode("103938ee4537e59e8ee792f654504fb8346fc6b346d0bbc4415fc339fcfc8ec1") ?? []])

    private let roots: [Certificate]

    init() throws { roots = try AttestationRoots.pinned().android }

    /// Verifies a published chain for its own key.
    private func verifyPublished(
        _ chain: [[UInt8]], key: P256PublicKey, challenge: [UInt8], app: AndroidApp = google, at time: String,
        revocationList: RevocationList? = nil
    ) throws -> AttestedDevice {
        let now = try Vectors.time(time)
        return try AndroidAttestation.verify(
            chain, key: key, challenge: challenge, apps: [app], roots: roots, revocationList: revocationList, at: now)
    }

    private func chain(_ name: String) throws -> (der: [[UInt8]], key: P256PublicKey) {
        let chain = try Vectors.chain(name)
        return (chain.map(\.der), try chain[0].publicKey())
    }

    @Test func publishedChainUnderTheRootOf2026IsAccepted() throws {
        let (der, key) = try chain("tegu-36")
        let device = try verifyPublished(
            der, key: key, challenge: Array("6417f92c-daef-4cc1-8828-5bb39338ffd5".utf8), at: "2026-03-01T00:00:00Z")
        #expect(device.platform == .android && device.hardware == .trustedEnvironment)
        #expect(device.boot == .verified && device.isLocked == true)
        #expect(device.osVersion == DottedVersion("16") && device.patchLevel == 202_602)
        #expect(device.app == "com.google.android.attestation" && device.appVersion == "0")
        #expect(device.userAuthentication == AttestedDevice.UserAuthentication.none)
        #expect(device.environment == nil && device.appAttest == nil && device.revocationList == nil)
        // The root's key, as `openssl` names it for Google's `roots.json`.
        #expect(Hex.encode(device.root) == "3ee44512a1af2beb39c889490c60ea3f82e43f5d5a5532f5ab9419f676cd07ec")
    }

    @Test func publishedChainByStrongBoxUnderAnEarlierIssueOfTheRootIsAccepted() throws {
        let (der, key) = try chain("caiman-36-strongbox")
        let challenge = Array("7ccac1ea-4845-482e-858d-f6fa9aa8c295".utf8)
        let device = try verifyPublished(der, key: key, challenge: challenge, at: "2025-09-27T00:00:00Z")
        #expect(device.hardware == .strongBox)
        #expect(Hex.encode(device.root) == "feb2ea7551ee316ed4bb443c8293b884dbfdea40b603ee3e4f4a897e4580fbae")
        // The same chain without the root that the phone added.
        #expect(
            try verifyPublished(der.dropLast(), key: key, challenge: challenge, at: "2025-09-27T00:00:00Z") == device)
        #expect(throws: AttestationFault.validity) {
            try verifyPublished(der, key: key, challenge: challenge, at: "2025-10-04T00:00:00Z")
        }
        #expect(throws: AttestationFault.validity) {
            try verifyPublished(der, key: key, challenge: challenge, at: "2025-09-24T00:00:00Z")
        }
    }

    @Test func publishedChainsFromTheFactoryAreAcceptedAfterTheyExpired() throws {
        let (der, key) = try chain("xperia-33")
        let store = AndroidApp(
            package: "com.android.vending",
            signatureDigests: [try #require(Base64.decode("8P1sW0EPJcslw7UzRsiXL64w+O50Ed+RBICtay1g24M="))])
        let challenge = try #require(Base64.decode("Pq/k1d0AkN5aQrQytCSBr1zimWNlayWExZpJLeFtAMk="))
        let device = try verifyPublished(der, key: key, challenge: challenge, app: store, at: "2026-10-01T00:00:00Z")
        #expect(device.osVersion == DottedVersion("13") && device.patchLevel == 202_307)
        #expect(throws: AttestationFault.validity) {
            try verifyPublished(der, key: key, challenge: challenge, app: store, at: "2016-05-26T17:01:50Z")
        }
        let (old, oldKey) = try chain("blueline-28")
        let collector = AndroidApp(
            package: "com.google.wireless.android.security.attestationverifier.collector",
            signatureDigests: Self.google.signatureDigests)
        let unlocked = try verifyPublished(
            old, key: oldKey, challenge: Array("challenge".utf8), app: collector, at: "2030-01-01T00:00:00Z")
        #expect(unlocked.boot == .unverified && unlocked.isLocked == false)
    }

    @Test func chainBySoftwareLeadsToNoTrustedRoot() throws {
        let (der, key) = try chain("marlin-29-software")
        #expect(throws: AttestationFault.root) {
            try verifyPublished(der, key: key, challenge: Array("challenge".utf8), at: "2020-01-01T00:00:00Z")
        }
    }

    @Test func faultyPublishedChainsAreRefused() throws {
        for (name, fault) in [("unordered-tags", AttestationFault.chain), ("malformed-boolean", .statement)] {
            let (der, key) = try chain(name)
            #expect(throws: fault) {
                try verifyPublished(der, key: key, challenge: Array("challenge".utf8), at: "2024-01-01T00:00:00Z")
            }
        }
    }

    @Test("No byte of a chain can be changed, but in the root that the phone added, which is not used")
    func changedChainIsRefused() throws {
        let (der, key) = try chain("tegu-36")
        let challenge = Array("6417f92c-daef-4cc1-8828-5bb39338ffd5".utf8)
        for index in der.indices.dropLast() {
            for at in der[index].indices {
                var changed = der
                changed[index][at] ^= 1 << UInt8(at % 8)
                #expect(throws: AttestationFault.self, "certificate \(index), byte \(at)") {
                    try verifyPublished(changed, key: key, challenge: challenge, at: "2026-03-01T00:00:00Z")
                }
            }
            var shortened = der
            shortened.remove(at: index)
            #expect(throws: AttestationFault.self) {
                try verifyPublished(shortened, key: key, challenge: challenge, at: "2026-03-01T00:00:00Z")
            }
            var truncated = der
            truncated[index].removeLast()
            #expect(throws: AttestationFault.malformed) {
                try verifyPublished(truncated, key: key, challenge: challenge, at: "2026-03-01T00:00:00Z")
            }
        }
    }

    @Test func largeChainsAreRefusedUnread() throws {
        let key = try P256PrivateKey.generate().publicKey
        for chain in [
            [[UInt8]](repeating: [0x30], count: AndroidAttestation.maxCertificates + 1),
            [[UInt8](repeating: 0, count: AndroidAttestation.maxCertificateBytes + 1)],
        ] {
            #expect(throws: AttestationFault.size) {
                try verifyPublished(chain, key: key, challenge: [], at: "2026-03-01T00:00:00Z")
            }
        }
        #expect(throws: AttestationFault.malformed) {
            try verifyPublished([], key: key, challenge: [], at: "2026-03-01T00:00:00Z")
        }
    }

    // The tests' own root, for what no published chain has.

    private func verify(
        _ chain: [[UInt8]], by authorities: SimulatedAuthorities, key: P256PublicKey, challenge: [UInt8] = challenge,
        revocationList: RevocationList? = nil, at now: Timestamp = SimulatedCertificate.start
    ) throws -> AttestedDevice {
        try AndroidAttestation.verify(
            chain, key: key, challenge: challenge, apps: [SimulatedAndroid.app], roots: authorities.roots,
            revocationList: revocationList, at: now)
    }

    @Test func chainUnderOurOwnRootIsAccepted() throws {
        let (authorities, key) = (try SimulatedAuthorities(), try P256PrivateKey.generate())
        let chain = try authorities.chain(SimulatedAndroid(), key: key, challenge: Self.challenge)
        let device = try verify(chain, by: authorities, key: key.publicKey)
        #expect(device.osVersion == DottedVersion("15.0.1") && device.appVersion == "42")
    }

    @Test func eachPropertyOfTheKeyIsChecked() throws {
        let (authorities, key) = (try SimulatedAuthorities(), try P256PrivateKey.generate())
        let cases: [(AttestationFault, (inout SimulatedAndroid) -> Void)] = [
            (.securityLevel, { $0.attestationLevel = 0 }), (.securityLevel, { $0.keyLevel = 0 }),
            (.origin, { $0.origin = 2 }), (.origin, { $0.origin = nil }), (.origin, { $0.isStatedBySoftware = true }),
            (.purpose, { $0.purposes = [] }), (.purpose, { $0.purposes = [3] }), (.purpose, { $0.purposes = [2, 7] }),
            (.purpose, { $0.algorithm = 1 }), (.purpose, { $0.isForAllApps = true }),
            (.app, { $0.package = "com.example.another" }),
            (.app, { $0.signature = [UInt8](repeating: 8, count: 32) }), (.statement, { $0.version = 5 }),
            (.statement, { $0.bootState = 4 }),
        ]
        for (fault, change) in cases {
            var android = SimulatedAndroid()
            change(&android)
            let chain = try authorities.chain(android, key: key, challenge: Self.challenge)
            #expect(throws: fault) { try verify(chain, by: authorities, key: key.publicKey) }
        }
    }

    @Test func chainIsForOneChallengeAndKey() throws {
        let (authorities, key) = (try SimulatedAuthorities(), try P256PrivateKey.generate())
        let chain = try authorities.chain(SimulatedAndroid(), key: key, challenge: Self.challenge)
        #expect(throws: AttestationFault.challenge) {
            try verify(chain, by: authorities, key: key.publicKey, challenge: SHA256.hash([]))
        }
        #expect(throws: AttestationFault.challenge) {
            try verify(chain, by: authorities, key: key.publicKey, challenge: [])
        }
        let other = try P256PrivateKey.generate().publicKey
        #expect(throws: AttestationFault.key) { try verify(chain, by: authorities, key: other) }
    }

    @Test func forgedChainsAreRefused() throws {
        let (authorities, forged) = (try SimulatedAuthorities(), try SimulatedAuthorities())
        let key = try P256PrivateKey.generate()
        let chain = try forged.chain(SimulatedAndroid(), key: key, challenge: Self.challenge)
        // The forger's root has the same name, but another key.
        #expect(throws: AttestationFault.chain) { try verify(chain, by: authorities, key: key.publicKey) }
        let genuine = try authorities.chain(SimulatedAndroid(), key: key, challenge: Self.challenge)
        // A forged leaf above genuine authorities.
        #expect(throws: AttestationFault.chain) {
            try verify([chain[0]] + genuine.dropFirst(), by: authorities, key: key.publicKey)
        }
        let other = try SimulatedAuthorities("another root")
        #expect(throws: AttestationFault.root) { try verify(genuine, by: other, key: key.publicKey) }
        // A certificate that is not on the path.
        #expect(throws: AttestationFault.chain) {
            try verify(genuine.dropLast() + [forged.phone.certificate.der], by: authorities, key: key.publicKey)
        }
    }

    @Test func chainThatAnAttestedKeyExtendedIsRefused() throws {
        let authorities = try SimulatedAuthorities()
        let attested = try P256PrivateKey.generate()
        let leaf = try authorities.leaf(key: attested, description: SimulatedAndroid().description(Self.challenge))
        let above = [authorities.phone, authorities.intermediate].map(\.certificate.der)
        // The attacker signs a key in software with an attested one, and describes it as genuine.
        let software = try P256PrivateKey.generate()
        let description = (KeyDescription.identifier, SimulatedAndroid().description(Self.challenge))
        let fake = try leaf.issue(
            SimulatedCertificate.name("fake"), key: software, isAuthority: false, extensions: [description])
        let chain = [fake.certificate.der, leaf.certificate.der] + above
        #expect(throws: AttestationFault.extendedChain) {
            try verify(chain, by: authorities, key: software.publicKey)
        }
        let plain = try leaf.issue(SimulatedCertificate.name("fake"), key: software, isAuthority: false)
        #expect(throws: AttestationFault.extendedChain) {
            try verify([plain.certificate.der, leaf.certificate.der] + above, by: authorities, key: software.publicKey)
        }
    }

    /// The chain of a key in software, which `issuer` signed as if it were an authority, with the
    /// description of a genuine key.
    private func forgedChain(
        _ issuer: SimulatedCertificate, above: [SimulatedCertificate], key: P256PrivateKey
    ) throws -> [[UInt8]] {
        let description = (KeyDescription.identifier, SimulatedAndroid().description(Self.challenge))
        let fake = try issuer.issue(
            SimulatedCertificate.name("fake"), key: key, isAuthority: false, extensions: [description])
        return ([fake, issuer] + above).map(\.certificate.der)
    }

    @Test func keyOfAVirtualMachineIsNoAuthority() throws {
        let (authorities, software) = (try SimulatedAuthorities(), try P256PrivateKey.generate())
        // The certificate of a protected virtual machine: no key description, no mark, and the
        // program in the machine owns the private key.
        let statement = DERWriter.sequence(DERWriter.octets([1]), DERWriter.boolean(true), DERWriter.sequence())
        let extensions = [(identifier: "1.3.6.1.4.1.11129.2.1.29.1", value: statement)]
        let name = SimulatedCertificate.name("Android Protected Virtual Machine Key")
        let fetched = try authorities.phone.issue(name, isAuthority: false, extensions: extensions)
        let chain = try forgedChain(fetched, above: [authorities.phone, authorities.intermediate], key: software)
        #expect(throws: AttestationFault.chain) { try verify(chain, by: authorities, key: software.publicKey) }
        // The same below the authority of a factory.
        let factory = try authorities.root.issue(SimulatedCertificate.name("9a", attribute: "2.5.4.5"))
        let below = try factory.issue(name, isAuthority: false, extensions: extensions)
        let other = try forgedChain(below, above: [factory], key: software)
        #expect(throws: AttestationFault.chain) { try verify(other, by: authorities, key: software.publicKey) }
    }

    @Test func onlyAuthoritiesOfAFactoryMayLackTheMarks() throws {
        let (root, key) = (try SimulatedCertificate.root("own root"), try P256PrivateKey.generate())
        func name(_ text: String, isFromFactory: Bool) -> [UInt8] {
            SimulatedCertificate.name(text, attribute: isFromFactory ? "2.5.4.5" : "2.5.4.3")
        }
        for (upper, lower) in [(true, true), (true, false), (false, true), (false, false)] {
            let authority = try root.issue(name("87f4514475ba0a2b", isFromFactory: upper))
            let phone = try authority.issue(name("3e7fb6a1ee4bd568", isFromFactory: lower), isAuthority: false)
            let chain = try forgedChain(phone, above: [authority], key: key)
            let verified = Result {
                try AndroidAttestation.verify(
                    chain, key: key.publicKey, challenge: Self.challenge, apps: [SimulatedAndroid.app],
                    roots: [root.certificate], revocationList: nil, at: SimulatedCertificate.start)
            }
            if upper && lower {
                #expect(try verified.get().app == "com.example.app")
            } else {
                #expect(throws: AttestationFault.chain) { try verified.get() }
            }
        }
    }

    @Test func attestedKeyThatIsNamedLikeAFactoryIsNoAuthority() throws {
        let authorities = try SimulatedAuthorities()
        let (attested, software) = (try P256PrivateKey.generate(), try P256PrivateKey.generate())
        let factory = try authorities.root.issue(SimulatedCertificate.name("9a", attribute: "2.5.4.5"))
        // An app chooses the name in the certificate of its key, and can have it marked.
        for isMarked in [false, true] {
            let leaf = try factory.issue(
                SimulatedCertificate.name("9b", attribute: "2.5.4.5"), key: attested, isAuthority: isMarked,
                extensions: [(KeyDescription.identifier, SimulatedAndroid().description([1]))])
            let chain = try forgedChain(leaf, above: [factory], key: software)
            #expect(throws: AttestationFault.extendedChain) {
                try verify(chain, by: authorities, key: software.publicKey)
            }
        }
    }

    @Test func leafHasExactlyOneDescription() throws {
        let (authorities, key) = (try SimulatedAuthorities(), try P256PrivateKey.generate())
        let description = (KeyDescription.identifier, SimulatedAndroid().description(Self.challenge))
        for extensions in [[], [description, description]] {
            let leaf = try authorities.phone.issue(
                SimulatedCertificate.name("leaf"), key: key, isAuthority: false, extensions: extensions)
            let chain = [leaf, authorities.phone, authorities.intermediate].map(\.certificate.der)
            #expect(throws: AttestationFault.statement) { try verify(chain, by: authorities, key: key.publicKey) }
        }
    }

    @Test func fetchedChainExpiresAndFactoryChainDoesNot() throws {
        let key = try P256PrivateKey.generate()
        let root = try SimulatedCertificate.root("own root")
        for (attribute, fault) in [("2.5.4.3", AttestationFault.validity), ("2.5.4.5", nil)] {
            let phone = try root.issue(SimulatedCertificate.name("f92009e853b6b045", attribute: attribute))
            let leaf = try phone.issue(
                SimulatedCertificate.name("leaf"), key: key, isAuthority: false,
                extensions: [(KeyDescription.identifier, SimulatedAndroid().description(Self.challenge))])
            let later = SimulatedCertificate.start + .seconds(31 * 86_400)
            let verified = Result {
                try AndroidAttestation.verify(
                    [leaf, phone].map(\.certificate.der), key: key.publicKey, challenge: Self.challenge,
                    apps: [SimulatedAndroid.app], roots: [root.certificate], revocationList: nil, at: later)
            }
            switch fault {
            case let fault?: #expect(throws: fault) { try verified.get() }
            case nil: #expect(try verified.get().app == "com.example.app")
            }
        }
    }

    @Test func revokedCertificatesAreRefused() throws {
        let (authorities, key) = (try SimulatedAuthorities(), try P256PrivateKey.generate())
        let chain = try authorities.chain(SimulatedAndroid(), key: key, challenge: Self.challenge)
        for (serial, status, isRevoked) in [
            ("abc", "REVOKED", true), ("0ABC", "REVOKED", true), ("def", "SUSPENDED", true), ("abd", "REVOKED", false),
        ] {
            let list = try RevocationList(
                json: Array(#"{"entries":{"\#(serial)":{"status":"\#(status)","reason":"KEY_COMPROMISE"}}}"#.utf8),
                fetchedAt: SimulatedCertificate.start)
            let verified = Result { try verify(chain, by: authorities, key: key.publicKey, revocationList: list) }
            if isRevoked {
                #expect(throws: AttestationFault.revoked) { try verified.get() }
            } else {
                #expect(try verified.get().revocationList == SimulatedCertificate.start)
            }
        }
    }
}
