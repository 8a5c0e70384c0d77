import Bytes
import COpenSSL
import Glibc
import World

/// The TLS settings of a client: the authorities that it trusts, and its certificate if it has one.
///
/// `@unchecked Sendable`: OpenSSL allows SSL_new on one SSL_CTX from several threads after its
/// set-up, which `init` completes.
public final class TLSClientContext: @unchecked Sendable {
    public enum Roots: Sendable {
        /// The authorities of the operating system.
        case system
        /// Only these authorities.
        case pem([UInt8])
        /// The authorities of the operating system, and these.
        case systemAnd([UInt8])
        /// Only the authority with this key (SHA-256 of its SubjectPublicKeyInfo), or with the next
        /// one. The server sends its certificate.
        case pinned([UInt8], next: [UInt8]? = nil)
    }

    /// The time at which the certificates of the server must be valid.
    public enum Dates: Sendable {
        /// The time of the operating system.
        case system
        /// The time of this clock when the connection is made.
        case clock(any TimeSource)
        /// Any time: only for a client that does not know the time and asks for it. Everything else
        /// is checked.
        case unchecked
    }

    let context: OpaquePointer
    let application: Application
    private let dates: Dates
    private let pinned: PinnedAuthority?

    public init(
        roots: Roots, certificateChainPEM: [UInt8]? = nil, privateKeyPEM: Secret? = nil,
        dates: Dates = .system, application: Application = .http2
    ) throws(TLSFailure) {
        self.application = application
        self.dates = dates
        if case .pinned(let thumbprint, let next) = roots {
            pinned = PinnedAuthority([thumbprint, next].compactMap { $0 })
        } else {
            pinned = nil
        }
        context = try makeContext(TLS_client_method())
        switch roots {
        case .system: try believeTheMachine()
        case .pem(let text): try believe(text)
        case .systemAnd(let text):
            try believeTheMachine()
            try believe(text)
        case .pinned: pinned?.rule(context)
        }
        if let certificateChainPEM, let privateKeyPEM {
            try useCertificate(certificateChainPEM, key: privateKeyPEM, in: context)
        }
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
        guard application == .http2 else { return }
        let offer: [UInt8] = [2, UInt8(ascii: "h"), UInt8(ascii: "2")]
        // OpenSSL returns zero for success here.
        guard SSL_CTX_set_alpn_protos(context, offer, UInt32(offer.count)) == 0 else { throw .collected("ALPN") }
    }

    deinit { SSL_CTX_free(context) }

    private func believeTheMachine() throws(TLSFailure) {
        guard SSL_CTX_set_default_verify_paths(context) == 1 else { throw .collected("the system's root certificates") }
    }

    private func believe(_ pem: [UInt8]) throws(TLSFailure) {
        let store = SSL_CTX_get_cert_store(context)
        for certificate in try PEM.certificates(pem) {
            guard X509_STORE_add_cert(store, certificate.pointer) == 1 else { throw .collected("root") }
        }
    }

    /// Sets the name or address that the certificate of the server must have, and the time at which
    /// it must be valid.
    func expect(_ host: String, on session: OpaquePointer) throws(TLSFailure) {
        let parameters = SSL_get0_param(session)
        switch dates {
        case .system: break
        case .clock(let time): X509_VERIFY_PARAM_set_time(parameters, time_t(time.now().seconds))
        case .unchecked:
            guard X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_NO_CHECK_TIME)) == 1 else {
                throw .collected("dates")
            }
        }
        X509_VERIFY_PARAM_set_hostflags(
            parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT))
        if Self.isAddress(host) {
            guard X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1 else { throw .collected("host") }
            return
        }
        guard !host.isEmpty, X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1,
            copenssl_tls_set_server_name(session, host) == 1
        else { throw .collected("host") }
    }

    private static func isAddress(_ host: String) -> Bool {
        var four = in_addr()
        var six = in6_addr()
        return inet_pton(AF_INET, host, &four) == 1 || inet_pton(AF_INET6, host, &six) == 1
    }
}
