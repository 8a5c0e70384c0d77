import COpenSSL

// TLS 1.3 lets a client change its keys as often as it likes, and OpenSSL sets no limit: each
// KeyUpdate of 27 bytes costs as much as some requests. OpenSSL calls back at every step of its
// handshake machine, which runs for nothing else once the handshake is over, so counting costs the
// records of requests nothing. The owner reads `keyUpdates` after each read.

extension TLSSession {
    /// Attempts to renegotiate (TLS 1.2) that are answered with an alert. Then the session takes no
    /// more: OpenSSL would go on answering within one read for as long as more of them come.
    static let renegotiations = 16

    /// To be called when the handshake is over.
    func countKeyUpdates() {
        // The pointer stays valid: this object frees the session when it goes.
        SSL_set_ex_data(session, 0, Unmanaged.passUnretained(self).toOpaque())
        SSL_set_info_callback(session, noteStep)
        copenssl_tls_do_not_retry(session)
    }

    /// Changes the keys for what this side sends, as tests of such clients want it. False if that fails.
    func updateKeys() -> Bool {
        SSL_key_update(session, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(session) == 1
    }
}

private nonisolated func noteStep(_ session: OpaquePointer?, _ kind: Int32, _ value: Int32) {
    guard let session, let pointer = SSL_get_ex_data(session, 0) else { return }
    let isRefusal = kind == SSL_CB_WRITE_ALERT && value & 0xff == SSL_AD_NO_RENEGOTIATION
    guard isRefusal || SSL_get_state(session) == TLS_ST_SR_KEY_UPDATE else { return }
    let owner = Unmanaged<TLSSession>.fromOpaque(pointer).takeUnretainedValue()
    owner.keyUpdates += 1
    if isRefusal, owner.keyUpdates > TLSSession.renegotiations {
        SSL_set_shutdown(session, SSL_get_shutdown(session) | SSL_RECEIVED_SHUTDOWN)
    }
}
