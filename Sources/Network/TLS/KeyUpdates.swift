import COpenSSL

// TLS 1.3 lets a client change its keys without limit, and OpenSSL sets no limit either. Each
// KeyUpdate of 27 bytes costs as much as several requests. OpenSSL calls back at every step of its
// handshake state machine. After the handshake that machine runs only for key updates and
// renegotiations, so the count adds no cost to other records. The owner reads `keyUpdates` after
// each read. Tests: `KeyUpdateTests`.

extension TLSSession {
    /// Attempts to renegotiate (TLS 1.2) that are answered with an alert. After that the session
    /// accepts no more: OpenSSL would otherwise continue within one read as long as more attempts
    /// come.
    static let renegotiations = 16

    /// Starts the count. Call it when the handshake is complete.
    func countKeyUpdates() {
        SSL_set_info_callback(session, noteStep)
        copenssl_tls_do_not_retry(session)
    }

    /// Changes the keys for sending, for tests of key updates. Returns false if that fails.
    func updateKeys() -> Bool {
        SSL_key_update(session, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 && SSL_do_handshake(session) == 1
    }
}

private nonisolated func noteStep(_ session: OpaquePointer?, _ kind: Int32, _ value: Int32) {
    guard let session else { return }
    let isRefusal = kind == SSL_CB_WRITE_ALERT && value & 0xff == SSL_AD_NO_RENEGOTIATION
    guard isRefusal || SSL_get_state(session) == TLS_ST_SR_KEY_UPDATE, let owner = TLSSession.owner(of: session)
    else { return }
    owner.keyUpdates += 1
    if isRefusal, owner.keyUpdates > TLSSession.renegotiations {
        SSL_set_shutdown(session, SSL_get_shutdown(session) | SSL_RECEIVED_SHUTDOWN)
    }
}
