// Not compiled on Linux: the Secure Enclave is Apple's.
import CryptoKit
import Foundation
@preconcurrency import LocalAuthentication
import Security
import TwoefayPhone

/// Keys in the Secure Enclave. Their stored form is sealed by the enclave: it is of no use on
/// another device, nor in a backup.
public struct SecureEnclaveKeys: PhoneKeys {
    public enum Failure: Error {
        case unavailable
    }

    /// The context in which the person was verified. If keys need the presence of the person, the
    /// system asks for it at the first signature, and not again while the context is in use.
    private let context: LAContext?
    private let needsPresence: Bool

    /// - Parameters:
    ///   - needsPresence: whether new keys sign only after Face ID, Touch ID or the passcode. Every
    ///     request has a proof of the key, so such a phone cannot poll in the background.
    ///   - context: the context of the app's own check; nil for one of each key.
    public init(needsPresence: Bool, context: LAContext? = nil) throws {
        guard SecureEnclave.isAvailable else { throw Failure.unavailable }
        self.needsPresence = needsPresence
        self.context = context
    }

    private func accessControl() throws -> SecAccessControl {
        var flags: SecAccessControlCreateFlags = [.privateKeyUsage]
        if needsPresence { flags.insert(.userPresence) }
        // Keys that can be used in the background need the first unlocking after the start.
        let protection =
            needsPresence
            ? kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly : kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
        guard let control = SecAccessControlCreateWithFlags(nil, protection, flags, nil) else {
            throw Failure.unavailable
        }
        return control
    }

    public func makeSigningKey() throws -> any SigningKey {
        EnclaveSigningKey(
            key: try SecureEnclave.P256.Signing.PrivateKey(
                accessControl: try accessControl(), authenticationContext: context))
    }

    public func makeAgreementKey() throws -> any AgreementKey {
        EnclaveAgreementKey(
            key: try SecureEnclave.P256.KeyAgreement.PrivateKey(
                accessControl: try accessControl(), authenticationContext: context))
    }

    public func signingKey(stored: [UInt8]) throws -> any SigningKey {
        EnclaveSigningKey(
            key: try SecureEnclave.P256.Signing.PrivateKey(
                dataRepresentation: Data(stored), authenticationContext: context))
    }

    public func agreementKey(stored: [UInt8]) throws -> any AgreementKey {
        EnclaveAgreementKey(
            key: try SecureEnclave.P256.KeyAgreement.PrivateKey(
                dataRepresentation: Data(stored), authenticationContext: context))
    }
}

private struct EnclaveSigningKey: SigningKey {
    let key: SecureEnclave.P256.Signing.PrivateKey

    var publicKey: P256PublicKey { P256PublicKey(key.publicKey.x963Representation) }
    var stored: [UInt8] { Array(key.dataRepresentation) }

    func sign(_ message: [UInt8]) throws -> [UInt8] { Array(try key.signature(for: message).rawRepresentation) }
}

private struct EnclaveAgreementKey: AgreementKey {
    let key: SecureEnclave.P256.KeyAgreement.PrivateKey

    var publicKey: P256PublicKey { P256PublicKey(key.publicKey.x963Representation) }
    var stored: [UInt8] { Array(key.dataRepresentation) }

    func sharedSecret(with other: P256PublicKey) throws -> [UInt8] {
        let other = try P256.KeyAgreement.PublicKey(x963Representation: other.x963)
        return try key.sharedSecretFromKeyAgreement(with: other).withUnsafeBytes { Array($0) }
    }
}
