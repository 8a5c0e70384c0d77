import COpenSSL
import World

/// Verifies paths of certificates that peers present, from a leaf to a root that the caller trusts.
///
/// OpenSSL checks signatures, names and constraints. It would also find a path through a subset of
/// the certificates. Callers read claims from every certificate of a path, so `verify` requires in
/// addition that the path is exactly the presented one: each certificate signed the one before it.
///
/// TLS verifies its peers itself, against the authorities of the installation. Tests:
/// `CertificatePathTests`.
public enum CertificatePath {
    /// The maximum number of presented certificates, which bounds the work for a peer.
    public static let maxCertificates = 10

    public enum Fault: Error, Sendable, Equatable {
        /// There is no certificate, or there are too many.
        case length
        /// The path ends at a certificate that no trusted root signed.
        case root
        /// A certificate is expired or not yet valid.
        case validity
        /// A signature, name or constraint is wrong, or a certificate is not on the path.
        case path
    }

    /// Options for authorities that do not follow RFC 5280.
    public struct Leniency: Sendable {
        /// Whether an issuer may lack the marks of an authority (`cA`, `keyCertSign`). Everyone who
        /// holds the key of a leaf can then extend the path, unless the caller tells issuers from
        /// leaves by other means.
        public var acceptsUnmarkedIssuers: Bool

        public init(acceptsUnmarkedIssuers: Bool = false) { self.acceptsUnmarkedIssuers = acceptsUnmarkedIssuers }

        public static let none = Leniency()
    }

    /// Returns the verified path, from the leaf to the last certificate below the root, and the
    /// trusted root.
    ///
    /// A self-issued certificate at the end of `presented` is ignored, because only `roots` are
    /// trusted. A root that was issued again for the same key and name verifies the same paths.
    ///
    /// - Parameter now: the time at which every certificate must be valid; without it, the caller
    ///   checks `notBefore` and `notAfter`.
    public static func verify(
        _ presented: [Certificate], roots: [Certificate], at now: Timestamp?, leniency: Leniency = .none
    ) throws(Fault) -> (path: [Certificate], root: Certificate) {
        guard !presented.isEmpty, presented.count <= maxCertificates else { throw .length }
        defer { ERR_clear_error() }
        do {
            var path = presented
            if path.count > 1, path.last?.isSelfIssued == true { path.removeLast() }
            let found = try PathVerification(path, roots: roots).path(at: now, leniency: leniency)
            guard let last = found.last, let root = roots.first(where: { $0.der == last }),
                path.map(\.der) == found.dropLast()
            else { throw Fault.path }
            return (path, root)
        } catch let fault as Fault {
            throw fault
        } catch {
            throw .path
        }
    }
}

extension CertificatePath {
    /// Verifies the certificate of a TLS server as its clients do: the authority issued it, through
    /// the other certificates if need be; all of them are valid, and it is for servers. The
    /// authority may be subordinate to another one. Returns OpenSSL's reason if it is refused, and
    /// nil if it is accepted.
    public static func serverFault(
        _ presented: [Certificate], authority: Certificate, at now: Timestamp
    ) -> String? {
        defer { ERR_clear_error() }
        do {
            return try PathVerification(presented, roots: [authority]).serverFault(at: now)
        } catch {
            return error.description
        }
    }
}

/// The objects that one call of `X509_verify_cert` needs.
private struct PathVerification: ~Copyable {
    private static let what = "verifying a path"
    private let leaf: Owned
    private let others: Owned
    private let trusted: Owned
    private let store: Owned
    private let context: Owned

    init(_ presented: [Certificate], roots: [Certificate]) throws(CryptoFailure) {
        let leaf = try presented[0].parsed(Self.what)
        let others = try Owned.stack(Self.what, presented.dropFirst())
        let trusted = try Owned.stack(Self.what, roots)
        let store = try Owned(X509_STORE_new(), else: Self.what) { X509_STORE_free($0) }
        let context = try Owned(X509_STORE_CTX_new(), else: Self.what) { X509_STORE_CTX_free($0) }
        guard X509_STORE_CTX_init(context.pointer, store.pointer, leaf.pointer, others.pointer) == 1 else {
            throw CryptoFailure.drained(Self.what)
        }
        X509_STORE_CTX_set0_trusted_stack(context.pointer, trusted.pointer)
        self.leaf = leaf
        self.others = others
        self.trusted = trusted
        self.store = store
        self.context = context
    }

    /// Returns the certificates of the path in DER, with the root.
    func path(at now: Timestamp?, leniency: CertificatePath.Leniency) throws -> [[UInt8]] {
        let parameters = X509_STORE_CTX_get0_param(context.pointer)
        X509_VERIFY_PARAM_set_depth(parameters, Int32(CertificatePath.maxCertificates))
        if let now {
            X509_VERIFY_PARAM_set_time(parameters, time_t(now.seconds))
        } else {
            X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_NO_CHECK_TIME))
        }
        if leniency.acceptsUnmarkedIssuers {
            X509_STORE_CTX_set_verify_cb(context.pointer) { ok, context in
                let error = X509_STORE_CTX_get_error(context)
                return error == X509_V_ERR_INVALID_CA || error == X509_V_ERR_KEYUSAGE_NO_CERTSIGN ? 1 : ok
            }
        }
        guard X509_verify_cert(context.pointer) == 1 else {
            throw Self.fault(X509_STORE_CTX_get_error(context.pointer))
        }
        let chain = X509_STORE_CTX_get0_chain(context.pointer)
        var found: [[UInt8]] = []
        for index in 0..<OPENSSL_sk_num(chain) {
            guard let next = OPENSSL_sk_value(chain, index) else { throw CertificatePath.Fault.path }
            found.append(try Certificate.der(of: OpaquePointer(next)))
        }
        return found
    }

    func serverFault(at now: Timestamp) throws(CryptoFailure) -> String? {
        let parameters = X509_STORE_CTX_get0_param(context.pointer)
        X509_VERIFY_PARAM_set_time(parameters, time_t(now.seconds))
        X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        guard X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER) == 1 else {
            throw CryptoFailure.drained(Self.what)
        }
        guard X509_verify_cert(context.pointer) != 1 else { return nil }
        return String(cString: X509_verify_cert_error_string(Int(X509_STORE_CTX_get_error(context.pointer))))
    }

    private static func fault(_ error: Int32) -> CertificatePath.Fault {
        switch error {
        case X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID: .validity
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
            .root
        default: .path
        }
    }
}

extension Owned {
    /// Makes a `STACK_OF(X509)` that owns its certificates.
    fileprivate static func stack(
        _ what: String, _ certificates: some Sequence<Certificate>
    ) throws(CryptoFailure) -> Owned {
        let stack = try Owned(OPENSSL_sk_new_null(), else: what) { stack in
            while let next = OPENSSL_sk_pop(stack) { X509_free(OpaquePointer(next)) }
            OPENSSL_sk_free(stack)
        }
        for certificate in certificates {
            let parsed = try certificate.parsed(what)
            guard X509_up_ref(parsed.pointer) == 1 else { throw CryptoFailure.drained(what) }
            guard OPENSSL_sk_push(stack.pointer, UnsafeRawPointer(parsed.pointer)) > 0 else {
                X509_free(parsed.pointer)
                throw CryptoFailure.drained(what)
            }
        }
        return stack
    }
}
