import CLinuxPhone
import TwoefayPhone

/// The algorithms of OpenSSL. It is for the tests of this package, not for apps.
public struct OpenSSLCryptography: Cryptography {
    public struct Failure: Error {}

    public init() {}

    public func random(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            precondition(RAND_bytes(buffer.baseAddress, Int32(count)) == 1, "OpenSSL has no random bytes")
            filled = count
        }
    }

    public func sha256(_ message: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        SHA256(message, message.count, &digest)
        return digest
    }

    public func hmac(_ hash: DigestAlgorithm, key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        var (code, count) = ([UInt8](repeating: 0, count: 64), UInt32(64))
        _ = phone_hmac(hash.rawValue, key, key.count, message, message.count, &code, &count)
        return Array(code.prefix(Int(count)))
    }

    public func openAESGCM(
        key: [UInt8], nonce: [UInt8], ciphertext: [UInt8], tag: [UInt8], authenticating data: [UInt8]
    ) -> [UInt8]? {
        guard key.count == 32, nonce.count == 12, tag.count == 16 else { return nil }
        var plaintext = [UInt8](repeating: 0, count: ciphertext.count + 16)
        let isRight = phone_open_gcm(
            key, nonce, ciphertext, ciphertext.count, tag, data, data.count, &plaintext)
        return isRight == 1 ? Array(plaintext.prefix(ciphertext.count)) : nil
    }

    public func isValid(_ signature: [UInt8], of message: [UInt8], by key: VerificationKey) -> Bool {
        let width = key.algorithm == .es384 ? 96 : 64
        var form = signature
        if key.algorithm != .rs256 {
            guard signature.count == width, let der = ECDSASignature.der(raw: signature) else { return false }
            form = der
        }
        let digest = key.algorithm == .es384 ? "sha384" : "sha256"
        return phone_verify(key.info, key.info.count, digest, form, form.count, message, message.count) == 1
    }

    public func signingKey(scalar: [UInt8]) throws -> any SigningKey { try SoftwareKey(scalar) }
}

/// Keys in memory, stored as their scalars.
public struct SoftwareKeys: PhoneKeys {
    public init() {}

    public func makeSigningKey() throws -> any SigningKey { try SoftwareKey() }
    public func makeAgreementKey() throws -> any AgreementKey { try SoftwareKey() }
    public func signingKey(stored: [UInt8]) throws -> any SigningKey { try SoftwareKey(stored) }
    public func agreementKey(stored: [UInt8]) throws -> any AgreementKey { try SoftwareKey(stored) }
}

public struct SoftwareKey: SigningKey, AgreementKey {
    public let publicKey: P256PublicKey
    public let stored: [UInt8]

    public init() throws {
        // A random number is nearly always a scalar.
        for _ in 0..<8 {
            if let key = try? SoftwareKey(OpenSSLCryptography().random(32)) {
                self = key
                return
            }
        }
        throw OpenSSLCryptography.Failure()
    }

    public init(_ scalar: [UInt8]) throws {
        var point = [UInt8](repeating: 0, count: 65)
        guard scalar.count == 32, phone_public_point(scalar, &point) == 1, let key = P256PublicKey(x963: point) else {
            throw OpenSSLCryptography.Failure()
        }
        publicKey = key
        stored = scalar
    }

    public func sign(_ message: [UInt8]) throws -> [UInt8] {
        var (der, count) = ([UInt8](repeating: 0, count: 80), 80)
        guard phone_sign(stored, publicKey.x963, message, message.count, &der, &count) == 1,
            let raw = ECDSASignature.raw(der: Array(der.prefix(count)))
        else { throw OpenSSLCryptography.Failure() }
        return raw
    }

    public func sharedSecret(with other: P256PublicKey) throws -> [UInt8] {
        var secret = [UInt8](repeating: 0, count: 32)
        guard phone_agree(stored, publicKey.x963, other.x963, &secret) == 1 else { throw OpenSSLCryptography.Failure() }
        return secret
    }
}
