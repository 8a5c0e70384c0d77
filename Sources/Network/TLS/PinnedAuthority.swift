import COpenSSL
import Crypto

/// The one authority that a client believes, known by its key and by nothing else: what an activation's `pin` names.
/// The server sends the authority's certificate behind its own.
final class PinnedAuthority: Sendable {
    /// SHA-256 of the SubjectPublicKeyInfo.
    let thumbprint: [UInt8]

    init(_ thumbprint: [UInt8]) { self.thumbprint = thumbprint }

    /// The context must keep this object for as long as it lives.
    func rule(_ context: OpaquePointer) {
        SSL_CTX_set_cert_verify_callback(context, verifyPinned, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Of what the server sent, the certificates that hold the key.
    fileprivate func found(in store: OpaquePointer) -> OpaquePointer? {
        let sent = X509_STORE_CTX_get0_untrusted(store)
        let trusted = OPENSSL_sk_new_null()
        for index in 0..<copenssl_tls_certificate_count(sent) {
            guard let certificate = copenssl_tls_certificate_at(sent, index),
                (try? Certificate(reading: certificate))?.spkiThumbprint == thumbprint
            else { continue }
            OPENSSL_sk_push(trusted, UnsafeRawPointer(certificate))
        }
        return trusted
    }
}

/// OpenSSL's own verification, names and dates included, with the pinned authority alone to lead to. It need not have
/// signed itself: an operator's own authority may stand below another.
private nonisolated func verifyPinned(_ store: OpaquePointer?, _ argument: UnsafeMutableRawPointer?) -> Int32 {
    guard let store, let argument else { return 0 }
    let trusted = Unmanaged<PinnedAuthority>.fromOpaque(argument).takeUnretainedValue().found(in: store)
    // Only the list is ours; the certificates in it are the session's.
    defer { OPENSSL_sk_free(trusted) }
    X509_STORE_CTX_set0_trusted_stack(store, trusted)
    X509_STORE_CTX_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
    return X509_verify_cert(store)
}
