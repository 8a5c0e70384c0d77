import Bytes
import COpenSSL
import JSON

/// The private key of a certificate that may come from elsewhere: on P-256 or P-384, or an RSA key.
///
/// The relay signs its statements with the key of its server certificate. An operator may bring that
/// certificate from another authority, so the key decides the algorithm. Tests:
/// `CertificateKeyTests`.
public final class CertificateKey: Sendable {
    /// The algorithm of the key's signatures.
    public let algorithm: JWS.Algorithm
    private let handle: SharedHandle

    /// Reads an unencrypted key in PKCS #8, SEC 1 or PKCS #1.
    public init(pem: Secret) throws(CryptoFailure) {
        let handle = SharedHandle(try PEM.privateKey(pem)) { EVP_PKEY_free($0) }
        self.handle = handle
        guard let algorithm = JWS.Algorithm(key: handle.pointer) else { throw Self.unsuitable }
        self.algorithm = algorithm
    }

    /// Makes an RSA key of 2048 bits, and returns it in PKCS #8, unencrypted.
    public static func generateRSA() throws(CryptoFailure) -> Secret {
        let what = "making an RSA key"
        let context = try Owned(EVP_PKEY_CTX_new_from_name(nil, "RSA", nil), else: what) { EVP_PKEY_CTX_free($0) }
        var key: OpaquePointer?
        guard EVP_PKEY_keygen_init(context.pointer) == 1, EVP_PKEY_generate(context.pointer, &key) == 1 else {
            throw CryptoFailure.drained(what)
        }
        let made = try Owned(key, else: what) { EVP_PKEY_free($0) }
        return try PEM.encode(privateKey: made.pointer)
    }

    static let unsuitable = CryptoFailure("a key must be on P-256 or P-384, or RSA with 2048 to 4096 bits")

    /// Signs a message. Returns the signature in the form of JWS (RFC 7518).
    public func sign(_ message: [UInt8]) throws(CryptoFailure) -> [UInt8] {
        let context = try Owned(EVP_MD_CTX_new(), else: "signing") { EVP_MD_CTX_free($0) }
        let digest = algorithm.digest.pointer
        guard EVP_DigestSignInit(context.pointer, nil, digest, nil, handle.pointer) == 1 else {
            throw CryptoFailure.drained("signing")
        }
        // The greatest signature is that of RSA with 4096 bits.
        var signature = [UInt8](repeating: 0, count: 512)
        var count = signature.count
        guard EVP_DigestSign(context.pointer, &signature, &count, message, message.count) == 1 else {
            throw CryptoFailure.drained("signing")
        }
        signature = Array(signature.prefix(count))
        guard let half = algorithm.scalarLength else { return signature }
        guard let raw = ECDSASignature.raw(fromDER: signature, half: half) else {
            throw CryptoFailure("OpenSSL made an invalid signature")
        }
        return raw
    }

    /// Parses a JWS of this key, and verifies its signature. Returns nil if the JWS is malformed or
    /// not from this key.
    public func verified(_ compact: String) -> JWSObject? { JWS.verified(compact, handle.pointer) }
}

extension Certificate {
    /// The SHA-256 of the certificate, by which `x5t#S256` names it (RFC 7515).
    public var thumbprint: [UInt8] { SHA256.hash(der) }

    /// Parses a JWS of this certificate's key, and verifies its signature. The key decides the
    /// algorithm, not the header. Returns nil if the JWS is malformed or not from this key.
    public func verified(_ compact: String) -> JWSObject? {
        let spki = spki
        let loaded: OpaquePointer? = spki.withUnsafeBufferPointer { spki in
            var start = spki.baseAddress
            return d2i_PUBKEY(nil, &start, spki.count)
        }
        defer {
            EVP_PKEY_free(loaded)
            ERR_clear_error()
        }
        return loaded.flatMap { JWS.verified(compact, $0) }
    }
}

extension JWS {
    fileprivate static func verified(_ compact: String, _ key: OpaquePointer) -> JWSObject? {
        defer { ERR_clear_error() }
        guard let algorithm = JWS.Algorithm(key: key),
            let object = try? JWS.parse(compact, algorithm: algorithm),
            let signature = algorithm.scalarLength.map({ ECDSASignature.der(fromRaw: object.signature, half: $0) })
                ?? object.signature, let context = EVP_MD_CTX_new()
        else { return nil }
        defer { EVP_MD_CTX_free(context) }
        let input = object.signingInput
        guard EVP_DigestVerifyInit(context, nil, algorithm.digest.pointer, nil, key) == 1,
            EVP_DigestVerify(context, signature, signature.count, input, input.count) == 1
        else { return nil }
        return object
    }

    /// Signs a payload with the key of a certificate. `alg` is put in front of the given header.
    public static func sign(
        header: JSONObject, payload: [UInt8], key: CertificateKey
    ) throws(CryptoFailure) -> String {
        let input = signingInput(key.algorithm, header, payload)
        return input + "." + Base64URL.encode(try key.sign(Array(input.utf8)))
    }
}

extension JWS.Algorithm {
    /// The algorithm of a key; nil if its kind is not supported.
    fileprivate init?(key: OpaquePointer) {
        if EVP_PKEY_is_a(key, "RSA") == 1 {
            guard (2048...4096).contains(EVP_PKEY_get_bits(key)) else { return nil }
            self = .rs256
            return
        }
        var name = [CChar](repeating: 0, count: 32)
        var length = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1 else { return nil }
        switch String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self) {
        case "prime256v1": self = .es256
        case "secp384r1": self = .es384
        default: return nil
        }
    }

    fileprivate var digest: SharedHandle { self == .es384 ? Algorithm.sha384 : Algorithm.sha256 }

    /// The bytes of r and of s; nil if the signature is not that of an elliptic curve.
    fileprivate var scalarLength: Int? {
        switch self {
        case .es256: 32
        case .es384: 48
        case .hs256, .rs256: nil
        }
    }
}
