import Bytes
import Crypto
import World

/// An app that may enrol, as Android attests it.
public struct AndroidApp: Sendable, Equatable {
    public let package: String
    /// SHA-256 of the certificates that may have signed the app.
    public let signatureDigests: [[UInt8]]

    public init(package: String, signatureDigests: [[UInt8]]) {
        self.package = package
        self.signatureDigests = signatureDigests
    }
}

/// Verifies certificate chains of Android's Key Attestation.
///
/// The chain proves that the enrolment key was generated in the phone's secure hardware, for one
/// app, and in which state the phone had started. The statement is the extension `KeyDescription`
/// of the leaf certificate, which is about the leaf's own key.
///
/// Attack: everybody with a phone has keys whose certificates lead to Google's root, and can sign
/// another certificate with them, with any extension. Two rules keep these keys from being
/// authorities:
///
/// - No certificate but the leaf has a key description. All keys of apps have one, also those whose
///   certificate is marked as an authority.
/// - Each issuer is marked as an authority (`cA`, `keyCertSign`). The keys of protected virtual
///   machines have no key description, and programs own them; their certificates have no mark.
///
/// Some phones left the factory with an authority that lacks the marks. So they may be missing if
/// the name of every authority on the path has a serial number, as those of a factory do. An app
/// can give its key such a name, but not without a description. A virtual machine cannot choose it.
///
/// Tests: `AndroidAttestationTests`.
public enum AndroidAttestation {
    public static let format = "android-key"
    public static let maxCertificates = 6
    /// The maximum size of one certificate in bytes. A root with an RSA key has 1,300.
    public static let maxCertificateBytes = 4096

    /// Returns what the phone attested, or throws the reason why the chain proves nothing.
    ///
    /// - Parameters:
    ///   - chain: certificates in DER, the leaf first, as `KeyStore.getCertificateChain` returns them.
    ///   - key: the enrolment key.
    ///   - challenge: the bytes that the app passed to `setAttestationChallenge`.
    public static func verify(
        _ chain: [[UInt8]], key: P256PublicKey, challenge: [UInt8], apps: [AndroidApp], roots: [Certificate],
        revocationList: RevocationList?, at now: Timestamp
    ) throws(AttestationFault) -> AttestedDevice {
        let certificates = try read(chain)
        guard let attested = try? certificates[0].publicKey(), attested == key else { throw .key }
        try checkIssuers(certificates.dropFirst())
        let (path, root) = try verifyPath(certificates, roots: roots)
        let description = try description(of: path[0])
        try checkValidity(of: path, at: now)
        if let revocationList, (certificates + [root]).contains(where: { revocationList.contains($0) }) {
            throw .revoked
        }
        guard Secret.matches(description.challenge, challenge) else { throw .challenge }
        let hardware = try hardware(description)
        try checkKey(description)
        let (app, version) = try app(description, among: apps)
        let enforced = description.hardwareEnforced
        return AttestedDevice(
            platform: .android, hardware: hardware, app: app, appVersion: String(version),
            osVersion: enforced.osVersion.map { DottedVersion(android: $0) },
            patchLevel: enforced.osPatchLevel.map(month),
            boot: enforced.rootOfTrust?.state, isLocked: enforced.rootOfTrust?.isLocked,
            userAuthentication: userAuthentication(description), root: root.spkiThumbprint,
            revocationList: revocationList?.fetchedAt)
    }

    private static func read(_ chain: [[UInt8]]) throws(AttestationFault) -> [Certificate] {
        guard !chain.isEmpty else { throw .malformed }
        guard chain.count <= maxCertificates, chain.allSatisfy({ $0.count <= maxCertificateBytes }) else { throw .size }
        var certificates: [Certificate] = []
        for der in chain {
            guard let certificate = try? Certificate(der: der) else { throw .malformed }
            certificates.append(certificate)
        }
        return certificates
    }

    /// Refuses a chain that an attested key extended. The path is verified afterwards and has no
    /// other issuers than these and the root.
    private static func checkIssuers(_ issuers: ArraySlice<Certificate>) throws(AttestationFault) {
        for issuer in issuers {
            guard let found = try? issuer.extensions(KeyDescription.identifier) else { throw .statement }
            guard found.isEmpty else { throw .extendedChain }
        }
    }

    private static func verifyPath(
        _ certificates: [Certificate], roots: [Certificate]
    ) throws(AttestationFault) -> (path: [Certificate], root: Certificate) {
        var authorities = certificates.dropFirst()
        if authorities.last?.isSelfIssued == true { authorities.removeLast() }
        let leniency = CertificatePath.Leniency(acceptsUnmarkedIssuers: authorities.allSatisfy(isFromFactory))
        do {
            return try CertificatePath.verify(certificates, roots: roots, at: nil, leniency: leniency)
        } catch {
            throw AttestationFault(error)
        }
    }

    /// Checks the validity of the authorities.
    ///
    /// The leaf's validity is the phone's own choice and is not checked. Chains that were put into
    /// a phone in the factory may expire, because they cannot be replaced: phones would lose their
    /// attestation with age. Their authority below the root tells them. Revocation ends these.
    /// Chains that a phone fetches are valid for weeks.
    private static func checkValidity(of path: [Certificate], at now: Timestamp) throws(AttestationFault) {
        guard let authority = path.last, path.count > 1 else { throw .chain }
        let isFromFactory = isFromFactory(authority)
        for certificate in path.dropFirst() {
            guard now >= certificate.notBefore, isFromFactory || now <= certificate.notAfter else { throw .validity }
        }
    }

    /// Whether an authority's name has the attribute `serialNumber` (2.5.4.5). Those of chains that
    /// phones fetch have none.
    private static func isFromFactory(_ authority: Certificate) -> Bool {
        (try? attributes(authority.subject))?.contains([0x55, 0x04, 0x05]) == true
    }

    private static func attributes(_ name: [UInt8]) throws(DERError) -> [[UInt8]] {
        var identifiers: [[UInt8]] = []
        var reader = DERReader(name)
        var sets = try reader.open(.sequence)
        while !sets.isAtEnd {
            var set = try sets.open(.set)
            while !set.isAtEnd {
                var attribute = try set.open(.sequence)
                identifiers.append(Array(try attribute.content(.identifier)))
            }
        }
        return identifiers
    }

    private static func description(of leaf: Certificate) throws(AttestationFault) -> KeyDescription {
        guard let found = try? leaf.extensions(KeyDescription.identifier), found.count == 1,
            let description = try? KeyDescription(found[0])
        else { throw .statement }
        return description
    }

    /// The lower one of the two levels.
    private static func hardware(_ description: KeyDescription) throws(AttestationFault) -> AttestedDevice.Hardware {
        switch min(description.attestationLevel.rawValue, description.keyLevel.rawValue) {
        case KeyDescription.SecurityLevel.trustedEnvironment.rawValue: return .trustedEnvironment
        case KeyDescription.SecurityLevel.strongBox.rawValue: return .strongBox
        default: throw .securityLevel
        }
    }

    /// Numbers of KeyMint.
    private enum KeyMint {
        static let generated: Int64 = 0
        static let sign: Int64 = 2
        static let verify: Int64 = 3
        static let ec: Int64 = 3
        static let p256: Int64 = 1
    }

    /// Checks the properties that the hardware enforces: a P-256 key, generated there, for
    /// signatures. Software cannot state them, since an attacker may control it.
    private static func checkKey(_ description: KeyDescription) throws(AttestationFault) {
        let enforced = description.hardwareEnforced
        guard enforced.origin == KeyMint.generated else { throw .origin }
        guard enforced.purposes.contains(KeyMint.sign),
            enforced.purposes.allSatisfy({ [KeyMint.sign, KeyMint.verify].contains($0) }),
            enforced.algorithm == KeyMint.ec, [nil, KeyMint.p256].contains(enforced.curve),
            [nil, 256].contains(enforced.keySize),
            !enforced.isForAllApps, !description.softwareEnforced.isForAllApps
        else { throw .purpose }
    }

    private static func app(
        _ description: KeyDescription, among apps: [AndroidApp]
    ) throws(AttestationFault) -> (package: String, version: Int64) {
        let application = description.softwareEnforced.application
        for app in apps {
            guard let package = application?.packages.first(where: { $0.name.utf8.elementsEqual(app.package.utf8) }),
                application?.signatureDigests.contains(where: { app.signatureDigests.contains($0) }) == true
            else { continue }
            return (app.package, package.version)
        }
        throw .app
    }

    /// The month of a patch level, which some devices write with the day: 20260705. Returns 0 for
    /// another form, which would pass for a late month.
    private static func month(_ level: Int64) -> Int64 {
        switch level {
        case 100_000...999_999: level
        case 10_000_000...99_999_999: level / 100
        default: 0
        }
    }

    /// The timeout can be in either list, because hardware without a clock leaves it to software.
    private static func userAuthentication(_ description: KeyDescription) -> AttestedDevice.UserAuthentication? {
        let (enforced, bySoftware) = (description.hardwareEnforced, description.softwareEnforced)
        if enforced.needsNoAuthentication { return AttestedDevice.UserAuthentication.none }
        guard (enforced.userAuthenticationType ?? 0) != 0 else { return nil }
        let timeout = enforced.authenticationTimeout ?? bySoftware.authenticationTimeout
        return timeout == nil ? .required : .timed
    }
}
