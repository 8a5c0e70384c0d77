import Bytes
import COpenSSL
import World

/// A parsed X.509 certificate. TLS decides whether to trust it.
public struct Certificate: Sendable, Hashable {
    public let der: [UInt8]
    /// Every URI among the subject's alternative names, unchanged.
    public let uris: [String]
    public let dnsNames: [String]
    /// SHA-256 of the SubjectPublicKeyInfo.
    public let spkiThumbprint: [UInt8]
    public let notBefore: Timestamp
    public let notAfter: Timestamp
    /// The serial number in lower-case hexadecimal, as `CertificateAuthority.makeCRL` expects it.
    public let serial: String
    let spki: [UInt8]
    /// The subject's name in DER.
    public let subject: [UInt8]
    /// The issuer's name in DER.
    public let issuer: [UInt8]
    let subjectKeyID: [UInt8]

    public init(der: [UInt8]) throws(CryptoFailure) {
        let certificate = try Self.parse(der, "reading a certificate")
        try self.init(reading: certificate.pointer, der: der)
    }

    /// Reads an `X509 *`, which its owner keeps. A certificate that TLS has parsed need not be
    /// parsed again, which takes longer than everything else.
    package init(reading x509: OpaquePointer) throws(CryptoFailure) {
        try self.init(reading: x509, der: try Self.der(of: x509))
    }

    private init(reading x509: OpaquePointer, der: [UInt8]) throws(CryptoFailure) {
        let what = "reading a certificate"
        let names = Self.alternativeNames(x509)
        self.der = der
        uris = names.filter { $0.type == GEN_URI }.map(\.text)
        dnsNames = names.filter { $0.type == GEN_DNS }.map(\.text)
        notBefore = try Self.timestamp(X509_get0_notBefore(x509), of: what)
        notAfter = try Self.timestamp(X509_get0_notAfter(x509), of: what)
        serial = Hex.encode(Self.bytes(of: X509_get0_serialNumber(x509)))
        spki = try Self.encoded(what) { i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509), $0) }
        subject = try Self.encoded(what) { i2d_X509_NAME(X509_get_subject_name(x509), $0) }
        issuer = try Self.encoded(what) { i2d_X509_NAME(X509_get_issuer_name(x509), $0) }
        subjectKeyID = Self.bytes(of: X509_get0_subject_key_id(x509))
        spkiThumbprint = SHA256.hash(spki)
        // Extensions that cannot be parsed leave errors in the queue.
        ERR_clear_error()
    }

    /// Reads the first certificate of the text.
    public init(pem: [UInt8]) throws(CryptoFailure) { try self.init(der: try PEM.decode("CERTIFICATE", pem)) }

    /// Reads all certificates of the text: a server's chain, or a bundle of roots.
    public static func all(pem: [UInt8]) throws(CryptoFailure) -> [Certificate] {
        var all: [Certificate] = []
        for der in try PEM.blocks("CERTIFICATE", pem) { all.append(try Certificate(der: der)) }
        return all
    }

    public func pem() throws(CryptoFailure) -> [UInt8] { try PEM.encode("CERTIFICATE", der) }

    /// Whether the subject is its own issuer by name, as in a root.
    public var isSelfIssued: Bool { subject == issuer }

    /// Whether the certificate may issue others: its basic constraints have any content.
    public var isAuthority: Bool { (try? extensions("2.5.29.19"))?.contains { $0 != [0x30, 0] } ?? true }

    /// The public key. Throws if it is not a P-256 key.
    public func publicKey() throws(CryptoFailure) -> P256PublicKey { try P256PublicKey(spki: spki) }

    /// Whether a client that connects to this host name or address accepts the certificate. Only
    /// the alternative names count, as for every client of today.
    public func isValid(forHost host: String) -> Bool {
        guard let certificate = try? parsed("reading a certificate") else { return false }
        defer { ERR_clear_error() }
        if X509_check_ip_asc(certificate.pointer, host, 0) == 1 { return true }
        let flags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)
        return X509_check_host(certificate.pointer, host, host.utf8.count, flags, nil) == 1
    }

    /// The content of each extension with this identifier, such as `1.2.840.113635.100.8.2`, in the
    /// order of the certificate. X.509 allows one; the caller refuses more.
    public func extensions(_ identifier: String) throws(CryptoFailure) -> [[UInt8]] {
        let what = "reading a certificate's extensions"
        let object = try Owned(OBJ_txt2obj(identifier, 1), else: what) { ASN1_OBJECT_free($0) }
        let certificate = try parsed(what)
        var found: [[UInt8]] = []
        var at: Int32 = -1
        while case let next = X509_get_ext_by_OBJ(certificate.pointer, object.pointer, at), next >= 0 {
            at = next
            found.append(Self.bytes(of: X509_EXTENSION_get_data(X509_get_ext(certificate.pointer, at))))
        }
        return found
    }

    /// Makes an `X509 *` for a call of OpenSSL.
    func parsed(_ what: String) throws(CryptoFailure) -> Owned { try Self.parse(der, what) }

    /// Makes an `X509 *` from its DER form, which must have no further bytes.
    private static func parse(_ der: [UInt8], _ what: String) throws(CryptoFailure) -> Owned {
        let (parsed, used) = der.withUnsafeBufferPointer { der in
            var start = der.baseAddress
            let parsed = d2i_X509(nil, &start, der.count)
            return (parsed, start.map { $0 - (der.baseAddress ?? $0) } ?? 0)
        }
        let certificate = try Owned(parsed, else: what) { X509_free($0) }
        guard used == der.count else { throw CryptoFailure("\(what): bytes follow the certificate") }
        return certificate
    }

    /// The DER form of an `X509 *`, whose other properties are not read.
    static func der(of x509: OpaquePointer) throws(CryptoFailure) -> [UInt8] {
        try encoded("writing a certificate") { i2d_X509(x509, $0) }
    }

    public static func == (a: Certificate, b: Certificate) -> Bool { a.der == b.der }
    public func hash(into hasher: inout Hasher) { hasher.combine(der) }
}

extension Certificate {
    private static func alternativeNames(_ certificate: OpaquePointer) -> [(type: Int32, text: String)] {
        guard let found = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) else {
            return []  // None, or the extension occurs twice: there is no usable name.
        }
        let names = OpaquePointer(found)
        defer { GENERAL_NAMES_free(names) }
        return (0..<OPENSSL_sk_num(names)).compactMap { index in
            guard let name = OPENSSL_sk_value(names, index) else { return nil }
            var type: Int32 = 0
            guard let value = GENERAL_NAME_get0_value(name.assumingMemoryBound(to: GENERAL_NAME.self), &type),
                type == GEN_URI || type == GEN_DNS
            else { return nil }
            let text = bytes(of: UnsafePointer(value.assumingMemoryBound(to: ASN1_STRING.self)))
            return (type, String(decoding: text, as: UTF8.self))
        }
    }

    package static func bytes(of string: UnsafePointer<ASN1_STRING>?) -> [UInt8] {
        guard let string, let start = ASN1_STRING_get0_data(string) else { return [] }
        return [UInt8](UnsafeBufferPointer(start: start, count: Int(ASN1_STRING_length(string))))
    }

    package static func timestamp(_ time: UnsafePointer<ASN1_TIME>?, of what: String) throws(CryptoFailure) -> Timestamp
    {
        let epoch = ASN1_TIME_set(nil, 0)
        defer { ASN1_TIME_free(epoch) }
        var days: Int32 = 0
        var seconds: Int32 = 0
        guard let time, ASN1_TIME_diff(&days, &seconds, epoch, time) == 1 else {
            throw CryptoFailure.drained("\(what): its dates")
        }
        return Timestamp(seconds: Int64(days) * 86_400 + Int64(seconds))
    }

    /// The output of one of OpenSSL's `i2d` functions.
    static func encoded(
        _ what: String, _ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>) -> Int32
    ) throws(CryptoFailure) -> [UInt8] {
        var start: UnsafeMutablePointer<UInt8>?
        let count = write(&start)
        guard count > 0, let start else { throw CryptoFailure.drained(what) }
        defer { CRYPTO_free(start, #file, #line) }
        return [UInt8](UnsafeBufferPointer(start: start, count: Int(count)))
    }
}
