import Bytes
import COpenSSL
import World

extension CertificateRevocationList {
    /// Returns the certificates on the list. Whether one is on hold is not read.
    public func entries() throws(CryptoFailure) -> [RevokedCertificate] {
        let what = "reading the entries of a revocation list"
        let list = try Self.parse(der, what)
        guard let entries = X509_CRL_get_REVOKED(list.pointer) else { return [] }
        var found: [RevokedCertificate] = []
        for index in 0..<OPENSSL_sk_num(entries) {
            guard let entry = OPENSSL_sk_value(entries, index) else { continue }
            let pointer = OpaquePointer(entry)
            found.append(
                RevokedCertificate(
                    serial: Hex.encode(Certificate.bytes(of: X509_REVOKED_get0_serialNumber(pointer))),
                    at: try Certificate.timestamp(X509_REVOKED_get0_revocationDate(pointer), of: what)))
        }
        return found
    }

    public func pem() throws(CryptoFailure) -> [UInt8] { try PEM.encode("X509 CRL", der) }
}
