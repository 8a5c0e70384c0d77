import Bytes
import COpenSSL

/// Makes an OpenSSL context with the settings that servers and clients share: TLS 1.2 and 1.3,
/// forward secrecy and authenticated encryption. Sessions are not resumed, unless a server's context
/// is given a memory of sessions (`Resumption.swift`).
func makeContext(_ method: OpaquePointer?) throws(TLSFailure) -> OpaquePointer {
    ERR_clear_error()
    guard let context = SSL_CTX_new(method) else { throw .collected("TLS context") }
    copenssl_tls_set_min_version(context, TLS1_2_VERSION)
    guard SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 else {
        SSL_CTX_free(context)
        throw .collected("ciphers")
    }
    // OpenSSL's default list includes finite fields: a replayed ClientHello for ffdhe8192 costs the
    // server 154 ms.
    guard copenssl_tls_set_groups(context, "X25519:P-256:P-384") == 1 else {
        SSL_CTX_free(context)
        throw .collected("groups")
    }
    SSL_CTX_set_options(
        context,
        copenssl_tls_op_no_ticket | copenssl_tls_op_no_renegotiation | copenssl_tls_op_no_compression)
    SSL_CTX_set_num_tickets(context, 0)
    copenssl_tls_set_session_cache_mode(context, Int(SSL_SESS_CACHE_OFF))
    // An idle connection returns its 34 KB of buffers. An incomplete write may be repeated from
    // another address in memory.
    copenssl_tls_set_mode(
        context,
        copenssl_tls_mode_release_buffers | copenssl_tls_mode_partial_write | copenssl_tls_mode_moving_buffer)
    // Reads all records that have arrived with one system call. Otherwise OpenSSL would make two
    // calls for each record.
    copenssl_tls_set_read_ahead(context, 1)
    return context
}

func useCertificate(_ chain: [UInt8], key: Secret, in context: OpaquePointer) throws(TLSFailure) {
    let certificates = try PEM.certificates(chain)
    guard SSL_CTX_use_certificate(context, certificates[0].pointer) == 1 else {
        throw .collected("certificate cannot be used")
    }
    for further in certificates.dropFirst() {
        guard copenssl_tls_add_chain_certificate(context, further.pointer) == 1 else {
            throw .collected("certificate chain cannot be used")
        }
    }
    try PEM.usePrivateKey(key, in: context)
}
