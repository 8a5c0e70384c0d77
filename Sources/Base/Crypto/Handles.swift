import COpenSSL

/// A C object with a single owner, freed at the end of its scope.
struct Owned: ~Copyable {
    let pointer: OpaquePointer
    private let free: (OpaquePointer) -> Void

    /// Takes ownership of a pointer. A null pointer means that the C call failed, and the error
    /// queue has the reason.
    init(_ pointer: OpaquePointer?, else what: String, free: @escaping (OpaquePointer) -> Void) throws(CryptoFailure) {
        guard let pointer else { throw CryptoFailure.drained(what) }
        self.pointer = pointer
        self.free = free
    }

    deinit { free(pointer) }
}

/// A C object that many threads read: a key or an algorithm.
///
/// `@unchecked Sendable`: the object does not change after it was made, and this module passes the
/// pointer only to reading calls. OpenSSL counts references to keys and algorithms atomically and
/// locks its internal caches.
final class SharedHandle: @unchecked Sendable {
    let pointer: OpaquePointer
    private let free: @Sendable (OpaquePointer) -> Void

    init(_ pointer: OpaquePointer, free: @escaping @Sendable (OpaquePointer) -> Void) {
        self.pointer = pointer
        self.free = free
    }

    deinit { free(pointer) }
}

/// Algorithms that are fetched once, because OpenSSL 3 searches its providers for every name.
enum Algorithm {
    static let sha1 = digest("SHA1")
    static let sha256 = digest("SHA256")
    static let sha384 = digest("SHA384")
    static let sha512 = digest("SHA512")

    static let aes128GCM = cipher("AES-128-GCM")
    static let aes256GCM = cipher("AES-256-GCM")

    static let aes128CBC = cipher("AES-128-CBC")
    static let aes192CBC = cipher("AES-192-CBC")
    static let aes256CBC = cipher("AES-256-CBC")

    /// The curve, as a key without a point. Copying it takes a third of the time that OpenSSL needs
    /// to make a key from the name of the curve.
    static let p256: SharedHandle = {
        let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil)
        defer { EVP_PKEY_CTX_free(context) }
        var key: OpaquePointer?
        guard EVP_PKEY_paramgen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "prime256v1") == 1,
            EVP_PKEY_paramgen(context, &key) == 1, let key
        else { missing("P-256") }
        return SharedHandle(key) { EVP_PKEY_free($0) }
    }()

    private static func digest(_ name: String) -> SharedHandle {
        guard let digest = EVP_MD_fetch(nil, name, nil) else { missing(name) }
        return SharedHandle(digest) { EVP_MD_free($0) }
    }

    private static func cipher(_ name: String) -> SharedHandle {
        guard let cipher = EVP_CIPHER_fetch(nil, name, nil) else { missing(name) }
        return SharedHandle(cipher) { EVP_CIPHER_free($0) }
    }

    /// Ends the process: without these algorithms this program cannot work. Nothing that a peer
    /// sends leads here.
    private static func missing(_ name: String) -> Never {
        fatalError("\(CryptoFailure.drained("OpenSSL has no \(name)"))")
    }
}
