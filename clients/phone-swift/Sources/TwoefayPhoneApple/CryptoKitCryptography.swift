// Not compiled on Linux: CryptoKit and Security are Apple's.
import CryptoKit
import Foundation
import Security
import TwoefayPhone

/// The algorithms of CryptoKit, and RSA of the Security framework.
public struct CryptoKitCryptography: Cryptography {
    public init() {}

    public func random(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    public func sha256(_ message: [UInt8]) -> [UInt8] { Array(SHA256.hash(data: message)) }

    public func hmac(_ hash: DigestAlgorithm, key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        let key = SymmetricKey(data: key)
        switch hash {
        case .sha1: return Array(HMAC<Insecure.SHA1>.authenticationCode(for: message, using: key))
        case .sha256: return Array(HMAC<SHA256>.authenticationCode(for: message, using: key))
        case .sha512: return Array(HMAC<SHA512>.authenticationCode(for: message, using: key))
        }
    }

    public func openAESGCM(
        key: [UInt8], nonce: [UInt8], ciphertext: [UInt8], tag: [UInt8], authenticating data: [UInt8]
    ) -> [UInt8]? {
        guard let nonce = try? AES.GCM.Nonce(data: nonce),
            let box = try? AES.GCM.SealedBox(nonce: nonce, ciphertext: ciphertext, tag: tag),
            let plaintext = try? AES.GCM.open(box, using: SymmetricKey(data: key), authenticating: data)
        else { return nil }
        return Array(plaintext)
    }

    public func isValid(_ signature: [UInt8], of message: [UInt8], by key: VerificationKey) -> Bool {
        switch key.algorithm {
        case .es256:
            guard let key = try? P256.Signing.PublicKey(x963Representation: key.bits),
                let signature = try? P256.Signing.ECDSASignature(rawRepresentation: signature)
            else { return false }
            return key.isValidSignature(signature, for: message)
        case .es384:
            guard let key = try? P384.Signing.PublicKey(x963Representation: key.bits),
                let signature = try? P384.Signing.ECDSASignature(rawRepresentation: signature)
            else { return false }
            return key.isValidSignature(signature, for: message)
        case .rs256:
            let attributes: [CFString: Any] = [
                kSecAttrKeyType: kSecAttrKeyTypeRSA, kSecAttrKeyClass: kSecAttrKeyClassPublic,
            ]
            guard let key = SecKeyCreateWithData(Data(key.bits) as CFData, attributes as CFDictionary, nil) else {
                return false
            }
            return SecKeyVerifySignature(
                key, .rsaSignatureMessagePKCS1v15SHA256, Data(message) as CFData, Data(signature) as CFData, nil)
        }
    }

    public func signingKey(scalar: [UInt8]) throws -> any SigningKey {
        MemoryKey(key: try P256.Signing.PrivateKey(rawRepresentation: scalar))
    }
}

/// A key in memory: that of a PIN or PUK. It is never stored.
private struct MemoryKey: SigningKey {
    let key: P256.Signing.PrivateKey

    var publicKey: P256PublicKey { P256PublicKey(key.publicKey.x963Representation) }
    var stored: [UInt8] { [] }

    func sign(_ message: [UInt8]) throws -> [UInt8] { Array(try key.signature(for: message).rawRepresentation) }
}

extension P256PublicKey {
    /// A key of CryptoKit, whose form is always right.
    init(_ x963: Data) {
        guard let key = P256PublicKey(x963: Array(x963)) else {
            preconditionFailure("CryptoKit returned a point that is not uncompressed")
        }
        self = key
    }
}
