import COpenSSL
import Crypto

/// The only authority that a client trusts, identified by its key alone, as the `pin` of an
/// activation names it. While the authority is replaced, there are two. The server sends the
/// certificate of the authority with its own.
final class PinnedAuthority: Sendable {
    /// SHA-256 of each SubjectPublicKeyInfo.
    let thumbprints: [[UInt8]]

    init(_ thumbprints: [[UInt8]]) { self.thumbprints = thumbprints }

    /// Installs the check in a context. The caller must keep this object alive as long as the
    /// context.
    func rule(_ context: OpaquePointer) {
        SSL_CTX_set_cert_verify_callback(context, verifyPinned, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The certificates from the server that have a pinned key.
    fileprivate func found(in store: OpaquePointer) -> OpaquePointer? {
        let sent = X509_STORE_CTX_get0_untrusted(store)
        let trusted = OPENSSL_sk_new_null()
        for index in 0..<copenssl_tls_certificate_count(sent) {
            guard let certificate = copenssl_tls_certificate_at(sent, index),
                let read = try? Certificate(reading: certificate), thumbprints.contains(read.spkiThumbprint)
            else { continue }
            OPENSSL_sk_push(trusted, UnsafeRawPointer(certificate))
        }
        return trusted
    }
}

/// OpenSSL's verification, including names and dates, with the pinned authority as the only trusted
/// one. The authority need not be self-signed: an operator's authority may be subordinate to
/// another.
private nonisolated func verifyPinned(_ store: OpaquePointer?, _ argument: UnsafeMutableRawPointer?) -> Int32 {
    guard let store, let argument else { return 0 }
    let trusted = Unmanaged<PinnedAuthority>.fromOpaque(argument).takeUnretainedValue().found(in: store)
    // Only the list is ours. The session owns its certificates.
    defer { OPENSSL_sk_free(trusted) }
    X509_STORE_CTX_set0_trusted_stack(store, trusted)
    X509_STORE_CTX_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
    return X509_verify_cert(store)
}
