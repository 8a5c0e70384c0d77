import Bytes
import COpenSSL
import World

/// A certificate revocation list (RFC 5280 §5), as far as its dates and its issuer. TLS applies the
/// list itself. Tests: `CertificateRevocationListTests`.
public struct CertificateRevocationList: Sendable {
    /// The issuer's name in DER.
    public let issuer: [UInt8]
    public let thisUpdate: Timestamp
    /// When the next list is due; nil if the list does not say. From then on, this list refuses
    /// every certificate of its issuer.
    public let nextUpdate: Timestamp?
    let der: [UInt8]

    /// Reads all lists of the text.
    public static func all(pem: [UInt8]) throws(CryptoFailure) -> [CertificateRevocationList] {
        var all: [CertificateRevocationList] = []
        for der in try PEM.blocks("X509 CRL", pem) { all.append(try CertificateRevocationList(der: der)) }
        return all
    }

    public init(der: [UInt8]) throws(CryptoFailure) {
        let what = "reading a revocation list"
        let list = try Self.parse(der, what)
        self.der = der
        issuer = try Certificate.encoded(what) { i2d_X509_NAME(X509_CRL_get_issuer(list.pointer), $0) }
        thisUpdate = try Certificate.timestamp(X509_CRL_get0_lastUpdate(list.pointer), of: what)
        if let next = X509_CRL_get0_nextUpdate(list.pointer) {
            nextUpdate = try Certificate.timestamp(next, of: what)
        } else {
            nextUpdate = nil
        }
    }

    /// Whether this authority signed the list.
    public func isSigned(by authority: Certificate) -> Bool {
        guard authority.subject == issuer, let list = try? Self.parse(der, "reading a revocation list"),
            let certificate = try? authority.parsed("reading a certificate"),
            let key = X509_get0_pubkey(certificate.pointer)
        else { return false }
        defer { ERR_clear_error() }
        return X509_CRL_verify(list.pointer, key) == 1
    }

    static func parse(_ der: [UInt8], _ what: String) throws(CryptoFailure) -> Owned {
        let parsed = der.withUnsafeBufferPointer { der in
            var start = der.baseAddress
            return d2i_X509_CRL(nil, &start, der.count)
        }
        return try Owned(parsed, else: what) { X509_CRL_free($0) }
    }
}
