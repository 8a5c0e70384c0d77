import COpenSSL

/// SHA-256 of data that comes in parts, such as a large file.
public final class RunningSHA256 {
    private let context: OpaquePointer

    public init() throws(CryptoFailure) {
        guard let context = EVP_MD_CTX_new() else { throw CryptoFailure("hashing") }
        guard EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
            EVP_MD_CTX_free(context)
            throw CryptoFailure("hashing")
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    public func update(_ bytes: UnsafeRawBufferPointer) {
        let done = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
        precondition(done == 1, "SHA-256 fails only without memory")
    }

    /// Returns the hash. The object is of no use afterwards.
    public func finish() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { buffer, filled in
            let done = EVP_DigestFinal_ex(context, buffer.baseAddress, nil)
            precondition(done == 1, "SHA-256 fails only without memory")
            filled = 32
        }
    }
}
