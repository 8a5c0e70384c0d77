import Bytes
import COpenSSL
import Crypto
import World

// Session resumption (RFC 8446, section 2.2): a client that comes back proves that it has the
// secret of an earlier session. Neither side signs or verifies anything, but both exchange new
// keys.
//
// Purpose: a reconnecting phone costs less, at both ends.
//
// Invariants: a resumed session has the identity of the full handshake that it goes back to, and
// not for longer than a full handshake would give it now. The verification of a client depends on
// its certificates, on the context and on the time. The context's own memory has the session, with
// the interval in which all dates of the verification hold. So inside it, another verification
// would have the same result. Registered keys, and the states of websites and phones, are looked up
// for each request.
//
// TLS 1.3 only, always with a key exchange, and without early data, whose requests could be
// replayed.
//
// Risk: on any doubt the session is not found, and the handshake becomes a full one; an error would
// lock out clients of another relay, or of the time before a restart. OpenSSL could keep sessions
// in its tickets, but it parses the client's certificate three times then, which costs more than it
// saves. Tests: `ResumptionTests`.

extension TLSServerContext {
    /// OpenSSL resumes only sessions of the same context. All of them are in `sessions`.
    private static let sessionContext: [UInt8] = [1]

    /// Lets verified clients of TLS 1.3 resume their sessions. The option against tickets stays: it
    /// makes OpenSSL keep the session here instead of in the ticket.
    func resumeSessions() throws(TLSFailure) {
        guard SSL_CTX_set_session_id_context(context, Self.sessionContext, UInt32(Self.sessionContext.count)) == 1,
            SSL_CTX_set_max_early_data(context, 0) == 1, SSL_CTX_set_generate_session_id(context, nameSession) == 1
        else { throw .collected("resumption of sessions") }
        copenssl_tls_set_session_cache_mode(
            context,
            Int(SSL_SESS_CACHE_SERVER) | Int(SSL_SESS_CACHE_NO_AUTO_CLEAR) | copenssl_tls_no_internal_session_cache)
        SSL_CTX_sess_set_new_cb(context, keepSession)
        SSL_CTX_sess_set_get_cb(context, findSession)
    }

    /// Returns the client after a full handshake; nil if it has no certificate that was verified.
    fileprivate func client(of session: OpaquePointer, at now: Timestamp) -> ResumableSessions.Client? {
        guard let peer = peer(of: session), let chain = SSL_get0_verified_chain(session) else { return nil }
        let what = "dates of a client's certificate"
        let certificates = (0..<copenssl_tls_certificate_count(chain)).compactMap {
            copenssl_tls_certificate_at(chain, $0)
        }
        var (from, until) = (peer.notBefore, min(peer.notAfter, now + ResumableSessions.life))
        do throws(CryptoFailure) {
            for certificate in certificates.dropFirst() {
                from = max(from, try Certificate.timestamp(X509_get0_notBefore(certificate), of: what))
                until = min(until, try Certificate.timestamp(X509_get0_notAfter(certificate), of: what))
            }
            for list in certificates.first.map(verification.lists(forIssuerOf:)) ?? [] {
                from = max(from, try Certificate.timestamp(X509_CRL_get0_lastUpdate(list.pointer), of: what))
                guard let end = X509_CRL_get0_nextUpdate(list.pointer) else { continue }
                until = min(until, try Certificate.timestamp(end, of: what))
            }
        } catch {
            return nil
        }
        return ResumableSessions.Client(peer: peer, from: from, until: until)
    }

    /// Makes OpenSSL's form of a session that it shall resume.
    fileprivate func state(
        of record: ResumableSessions.Record, for session: OpaquePointer, at now: Timestamp
    ) -> OpaquePointer? {
        guard let state = SSL_SESSION_new() else { return nil }
        let cipher = withUnsafeBytes(of: record.cipher.bigEndian) { bytes in
            SSL_CIPHER_find(session, bytes.bindMemory(to: UInt8.self).baseAddress)
        }
        let isMade =
            cipher != nil && SSL_SESSION_set_cipher(state, cipher) == 1
            && SSL_SESSION_set_protocol_version(state, TLS1_3_VERSION) == 1
            && SSL_SESSION_set1_id(state, record.id, UInt32(record.id.count)) == 1
            && SSL_SESSION_set1_id_context(state, Self.sessionContext, UInt32(Self.sessionContext.count)) == 1
            && record.secret.withBytes { secret in
                SSL_SESSION_set1_master_key(state, secret.bindMemory(to: UInt8.self).baseAddress, secret.count) == 1
            }
        guard isMade else {
            SSL_SESSION_free(state)
            return nil
        }
        SSL_SESSION_set_timeout(state, record.client.secondsLeft(at: now))
        return state
    }
}

extension ResumableSessions.Client {
    fileprivate func secondsLeft(at now: Timestamp) -> Int { Int(max((until - now).components.seconds, 0)) }
}

/// The owner of a server's session, and the sessions of its context.
private nonisolated func parts(
    of session: OpaquePointer
) -> (owner: TLSSession, context: TLSServerContext, sessions: ResumableSessions)? {
    guard let owner = TLSSession.owner(of: session), let context = owner.server, let sessions = context.sessions
    else { return nil }
    return (owner, context, sessions)
}

/// Names a session for its ticket, and tells the client how long it may keep it. A resumed session
/// keeps the client that it has, so that its end does not move.
private nonisolated func nameSession(
    _ session: OpaquePointer?, _ id: UnsafeMutablePointer<UInt8>?, _ count: UnsafeMutablePointer<UInt32>?
) -> Int32 {
    guard let session, let id, let count, Int(count.pointee) >= ResumableSessions.idCount,
        let (owner, context, sessions) = parts(of: session)
    else { return 0 }
    let now = sessions.time.now()
    // TLS 1.2 names its session before it knows the client. Nobody finds it by that name.
    if SSL_version(session) == TLS1_3_VERSION, SSL_session_reused(session) == 0 {
        owner.verified = context.client(of: session, at: now)
    }
    let client = owner.verifiedClient
    for (index, byte) in sessions.makeID(for: client).enumerated() { id[index] = byte }
    count.pointee = UInt32(ResumableSessions.idCount)
    if let client { SSL_SESSION_set_timeout(SSL_get_session(session), client.secondsLeft(at: now)) }
    return 1
}

/// Keeps a session that was named. Returns 0, because OpenSSL's form is not kept.
private nonisolated func keepSession(_ session: OpaquePointer?, _ state: OpaquePointer?) -> Int32 {
    var count: UInt32 = 0
    guard let session, SSL_version(session) == TLS1_3_VERSION, let state, let (owner, _, sessions) = parts(of: session),
        let client = owner.verifiedClient,
        let id = SSL_SESSION_get_id(state, &count), let cipher = SSL_SESSION_get0_cipher(state)
    else { return 0 }
    let secret = [UInt8](unsafeUninitializedCapacity: SSL_SESSION_get_master_key(state, nil, 0)) { buffer, filled in
        filled = SSL_SESSION_get_master_key(state, buffer.baseAddress, buffer.count)
    }
    sessions.add(
        ResumableSessions.Record(
            id: Array(UnsafeBufferPointer(start: id, count: Int(count))), secret: Secret(secret),
            cipher: SSL_CIPHER_get_protocol_id(cipher), client: client,
            made: (owner.isResumed ? owner.resumed?.made : nil) ?? sessions.time.instant()))
    return 0
}

/// Finds the session that a client wants to resume.
private nonisolated func findSession(
    _ session: OpaquePointer?, _ id: UnsafePointer<UInt8>?, _ count: Int32, _ copies: UnsafeMutablePointer<Int32>?
) -> OpaquePointer? {
    // The caller takes over the reference.
    copies?.pointee = 0
    guard let session, SSL_version(session) == TLS1_3_VERSION, let id,
        let (owner, context, sessions) = parts(of: session), owner.takeLookup(),
        let record = sessions.session(Array(UnsafeBufferPointer(start: id, count: Int(count)))),
        let state = context.state(of: record, for: session, at: sessions.time.now())
    else { return nil }
    owner.resumed = record
    SSL_set_num_tickets(session, 1)
    return state
}
