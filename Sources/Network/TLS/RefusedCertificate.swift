import COpenSSL

/// A client's certificate that was not accepted, and so ended its handshake. An operator recognises
/// it by the names, which its owner may have chosen freely.
public struct RefusedCertificate: Sendable, Equatable {
    /// The reason in one word, for metrics and the log.
    public enum Reason: String, Sendable, CaseIterable {
        case expired
        case early
        case revoked
        /// There is a revocation list of the issuer, and it is not valid now.
        case list
        /// No authority of ours is at the end of the chain.
        case issuer
        case signature
        /// The certificate is not for TLS clients.
        case purpose
        case other
    }

    public let reason: Reason
    /// The names as one line, at most 256 bytes each.
    public let subject: String
    public let issuer: String

    init(_ certificate: OpaquePointer, error: Int32) {
        reason = Self.reason(of: error)
        subject = Self.line(X509_get_subject_name(certificate))
        issuer = Self.line(X509_get_issuer_name(certificate))
    }

    private static func reason(of error: Int32) -> Reason {
        switch error {
        case X509_V_ERR_CERT_HAS_EXPIRED: .expired
        case X509_V_ERR_CERT_NOT_YET_VALID: .early
        case X509_V_ERR_CERT_REVOKED: .revoked
        case X509_V_ERR_CRL_HAS_EXPIRED, X509_V_ERR_CRL_NOT_YET_VALID, X509_V_ERR_UNABLE_TO_GET_CRL,
            X509_V_ERR_CRL_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
            .list
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_CERT_UNTRUSTED, X509_V_ERR_CERT_CHAIN_TOO_LONG:
            .issuer
        case X509_V_ERR_CERT_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE: .signature
        case X509_V_ERR_INVALID_PURPOSE, X509_V_ERR_INVALID_CA, X509_V_ERR_KEYUSAGE_NO_CERTSIGN: .purpose
        default: .other
        }
    }

    /// Writes a name as `/CN=shop/O=Example`. OpenSSL escapes everything but visible ASCII.
    private static func line(_ name: OpaquePointer?) -> String {
        var buffer = [CChar](repeating: 0, count: 257)
        guard let name, X509_NAME_oneline(name, &buffer, Int32(buffer.count)) != nil else { return "" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
