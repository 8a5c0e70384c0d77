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
/// Attack: everybody with a phone has an attested key, and can sign another certificate with it,
/// with any extension. Some genuine authorities lack the marks of one, so these marks cannot tell
/// the two apart. The rule is therefore that no certificate but the leaf has the extension.
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
        let (path, root) = try verifyPath(certificates, roots: roots)
        let description = try description(in: path)
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
            osVersion: enforced.osVersion.flatMap { DottedVersion(android: $0) }, patchLevel: enforced.osPatchLevel,
            boot: enforced.rootOfTrust?.state, isLocked: enforced.rootOfTrust?.isLocked,
            userAuthentication: userAuthentication(enforced), root: root.spkiThumbprint,
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

    private static func verifyPath(
        _ certificates: [Certificate], roots: [Certificate]
    ) throws(AttestationFault) -> (path: [Certificate], root: Certificate) {
        do {
            return try CertificatePath.verify(
                certificates, roots: roots, at: nil,
                leniency: CertificatePath.Leniency(acceptsUnmarkedIssuers: true))
        } catch {
            throw AttestationFault(error)
        }
    }

    /// Checks the validity of the authorities.
    ///
    /// The leaf's validity is the phone's own choice and is not checked. Chains that were put into
    /// a phone in the factory may expire, because they cannot be replaced: phones would lose their
    /// attestation with age. Their authorities have a serial number as their name. Revocation ends
    /// these. Chains that a phone fetches are valid for weeks.
    private static func checkValidity(of path: [Certificate], at now: Timestamp) throws(AttestationFault) {
        guard let authority = path.last, path.count > 1 else { throw .chain }
        let isFromFactory = hasSerialNumber(authority.subject)
        for certificate in path.dropFirst() {
            guard now >= certificate.notBefore, isFromFactory || now <= certificate.notAfter else { throw .validity }
        }
    }

    /// Whether a name has the attribute `serialNumber` (2.5.4.5).
    private static func hasSerialNumber(_ name: [UInt8]) -> Bool {
        (try? attributes(name))?.contains([0x55, 0x04, 0x05]) == true
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

    private static func description(in path: [Certificate]) throws(AttestationFault) -> KeyDescription {
        for issuer in path.dropFirst() {
            guard let found = try? issuer.extensions(KeyDescription.identifier) else { throw .statement }
            guard found.isEmpty else { throw .extendedChain }
        }
        guard let found = try? path[0].extensions(KeyDescription.identifier), found.count == 1,
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

    private static func userAuthentication(_ enforced: AuthorizationList) -> AttestedDevice.UserAuthentication? {
        if enforced.needsNoAuthentication { return AttestedDevice.UserAuthentication.none }
        return (enforced.userAuthenticationType ?? 0) != 0 ? .required : nil
    }
}
