import Bytes
import COpenSSL

/// The TLS settings of a server: its certificate, and the authorities of its clients. It never
/// changes after `init`; a reload makes a new one for new connections.
///
/// `@unchecked Sendable`: OpenSSL allows SSL_new on one SSL_CTX from several threads after its
/// set-up, which `init` completes.
public final class TLSServerContext: @unchecked Sendable {
    /// The most bytes of certificates that a client may send. More bytes end the handshake before
    /// any of them is parsed.
    static let maxClientCertificateBytes = 16_384

    let context: OpaquePointer
    let application: Application
    let verification: ClientVerification
    /// The sessions that clients may resume; nil if each handshake is a full one.
    let sessions: ResumableSessions?

    /// Lets nobody resume a session of this context any more.
    public func endSessions() { sessions?.end() }

    /// Loads certificates, key, authorities and revocation lists.
    /// - Parameter websitesCA: the authorities of websites (PEM). If this and `phonesCA` are empty,
    ///   clients are not asked for a certificate.
    /// - Parameter crl: revocation lists (PEM). A list applies to the certificates of its issuer;
    ///   an expired list refuses all of them.
    /// - Parameter sessions: the sessions that clients with certificates may resume, for this
    ///   context alone; nil: each handshake is a full one.
    public init(
        certificateChainPEM: [UInt8], privateKeyPEM: Secret, websitesCA: [UInt8] = [], phonesCA: [UInt8] = [],
        crl: [UInt8]? = nil, application: Application = .http2, sessions: ResumableSessions? = nil
    ) throws(TLSFailure) {
        self.application = application
        self.sessions = sessions
        let websites = websitesCA.isEmpty ? [] : try PEM.certificates(websitesCA)
        let phones = phonesCA.isEmpty ? [] : try PEM.certificates(phonesCA)
        let websiteDigests = Set(websites.map { certificateDigest($0.pointer) })
        let phoneDigests = Set(phones.map { certificateDigest($0.pointer) })
        guard websiteDigests.isDisjoint(with: phoneDigests) else {
            throw TLSFailure("websites and phones must not share an authority")
        }
        let lists: [OwnedRevocationList]
        if let crl { lists = try PEM.revocationLists(crl) } else { lists = [] }
        verification = ClientVerification(websites: websiteDigests, phones: phoneDigests, lists: lists)
        // From here on `deinit` frees it, even if this throws.
        context = try makeContext(TLS_server_method())
        try useCertificate(certificateChainPEM, key: privateKeyPEM, in: context)
        if !websites.isEmpty || !phones.isEmpty { try believe(websites + phones, lists) }
        SSL_CTX_set_options(context, copenssl_tls_op_prefer_server_ciphers)
        if sessions != nil { try resumeSessions() }
        guard application != .unnamed else { return }
        // The argument only says whether HTTP/1.1 is allowed, too.
        let allowsHTTP1 = application == .http ? UnsafeMutableRawPointer(context) : nil
        SSL_CTX_set_alpn_select_cb(context, selectApplication, allowsHTTP1)
    }

    deinit { SSL_CTX_free(context) }

    private func believe(_ roots: [OwnedCertificate], _ lists: [OwnedRevocationList]) throws(TLSFailure) {
        let store = SSL_CTX_get_cert_store(context)
        for root in roots {
            guard X509_STORE_add_cert(store, root.pointer) == 1,
                SSL_CTX_add_client_CA(context, root.pointer) == 1
            else { throw .collected("authority cannot be used") }
        }
        for list in lists {
            guard X509_STORE_add_crl(store, list.pointer) == 1 else { throw .collected("revocation list") }
        }
        // A certificate is requested, but not required: a phone sends its activation code before it
        // has one.
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        SSL_CTX_set_verify_depth(context, 4)
        // A chain from our authorities has a few kilobytes. OpenSSL's default limit is 100 KB.
        copenssl_tls_set_max_certificate_bytes(context, Self.maxClientCertificateBytes)
        // The pointer stays valid: every session keeps this object alive, and this object keeps
        // `verification`.
        SSL_CTX_set_cert_verify_callback(
            context, verifyClient, Unmanaged.passUnretained(verification).toOpaque())
    }

    /// The certificate of a client after its handshake; nil if it has none that was verified.
    func peer(of session: OpaquePointer) -> PeerCertificate? {
        guard SSL_get_verify_result(session) == Int(X509_V_OK), let leaf = SSL_get0_peer_certificate(session),
            let chain = SSL_get0_verified_chain(session)
        else { return nil }
        let count = copenssl_tls_certificate_count(chain)
        guard count > 0, let root = copenssl_tls_certificate_at(chain, count - 1) else { return nil }
        let digest = certificateDigest(root)
        if verification.websites.contains(digest) { return PeerCertificate(leaf, authority: .websites, root: root) }
        if verification.phones.contains(digest) { return PeerCertificate(leaf, authority: .phones, root: root) }
        return nil
    }
}

/// The authorities and revocation lists that `verifyClient` uses.
final class ClientVerification: Sendable {
    let websites: Set<[UInt8]>
    let phones: Set<[UInt8]>
    let lists: [OwnedRevocationList]

    init(websites: Set<[UInt8]>, phones: Set<[UInt8]>, lists: [OwnedRevocationList]) {
        self.websites = websites
        self.phones = phones
        self.lists = lists
    }

    /// The revocation lists that have the name of this certificate's issuer.
    func lists(forIssuerOf certificate: OpaquePointer) -> [OwnedRevocationList] {
        let issuer = X509_get_issuer_name(certificate)
        return lists.filter { X509_NAME_cmp(X509_CRL_get_issuer($0.pointer), issuer) == 0 }
    }

    /// Whether there is a revocation list of this certificate's issuer. Only then can OpenSSL check
    /// the revocation.
    func hasList(forIssuerOf certificate: OpaquePointer) -> Bool {
        !lists(forIssuerOf: certificate).isEmpty
    }
}

/// OpenSSL's verification with two additions: the revocation check if we have a list, and the
/// requirement that the extended key usage contains clientAuth. OpenSSL alone accepts a certificate
/// without any extended key usage.
private nonisolated func verifyClient(_ store: OpaquePointer?, _ argument: UnsafeMutableRawPointer?) -> Int32 {
    guard let store, let argument, let leaf = X509_STORE_CTX_get0_cert(store) else { return 0 }
    let verification = Unmanaged<ClientVerification>.fromOpaque(argument).takeUnretainedValue()
    if verification.hasList(forIssuerOf: leaf) {
        X509_STORE_CTX_set_flags(store, UInt(X509_V_FLAG_CRL_CHECK))
    }
    let result = X509_verify_cert(store)
    guard result == 1 else {
        keep(leaf, refusedBy: store)
        return result
    }
    guard X509_get_extension_flags(leaf) & UInt32(EXFLAG_XKUSAGE) != 0,
        X509_get_extended_key_usage(leaf) & UInt32(XKU_SSL_CLIENT) != 0
    else {
        X509_STORE_CTX_set_error(store, X509_V_ERR_INVALID_PURPOSE)
        keep(leaf, refusedBy: store)
        return 0
    }
    // Only verified clients may resume their sessions.
    if let session = owner(of: store), session.server?.sessions != nil { SSL_set_num_tickets(session.session, 1) }
    return 1
}

/// The session that a certificate is verified for.
private nonisolated func owner(of store: OpaquePointer) -> TLSSession? {
    X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()).flatMap {
        TLSSession.owner(of: OpaquePointer($0))
    }
}

/// Notes the certificate in its session, because OpenSSL keeps none of a handshake that failed.
private nonisolated func keep(_ leaf: OpaquePointer, refusedBy store: OpaquePointer) {
    owner(of: store)?.refused = RefusedCertificate(leaf, error: X509_STORE_CTX_get_error(store))
}

/// Selects h2 in ALPN, or http/1.1 if the context allows it, and refuses a client that offers
/// neither.
private nonisolated func selectApplication(
    _ session: OpaquePointer?, _ selected: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ selectedLength: UnsafeMutablePointer<UInt8>?, _ offered: UnsafePointer<UInt8>?, _ offeredLength: UInt32,
    _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    guard let offered, let selected, let selectedLength else { return SSL_TLSEXT_ERR_ALERT_FATAL }
    let list = UnsafeBufferPointer(start: offered, count: Int(offeredLength))
    let names: [StaticString] = argument == nil ? ["h2"] : ["h2", "http/1.1"]
    for name in names {
        guard let at = place(of: name, in: list) else { continue }
        selected.pointee = offered + at
        selectedLength.pointee = UInt8(name.utf8CodeUnitCount)
        return SSL_TLSEXT_ERR_OK
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL
}

/// The place of a name in a list of ALPN, whose names have their lengths before them.
private nonisolated func place(of name: StaticString, in list: UnsafeBufferPointer<UInt8>) -> Int? {
    var at = 0
    while at < list.count {
        let (start, end) = (at + 1, at + 1 + Int(list[at]))
        guard end <= list.count else { return nil }
        if list[start..<end].elementsEqual(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)) {
            return start
        }
        at = end
    }
    return nil
}
