import Bytes
import COpenSSL
import Crypto
import World

/// The authority that issued a client's certificate.
public enum PeerAuthority: Sendable, Equatable { case websites, phones }

/// A client's certificate after verification.
public struct PeerCertificate: Sendable, Equatable {
    public let authority: PeerAuthority
    /// Every URI among the subject's alternative names, unchanged.
    public let uris: [String]
    /// SHA-256 of the SubjectPublicKeyInfo.
    public let keyThumbprint: [UInt8]
    /// SHA-256 of the public key of the authority.
    public let issuer: [UInt8]
    /// The serial number in lower-case hexadecimal.
    public let serial: String
    public let notBefore: Timestamp
    public let notAfter: Timestamp

    /// - Parameter root: the certificate of the authority.
    init?(_ certificate: OpaquePointer, authority: PeerAuthority, root: OpaquePointer) {
        let what = "reading a client's certificate"
        guard let thumbprint = Self.thumbprint(certificate), let issuer = Self.thumbprint(root),
            let notBefore = try? Certificate.timestamp(X509_get0_notBefore(certificate), of: what),
            let notAfter = try? Certificate.timestamp(X509_get0_notAfter(certificate), of: what)
        else { return nil }
        self.authority = authority
        self.keyThumbprint = thumbprint
        self.issuer = issuer
        self.notBefore = notBefore
        self.notAfter = notAfter
        serial = Hex.encode(Certificate.bytes(of: X509_get0_serialNumber(certificate)))
        var uris: [String] = []
        let names = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil).map { OpaquePointer($0) }
        defer { if let names { GENERAL_NAMES_free(names) } }
        for index in 0..<copenssl_tls_name_count(names) {
            guard let uri = copenssl_tls_uri_at(names, index) else { continue }
            let bytes = UnsafeBufferPointer(start: ASN1_STRING_get0_data(uri), count: Int(ASN1_STRING_length(uri)))
            // Bytes that are not UTF-8 become a text that no website is registered under. The name
            // still counts.
            uris.append(String(decoding: bytes, as: UTF8.self))
        }
        self.uris = uris
    }

    private static func thumbprint(_ certificate: OpaquePointer) -> [UInt8]? {
        var der: UnsafeMutablePointer<UInt8>?
        let length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der)
        guard length > 0, let der else { return nil }
        defer { CRYPTO_free(der, nil, 0) }
        return [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
            var size: UInt32 = 0
            EVP_Digest(der, Int(length), buffer.baseAddress, &size, EVP_sha256(), nil)
            count = Int(size)
        }
    }
}
