import Bytes
import COpenSSL
import JSON

/// A public key: a point that is checked to be on the curve P-256. Making one costs an eighth of a
/// verification.
public struct P256PublicKey: Sendable {
    /// The uncompressed form: 4, x, y; 65 bytes.
    public let x963: [UInt8]
    let handle: SharedHandle

    public init(x963: [UInt8]) throws(CryptoFailure) {
        guard x963.count == 65, x963[0] == 4 else { throw CryptoFailure("not an uncompressed point of P-256") }
        self.x963 = x963
        self.handle = try Self.load(x963)
    }

    private static func load(_ x963: [UInt8]) throws(CryptoFailure) -> SharedHandle {
        let what = "loading a P-256 key"
        guard let key = EVP_PKEY_dup(Algorithm.p256.pointer) else { throw CryptoFailure.drained(what) }
        let handle = SharedHandle(key) { EVP_PKEY_free($0) }
        // This also checks that the point is on the curve.
        guard EVP_PKEY_set1_encoded_public_key(key, x963, x963.count) == 1 else { throw CryptoFailure.drained(what) }
        return handle
    }

    /// Verifies an ECDSA signature with SHA-256 of the message. `signature` is r‖s, 64 bytes; DER
    /// is refused.
    ///
    /// Both s and n − s are accepted, as RFC 7518 allows, because no code identifies anything by a
    /// signature.
    public func verify(signature: [UInt8], over message: [UInt8]) -> Bool {
        guard let der = ECDSASignature.der(fromRaw: signature) else { return false }
        return verify(derSignature: der, over: message)
    }

    /// Verifies an ECDSA signature in DER, the form that phones' platforms use. OpenSSL refuses
    /// every encoding of the two numbers but the shortest.
    public func verify(derSignature der: [UInt8], over message: [UInt8]) -> Bool {
        guard der.count <= 72, let context = EVP_MD_CTX_new() else { return false }
        defer { EVP_MD_CTX_free(context) }
        if EVP_DigestVerifyInit(context, nil, Algorithm.sha256.pointer, nil, handle.pointer) == 1,
            EVP_DigestVerify(context, der, der.count, message, message.count) == 1
        {
            return true
        }
        ERR_clear_error()
        return false
    }
}

extension P256PublicKey: Hashable {
    public static func == (a: P256PublicKey, b: P256PublicKey) -> Bool { a.x963 == b.x963 }
    public func hash(into hasher: inout Hasher) { hasher.combine(x963) }
}

/// Other encodings of a key.
extension P256PublicKey {
    private static let spkiPrefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
        0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ]

    /// Reads a SubjectPublicKeyInfo in DER. Only the named curve and the uncompressed point are
    /// accepted.
    public init(spki: [UInt8]) throws(CryptoFailure) {
        guard spki.starts(with: Self.spkiPrefix) else { throw CryptoFailure("not a P-256 key") }
        try self.init(x963: Array(spki.dropFirst(Self.spkiPrefix.count)))
    }

    /// Reads a JWK (RFC 7517). It refuses a private key, and a key for another purpose than ES256
    /// signatures.
    public init(jwk: JSONValue) throws(CryptoFailure) {
        guard let x963 = Self.x963(of: jwk) else { throw CryptoFailure("not a public P-256 JWK") }
        try self.init(x963: x963)
    }

    /// The SHA-256 of the SubjectPublicKeyInfo for a JWK, without a check that the point is on the
    /// curve. With it a key can be looked up before work is spent on it. Returns nil if the JWK
    /// cannot be a key for ES256.
    public static func spkiThumbprint(unchecked jwk: JSONValue) -> [UInt8]? {
        x963(of: jwk).map { SHA256.hash(spkiPrefix + $0) }
    }

    /// Reads a JWK of a key for ECDH. It refuses a private key, and a key for another purpose.
    public init(agreementJWK jwk: JSONValue) throws(CryptoFailure) {
        guard let x963 = Self.x963(of: jwk, algorithm: "ECDH-ES", use: "enc") else {
            throw CryptoFailure("not a public P-256 JWK for ECDH")
        }
        try self.init(x963: x963)
    }

    private static func x963(of jwk: JSONValue, algorithm: JSONValue = "ES256", use: JSONValue = "sig") -> [UInt8]? {
        guard let members = jwk.object, members["kty"] == "EC", members["crv"] == "P-256", members["d"] == nil,
            [nil, algorithm].contains(members["alg"]), [nil, use].contains(members["use"]),
            let x = members["x"]?.string.flatMap({ Base64URL.decode($0) }), x.count == 32,
            let y = members["y"]?.string.flatMap({ Base64URL.decode($0) }), y.count == 32
        else { return nil }
        return [4] + x + y
    }

    public var spki: [UInt8] { Self.spkiPrefix + x963 }

    /// The SHA-256 of `spki`.
    public var spkiThumbprint: [UInt8] { SHA256.hash(spki) }

    /// The JWK with only its required members, in the order that RFC 7638 hashes.
    public var jwk: JSONObject {
        [
            "crv": "P-256", "kty": "EC", "x": .string(Base64URL.encode(x963[1..<33])),
            "y": .string(Base64URL.encode(x963[33..<65])),
        ]
    }

    /// The thumbprint of RFC 7638: base64url of SHA-256.
    public var thumbprint: String { Base64URL.encode(SHA256.hash(JSONWriter.write(jwk))) }
}
