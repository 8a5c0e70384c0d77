import Bytes
import COpenSSL
import World

public final class P256PrivateKey: Sendable {
    public let publicKey: P256PublicKey
    private let handle: SharedHandle
    var pointer: OpaquePointer { handle.pointer }

    private init(_ handle: SharedHandle) throws(CryptoFailure) {
        self.handle = handle
        var spki: UnsafeMutablePointer<UInt8>?
        let count = i2d_PUBKEY(handle.pointer, &spki)
        guard count > 0, let spki else { throw CryptoFailure.drained("reading a public key") }
        defer { CRYPTO_free(spki, #file, #line) }
        publicKey = try P256PublicKey(spki: [UInt8](UnsafeBufferPointer(start: spki, count: Int(count))))
    }

    public static func generate(_ randomness: any Randomness = SystemRandomness()) throws(CryptoFailure)
        -> P256PrivateKey
    {
        // A random scalar is out of range once in four thousand million times. Drawing again keeps
        // all valid ones equally likely.
        var scalar = randomness.bytes(32)
        while !isInRange(scalar) { scalar = randomness.bytes(32) }
        return try P256PrivateKey(scalar: Secret(scalar))
    }

    /// Makes a key from its scalar: 32 bytes, highest first.
    public convenience init(scalar: Secret) throws(CryptoFailure) {
        var bytes = scalar.reveal()
        defer { Wiping.wipe(&bytes) }
        guard Self.isInRange(bytes) else { throw CryptoFailure("not a P-256 private key") }
        var der = Self.pkcs8Prefix + bytes
        defer { Wiping.wipe(&der) }
        let key: OpaquePointer? = der.withUnsafeBufferPointer { der in
            var start = der.baseAddress
            return d2i_AutoPrivateKey(nil, &start, der.count)
        }
        guard let key else { throw CryptoFailure.drained("loading a private key") }
        try self.init(SharedHandle(key) { EVP_PKEY_free($0) })
    }

    /// Reads an unencrypted key in PKCS #8 or SEC 1.
    public convenience init(pem: Secret) throws(CryptoFailure) {
        try self.init(SharedHandle(try PEM.privateKey(pem)) { EVP_PKEY_free($0) })
    }

    /// The key in PKCS #8, unencrypted.
    public func pem() throws(CryptoFailure) -> Secret { try PEM.encode(privateKey: handle.pointer) }

    /// Signs a message by ECDSA with SHA-256. Returns r‖s, 64 bytes.
    public func sign(_ message: [UInt8]) throws(CryptoFailure) -> [UInt8] {
        guard let raw = ECDSASignature.raw(fromDER: try signDER(message)) else {
            throw CryptoFailure("OpenSSL made an invalid signature")
        }
        return raw
    }

    func signDER(_ message: [UInt8]) throws(CryptoFailure) -> [UInt8] {
        let context = try Owned(EVP_MD_CTX_new(), else: "signing") { EVP_MD_CTX_free($0) }
        guard EVP_DigestSignInit(context.pointer, nil, Algorithm.sha256.pointer, nil, handle.pointer) == 1 else {
            throw CryptoFailure.drained("signing")
        }
        var signature = [UInt8](repeating: 0, count: 80)
        var count = signature.count
        guard EVP_DigestSign(context.pointer, &signature, &count, message, message.count) == 1 else {
            throw CryptoFailure.drained("signing")
        }
        return Array(signature.prefix(count))
    }

    /// PrivateKeyInfo up to the scalar. OpenSSL computes the public key.
    private static let pkcs8Prefix: [UInt8] = [
        0x30, 0x41, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08,
        0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x27, 0x30, 0x25, 0x02, 0x01, 0x01, 0x04, 0x20,
    ]

    static let order: [UInt8] = [
        0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6,
        0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ]

    private static func isInRange(_ scalar: [UInt8]) -> Bool {
        scalar.count == 32 && scalar.contains { $0 != 0 } && scalar.lexicographicallyPrecedes(order)
    }
}
