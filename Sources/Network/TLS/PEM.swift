import Bytes
import COpenSSL

/// Reads certificates, revocation lists and keys from PEM text with OpenSSL.
enum PEM {
    /// Reads every certificate in the text, in order.
    static func certificates(_ text: [UInt8]) throws(TLSFailure) -> [OwnedCertificate] {
        var found: [OwnedCertificate] = []
        let complete = withBIO(text) { bio in
            while let certificate = PEM_read_bio_X509(bio, nil, refusePassphrase, nil) {
                found.append(OwnedCertificate(takingOwnership: certificate))
            }
            return endedCleanly()
        }
        guard complete else { throw .collected("certificate cannot be read") }
        guard !found.isEmpty else { throw TLSFailure("certificate cannot be read", ["the file contains none"]) }
        return found
    }

    static func revocationLists(_ text: [UInt8]) throws(TLSFailure) -> [OwnedRevocationList] {
        var found: [OwnedRevocationList] = []
        let complete = withBIO(text) { bio in
            while let list = PEM_read_bio_X509_CRL(bio, nil, refusePassphrase, nil) {
                found.append(OwnedRevocationList(takingOwnership: list))
            }
            return endedCleanly()
        }
        guard complete else { throw .collected("revocation list cannot be read") }
        guard !found.isEmpty else { throw TLSFailure("revocation list cannot be read", ["the file contains none"]) }
        return found
    }

    static func usePrivateKey(_ text: Secret, in context: OpaquePointer) throws(TLSFailure) {
        let key = text.withBytes { text in
            withBIO(text) { PEM_read_bio_PrivateKey($0, nil, refusePassphrase, nil) }
        }
        guard let key else { throw .collected("private key cannot be read") }
        defer { EVP_PKEY_free(key) }
        guard SSL_CTX_use_PrivateKey(context, key) == 1, SSL_CTX_check_private_key(context) == 1 else {
            throw .collected("private key does not match the certificate")
        }
    }

    private static func withBIO<Value>(_ text: [UInt8], _ body: (OpaquePointer) -> Value) -> Value {
        text.withUnsafeBytes { withBIO($0, body) }
    }

    private static func withBIO<Value>(_ text: UnsafeRawBufferPointer, _ body: (OpaquePointer) -> Value) -> Value {
        ERR_clear_error()
        // OpenSSL does not accept a null pointer for an empty text.
        guard !text.isEmpty else { return withBIO([UInt8(ascii: "\n")], body) }
        guard let bio = BIO_new_mem_buf(text.baseAddress, Int32(text.count)) else {
            // It fails only if memory runs out, and Swift ends the process for that everywhere
            // else.
            fatalError("out of memory")
        }
        defer { BIO_free(bio) }
        return body(bio)
    }

    /// Whether a loop over PEM blocks ended because there was no further block. OpenSSL reports
    /// that as the last error.
    private static func endedCleanly() -> Bool {
        let error = ERR_peek_last_error()
        guard ERR_GET_LIB(error) == ERR_LIB_PEM, ERR_GET_REASON(error) == PEM_R_NO_START_LINE else { return false }
        ERR_clear_error()
        return true
    }
}

/// Refuses to give a passphrase. Without this OpenSSL would ask at a terminal, which a daemon does
/// not have.
private nonisolated func refusePassphrase(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32, _ forWriting: Int32, _ context: UnsafeMutableRawPointer?
) -> Int32 { -1 }

/// `@unchecked Sendable`: an X509 is only read once it has been parsed, and its reference count is
/// atomic.
final class OwnedCertificate: @unchecked Sendable {
    let pointer: OpaquePointer
    init(takingOwnership pointer: OpaquePointer) { self.pointer = pointer }
    deinit { X509_free(pointer) }
}

/// `@unchecked Sendable`: an X509_CRL is only read once it has been parsed, and its reference count
/// is atomic.
final class OwnedRevocationList: @unchecked Sendable {
    let pointer: OpaquePointer
    init(takingOwnership pointer: OpaquePointer) { self.pointer = pointer }
    deinit { X509_CRL_free(pointer) }
}

/// SHA-256 of the whole certificate.
func certificateDigest(_ certificate: OpaquePointer) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
        var length: UInt32 = 0
        X509_digest(certificate, EVP_sha256(), buffer.baseAddress, &length)
        count = Int(length)
    }
}
