import Bytes
import Crypto
import World

/// Verifies attestation objects of Apple's App Attest, by the nine steps in "Validating apps that
/// connect to your server" of Apple's documentation.
///
/// The attested key is App Attest's own, in the Secure Enclave; an app can use it only through
/// `generateAssertion`. The object proves that an unmodified app with this App ID, on a genuine
/// device of Apple, chose the bytes that `clientDataHash` is a digest of. These name the enrolment
/// key, so the app vouches for that key.
///
/// Tests: `AppAttestationTests`.
public enum AppAttestation {
    /// The format that the object names.
    public static let format = "apple-appattest"
    /// Several times the size of an object; most of it is the receipt.
    public static let maxBytes = 24 << 10
    private static let maxCertificates = 4

    /// Returns what Apple attested, or throws the reason why the object proves nothing.
    ///
    /// - Parameters:
    ///   - keyID: the key's identifier that `generateKey` returned, decoded.
    ///   - clientDataHash: the bytes that the app passed to `attestKey`.
    ///   - apps: the accepted App IDs, `TEAM.bundle`.
    public static func verify(
        _ object: [UInt8], keyID: [UInt8], clientDataHash: [UInt8], apps: [String], roots: [Certificate],
        at now: Timestamp
    ) throws(AttestationFault) -> AttestedDevice {
        let object = try read(object)
        // 1. The certificates lead to Apple's root.
        let (path, root) = try verifyPath(object.certificates, roots: roots, at: now)
        // 2 to 4. The leaf has the digest of the authenticator data and the client data.
        let nonce = SHA256.hash(object.authenticatorData + clientDataHash)
        guard Secret.matches(try AppleExtensions.nonce(path[0]), nonce) else { throw .challenge }
        // 5. The key's identifier is the digest of the leaf's key.
        guard let key = try? path[0].publicKey() else { throw .key }
        guard SHA256.hash(key.x963) == keyID else { throw .key }
        // 6. The app is ours.
        let credential = try AttestedCredential(object.authenticatorData)
        guard let app = apps.first(where: { SHA256.hash(Array($0.utf8)) == credential.appIDHash }) else { throw .app }
        // 7. The key has not been used.
        guard credential.counter == 0 else { throw .counter }
        // 8. The environment is one of App Attest's.
        guard let environment = environments[credential.aaguid] else { throw .environment }
        // 9. The credential is the key; the document does not ask for the comparison of the COSE key.
        guard credential.credentialID == keyID, credential.publicKey == key.x963 else { throw .key }
        return AttestedDevice(
            platform: .ios, hardware: .secureEnclave, app: app, appVersion: credential.extensions.bundleVersion,
            environment: environment, osVersion: AppleExtensions.osVersion(path[0]), root: root.spkiThumbprint,
            appAttest: AppAttestKey(key: key, receipt: object.receipt))
    }

    private static let environments: [[UInt8]: AttestedDevice.Environment] = [
        Array("appattest".utf8) + [UInt8](repeating: 0, count: 7): .production,
        Array("appattestdevelop".utf8): .development,
    ]

    private struct Object {
        let certificates: [Certificate]
        let receipt: [UInt8]
        let authenticatorData: [UInt8]
    }

    private static func read(_ bytes: [UInt8]) throws(AttestationFault) -> Object {
        guard bytes.count <= maxBytes else { throw .size }
        guard let object = try? CBORReader.read(bytes), object.hasExactly("fmt", "attStmt", "authData"),
            let statement = object["attStmt"], let authenticatorData = object["authData"]?.bytes
        else { throw .malformed }
        guard object["fmt"] == .text(format) else { throw .format }
        guard statement.hasExactly("x5c", "receipt"), let receipt = statement["receipt"]?.bytes,
            let encoded = statement["x5c"]?.array, (1...maxCertificates).contains(encoded.count)
        else { throw .malformed }
        var certificates: [Certificate] = []
        for value in encoded {
            guard let der = value.bytes, let certificate = try? Certificate(der: der) else { throw .malformed }
            certificates.append(certificate)
        }
        return Object(certificates: certificates, receipt: receipt, authenticatorData: authenticatorData)
    }

    private static func verifyPath(
        _ certificates: [Certificate], roots: [Certificate], at now: Timestamp
    ) throws(AttestationFault) -> (path: [Certificate], root: Certificate) {
        do {
            return try CertificatePath.verify(certificates, roots: roots, at: now)
        } catch {
            throw AttestationFault(error)
        }
    }
}

extension AttestationFault {
    init(_ fault: CertificatePath.Fault) {
        self =
            switch fault {
            case .length: .malformed
            case .root: .root
            case .validity: .validity
            case .path: .chain
            }
    }
}
