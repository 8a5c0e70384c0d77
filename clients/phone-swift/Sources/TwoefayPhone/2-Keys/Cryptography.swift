/// The algorithms that the protocol needs and this package does not have. `CryptoKitCryptography`
/// has them on Apple's platforms.
public protocol Cryptography: Sendable {
    /// Returns bytes of the system's generator for keys.
    func random(_ count: Int) -> [UInt8]
    func sha256(_ message: [UInt8]) -> [UInt8]
    func hmac(_ hash: DigestAlgorithm, key: [UInt8], _ message: [UInt8]) -> [UInt8]
    /// Opens AES-256-GCM; nil if the tag is wrong.
    func openAESGCM(
        key: [UInt8], nonce: [UInt8], ciphertext: [UInt8], tag: [UInt8], authenticating data: [UInt8]
    ) -> [UInt8]?
    /// Whether the signature is one of this key, by the algorithm of the key.
    ///
    /// - Parameter signature: r and s for the algorithms of ECDSA, PKCS #1 v1.5 for RSA.
    func isValid(_ signature: [UInt8], of message: [UInt8], by key: VerificationKey) -> Bool
    /// Makes the key of P-256 with this private scalar, which is in memory only. The PIN has one.
    func signingKey(scalar: [UInt8]) throws -> any SigningKey
}

public enum DigestAlgorithm: String, Sendable, CaseIterable {
    case sha1, sha256, sha512
}

/// Creates and loads the phone's keys. `SecureEnclaveKeys` does so in the Secure Enclave.
public protocol PhoneKeys: Sendable {
    func makeSigningKey() throws -> any SigningKey
    func makeAgreementKey() throws -> any AgreementKey
    /// Loads a key by its `stored` form.
    func signingKey(stored: [UInt8]) throws -> any SigningKey
    func agreementKey(stored: [UInt8]) throws -> any AgreementKey
}

/// A key of P-256 that signs.
public protocol SigningKey: Sendable {
    var publicKey: P256PublicKey { get }
    /// The form in which `PhoneKeys` loads the key. For a key of the Secure Enclave it is of no use
    /// on another device.
    var stored: [UInt8] { get }
    /// Signs by ECDSA with SHA-256. Returns r and s, 32 bytes each.
    func sign(_ message: [UInt8]) throws -> [UInt8]
}

/// A key of P-256 for key agreement. It signs nothing.
public protocol AgreementKey: Sendable {
    var publicKey: P256PublicKey { get }
    var stored: [UInt8] { get }
    /// Returns the x coordinate of the shared point.
    func sharedSecret(with other: P256PublicKey) throws -> [UInt8]
}

/// A public key of P-256: a point of the curve.
public struct P256PublicKey: Sendable, Equatable {
    /// The coordinates, 32 bytes each.
    public let x: [UInt8]
    public let y: [UInt8]

    /// The fixed bytes before the point in a SubjectPublicKeyInfo of P-256 (RFC 5480).
    private static let infoPrefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
        0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ]

    /// - Parameter x963: 4, x and y. It is not checked here whether they are a point of the curve:
    ///   the functions that use the key do so.
    public init?(x963 bytes: [UInt8]) {
        guard bytes.count == 65, bytes[0] == 4 else { return nil }
        x = Array(bytes[1..<33])
        y = Array(bytes[33...])
    }

    public init?(jwk: JSONObject) {
        guard jwk.has("kty", "EC"), jwk.has("crv", "P-256"), jwk["d"] == nil,
            let x = jwk["x"]?.string.flatMap({ Base64URL.decode($0) }), x.count == 32,
            let y = jwk["y"]?.string.flatMap({ Base64URL.decode($0) }), y.count == 32
        else { return nil }
        (self.x, self.y) = (x, y)
    }

    public var x963: [UInt8] { [4] + x + y }

    /// The SubjectPublicKeyInfo in DER.
    public var info: [UInt8] { Self.infoPrefix + x963 }

    /// The members in the order that RFC 7638 hashes.
    public var jwk: JSONObject {
        ["crv": "P-256", "kty": "EC", "x": .string(Base64URL.encode(x)), "y": .string(Base64URL.encode(y))]
    }

    /// The thumbprint (RFC 7638), which the person compares when another phone approves this one.
    public func thumbprint(_ cryptography: any Cryptography) -> String {
        Base64URL.encode(cryptography.sha256(jwk.bytes))
    }
}
