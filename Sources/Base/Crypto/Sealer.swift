import Bytes
import COpenSSL
import World

/// The reason why sealed bytes cannot be opened.
public enum SealFailure: Error, Sendable, Equatable {
    case malformed
    /// They were sealed under a key that is not among ours.
    case unknownKey(String)
    /// Wrong key, wrong associated data, or changed bytes; these cannot be distinguished.
    case tampered
}

/// Seals with AES-256-GCM under the newest of several named keys. The older keys still open what
/// they sealed. For key rotation, a relay can know a key before it uses it: this key is the first
/// one in the list and has `isNext`. The first key without `isNext` seals.
///
/// Format: version (1 byte), length of the key's id (1 byte), the id, nonce (12), ciphertext, tag
/// (16). Everything before the nonce is authenticated together with the associated data. Nonces are
/// random, so a key may be used for at most 2^32 seals; rotate it long before. Tests:
/// `SealerTests`.
public struct Sealer: Sendable {
    public struct Key: Sendable {
        public let id: String
        public let key: Secret
        /// The key of the nonces of searchable seals, and of digests. It is derived from `key`.
        fileprivate let search: Secret
        /// Whether only other relays may seal under it already; this sealer does not.
        public let isNext: Bool

        public init(id: String, key: Secret, isNext: Bool = false) {
            self.id = id
            self.key = key.locked()
            search = Secret(HMAC.sha256(key: key, Array("twoefay blind index".utf8))).locked()
            self.isNext = isNext
        }
    }

    private let keys: [Key]
    private let current: Key
    private static let version: UInt8 = 1

    /// Makes a sealer. Throws if no key can seal, or a key or an id is invalid.
    /// - Parameter keys: keys of 32 bytes, each with a different id of at most 64 bytes.
    public init(keys: [Key]) throws(CryptoFailure) {
        guard let first = keys.first(where: { !$0.isNext }) else { throw CryptoFailure("sealing needs a key") }
        for key in keys where key.key.count != 32 { throw CryptoFailure("the sealing key \(key.id) needs 32 bytes") }
        guard keys.allSatisfy({ !$0.id.isEmpty && $0.id.utf8.count <= 64 }), Set(keys.map(\.id)).count == keys.count
        else { throw CryptoFailure("sealing keys must have different ids of at most 64 bytes") }
        self.keys = keys
        self.current = first
    }

    public func seal(
        _ plaintext: [UInt8], associated: [UInt8], randomness: any Randomness = SystemRandomness()
    ) throws(CryptoFailure) -> [UInt8] {
        try Self.seal(plaintext, associated: associated, under: current, nonce: randomness.bytes(12))
    }

    private static func seal(
        _ plaintext: [UInt8], associated: [UInt8], under key: Key, nonce: [UInt8]
    ) throws(CryptoFailure) -> [UInt8] {
        let header = beginning(underKey: key.id)
        let (ciphertext, tag) = try GCM.seal(
            plaintext, key: key.key, nonce: nonce, authenticated: header + associated)
        return header + nonce + ciphertext + tag
    }

    public func open(_ sealed: [UInt8], associated: [UInt8]) throws(SealFailure) -> [UInt8] {
        let (id, header) = try Self.header(of: sealed)
        guard let key = keys.first(where: { $0.id == id }) else { throw .unknownKey(id) }
        let body = sealed[header.count...]
        guard
            let plaintext = GCM.open(
                Array(body.dropFirst(12).dropLast(16)), tag: Array(body.suffix(16)), key: key.key,
                nonce: Array(body.prefix(12)), authenticated: header + associated)
        else { throw .tampered }
        return plaintext
    }

    /// The id of the key that seals.
    public var currentID: String { current.id }

    /// The ids of the older keys. Bytes that were sealed under them should be sealed again.
    public var oldKeyIDs: [String] { keys.filter { !$0.isNext && $0.id != current.id }.map(\.id) }

    /// The id of the key under which bytes were sealed.
    public static func keyID(of sealed: [UInt8]) throws(SealFailure) -> String { try header(of: sealed).id }

    /// The first bytes of everything that is sealed under a key.
    public static func beginning(underKey id: String) -> [UInt8] { [version, UInt8(id.utf8.count)] + id.utf8 }

    /// Whether bytes were sealed under an older key than the current one.
    public func isStale(_ sealed: [UInt8]) throws(SealFailure) -> Bool {
        oldKeyIDs.contains(try Self.header(of: sealed).id)
    }

    private static func header(of sealed: [UInt8]) throws(SealFailure) -> (id: String, bytes: [UInt8]) {
        guard sealed.count >= 2, sealed[0] == version else { throw .malformed }
        let end = 2 + Int(sealed[1])
        guard sealed.count >= end + 12 + 16, let id = String(validating: sealed[2..<end], as: UTF8.self) else {
            throw .malformed
        }
        return (id, Array(sealed[..<end]))
    }
}

/// Searchable seals: equal values have equal seals, so that a store can find and compare them
/// without opening them.
///
/// The nonce is a blind index: the first 12 bytes of an HMAC of the value and its purpose, under a
/// key that is used for nothing else but digests with other purposes. Different values get different nonces, up to 2^48 values or
/// so. Who reads the seals learns which values are equal, and their lengths, and nothing else.
extension Sealer {
    /// Seals a value searchably under the current key.
    public func sealSearchably(_ plaintext: [UInt8], associated: [UInt8]) throws(CryptoFailure) -> [UInt8] {
        try Self.sealSearchably(plaintext, associated: associated, under: current)
    }

    /// Returns the searchable seals of a value under every key. One of them is in the store if the
    /// store has the value, whatever key sealed it.
    public func searchableSeals(of plaintext: [UInt8], associated: [UInt8]) throws(CryptoFailure) -> [[UInt8]] {
        var seals: [[UInt8]] = []
        for key in keys { seals.append(try Self.sealSearchably(plaintext, associated: associated, under: key)) }
        return seals
    }

    /// Returns a digest of a value and its purpose under the current key. Without the key nobody
    /// can test a guess of the value.
    public func digest(of value: [UInt8], associated: [UInt8]) -> [UInt8] {
        Self.index(of: value, associated: associated, under: current)
    }

    /// Returns the digests of a value under every key.
    public func digests(of value: [UInt8], associated: [UInt8]) -> [[UInt8]] {
        keys.map { Self.index(of: value, associated: associated, under: $0) }
    }

    private static func index(of value: [UInt8], associated: [UInt8], under key: Key) -> [UInt8] {
        var message: [UInt8] = []
        message.reserveCapacity(4 + associated.count + value.count)
        withUnsafeBytes(of: UInt32(clamping: associated.count).bigEndian) { message.append(contentsOf: $0) }
        message += associated
        message += value
        return HMAC.sha256(key: key.search, message)
    }

    private static func sealSearchably(
        _ plaintext: [UInt8], associated: [UInt8], under key: Key
    ) throws(CryptoFailure) -> [UInt8] {
        let index = index(of: plaintext, associated: associated, under: key)
        return try seal(plaintext, associated: associated, under: key, nonce: Array(index.prefix(12)))
    }
}

/// AES-GCM for one message at a time, with a key of 16 or 32 bytes. Package access is for the
/// encryption of web pushes and for tests with published vectors.
package enum GCM {
    private static func cipher(for key: Secret) -> SharedHandle {
        precondition(key.count == 16 || key.count == 32, "no key of AES-GCM")
        return key.count == 16 ? Algorithm.aes128GCM : Algorithm.aes256GCM
    }

    package static func seal(
        _ plaintext: [UInt8], key: Secret, nonce: [UInt8], authenticated: [UInt8]
    ) throws(CryptoFailure) -> (ciphertext: [UInt8], tag: [UInt8]) {
        let context = try Owned(EVP_CIPHER_CTX_new(), else: "sealing") { EVP_CIPHER_CTX_free($0) }
        var ciphertext = [UInt8](repeating: 0, count: plaintext.count)
        var tag = [UInt8](repeating: 0, count: 16)
        guard begin(context, EVP_EncryptInit_ex2, key, nonce),
            update(context, EVP_EncryptUpdate, authenticated, plaintext, &ciphertext),
            final(context, EVP_EncryptFinal_ex),
            EVP_CIPHER_CTX_ctrl(context.pointer, EVP_CTRL_AEAD_GET_TAG, 16, &tag) == 1
        else { throw CryptoFailure.drained("sealing") }
        return (ciphertext, tag)
    }

    /// Decrypts a message. Returns nil unless ciphertext, tag, nonce and authenticated data are
    /// unchanged.
    package static func open(
        _ ciphertext: [UInt8], tag: [UInt8], key: Secret, nonce: [UInt8], authenticated: [UInt8]
    ) -> [UInt8]? {
        guard let context = try? Owned(EVP_CIPHER_CTX_new(), else: "opening", free: { EVP_CIPHER_CTX_free($0) }) else {
            return nil
        }
        var plaintext = [UInt8](repeating: 0, count: ciphertext.count)
        var tag = tag
        guard begin(context, EVP_DecryptInit_ex2, key, nonce),
            update(context, EVP_DecryptUpdate, authenticated, ciphertext, &plaintext),
            EVP_CIPHER_CTX_ctrl(context.pointer, EVP_CTRL_AEAD_SET_TAG, 16, &tag) == 1,
            final(context, EVP_DecryptFinal_ex)
        else {
            ERR_clear_error()
            return nil
        }
        return plaintext
    }

    private typealias Begin = (
        OpaquePointer?, OpaquePointer?, UnsafePointer<UInt8>?, UnsafePointer<UInt8>?, UnsafePointer<OSSL_PARAM>?
    ) -> Int32

    private static func begin(
        _ context: borrowing Owned, _ begin: Begin, _ key: Secret, _ nonce: [UInt8]
    ) -> Bool {
        let (pointer, cipher) = (context.pointer, cipher(for: key).pointer)
        return key.withBytes { key in
            begin(pointer, cipher, key.bindMemory(to: UInt8.self).baseAddress, nonce, nil) == 1
        }
    }

    private typealias Update = (
        OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>?, UnsafePointer<UInt8>?, Int32
    ) -> Int32

    /// Processes the data. An empty input is left out, because OpenSSL gives a null address another
    /// meaning.
    private static func update(
        _ context: borrowing Owned, _ update: Update, _ authenticated: [UInt8], _ input: [UInt8],
        _ output: inout [UInt8]
    ) -> Bool {
        var count: Int32 = 0
        guard let size = Int32(exactly: input.count), let extra = Int32(exactly: authenticated.count) else {
            return false
        }
        if extra > 0, update(context.pointer, nil, &count, authenticated, extra) != 1 { return false }
        return size == 0 || update(context.pointer, &output, &count, input, size) == 1
    }

    private static func final(
        _ context: borrowing Owned,
        _ final: (OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>?) -> Int32
    ) -> Bool {
        var nothing: [UInt8] = Array(repeating: 0, count: 16)
        var count: Int32 = 0
        return final(context.pointer, &nothing, &count) == 1
    }
}
