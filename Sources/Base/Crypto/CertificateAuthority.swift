import Bytes
import World

/// The private key of an authority, in this process or in a device that signs for it.
public protocol AuthorityKey: Sendable {
    var publicKey: P256PublicKey { get }
    /// Signs a message by ECDSA with SHA-256. Returns r‖s, 64 bytes.
    func sign(_ message: [UInt8]) throws(CryptoFailure) -> [UInt8]
}

extension P256PrivateKey: AuthorityKey {}

/// A certificate authority of the installation, with a P-256 key. Each of the two (websites,
/// phones) signs leaf certificates and its CRL directly. Tests: `CertificateAuthorityTests`.
public final class CertificateAuthority: Sendable {
    public let certificate: Certificate
    public let key: any AuthorityKey
    /// The URL of the revocation list, for the certificates of clients; nil if there is none.
    public let revocationListURL: String?
    private let randomness: any Randomness
    /// The time by which certificates are antedated, so that a clock that is slightly slow accepts
    /// them at once.
    static let leeway: Duration = .seconds(300)

    public init(
        certificate: Certificate, key: any AuthorityKey, revocationListURL: String? = nil,
        randomness: any Randomness = SystemRandomness()
    ) throws(CryptoFailure) {
        guard certificate.spki == key.publicKey.spki else {
            throw CryptoFailure("the authority's key does not match its certificate")
        }
        self.certificate = certificate
        self.key = key
        self.revocationListURL = revocationListURL
        self.randomness = randomness
    }

    public convenience init(
        certificatePEM: [UInt8], keyPEM: Secret, randomness: any Randomness = SystemRandomness()
    ) throws(CryptoFailure) {
        try self.init(
            certificate: try Certificate(pem: certificatePEM), key: try P256PrivateKey(pem: keyPEM),
            randomness: randomness)
    }

    public static func create(
        commonName: String, days: Int, at now: Timestamp, randomness: any Randomness = SystemRandomness()
    ) throws(CryptoFailure) -> CertificateAuthority {
        let key = try P256PrivateKey.generate(randomness)
        let request = CertificateRequest(
            key: key.publicKey, commonName: commonName, notBefore: now - leeway, notAfter: now + .days(days),
            isAuthority: true)
        let certificate = try sign(
            request, issuer: request.subject(), keyID: X509Identifier.keyID(of: key.publicKey), key: key,
            randomness: randomness)
        return try CertificateAuthority(certificate: certificate, key: key, randomness: randomness)
    }

    /// Creates the authority that shall follow this one: it has the same name and another key.
    public func successor(days: Int, at now: Timestamp) throws(CryptoFailure) -> CertificateAuthority {
        let key = try P256PrivateKey.generate(randomness)
        let request = CertificateRequest(
            key: key.publicKey, notBefore: now - Self.leeway, notAfter: now + .days(days), isAuthority: true)
        let certificate = try Self.sign(
            request, subject: certificate.subject, issuer: certificate.subject,
            keyID: X509Identifier.keyID(of: key.publicKey), key: key, randomness: randomness)
        return try CertificateAuthority(certificate: certificate, key: key, randomness: randomness)
    }

    public func certificatePEM() throws(CryptoFailure) -> [UInt8] { try certificate.pem() }
    /// The private key. Throws if the key is in a device.
    public func keyPEM() throws(CryptoFailure) -> Secret {
        guard let key = key as? P256PrivateKey else { throw CryptoFailure("the authority's key is in a device") }
        return try key.pem()
    }

    /// SHA-256 of the SubjectPublicKeyInfo, which is the `pin` of an activation.
    public var keyThumbprint: [UInt8] { certificate.spkiThumbprint }

    /// Issues a certificate for any request, with a random serial number.
    public func issue(_ request: CertificateRequest) throws(CryptoFailure) -> Certificate {
        try Self.sign(request, issuer: certificate.subject, keyID: keyID, key: key, randomness: randomness)
    }

    /// The key identifier in our own certificate. An authority made with another tool may have
    /// computed it in another way.
    var keyID: [UInt8] {
        certificate.subjectKeyID.isEmpty ? X509Identifier.keyID(of: key.publicKey) : certificate.subjectKeyID
    }

    /// Issues a certificate for a server with these host names and addresses, with a new key.
    public func issueServer(names: [String], days: Int, at now: Timestamp) throws(CryptoFailure) -> IssuedCertificate {
        let key = try P256PrivateKey.generate(randomness)
        let request = CertificateRequest(
            key: key.publicKey, commonName: names.first ?? "", names: names.map { .init(host: $0) },
            usages: [.serverAuth], notBefore: now - Self.leeway, notAfter: now + .days(days))
        return IssuedCertificate(certificate: try issue(request), key: key)
    }

    /// Issues a certificate for a server with these names and this key.
    public func issueServer(
        names: [CertificateRequest.Name], key: P256PublicKey, days: Int, at now: Timestamp
    ) throws(CryptoFailure) -> Certificate {
        var commonName = ""
        if case .dns(let host)? = names.first { commonName = host }
        return try issue(
            CertificateRequest(
                key: key, commonName: commonName, names: names, usages: [.serverAuth], notBefore: now - Self.leeway,
                notAfter: now + .days(days)))
    }

    /// Issues the certificate of the next authority that takes this one's place. It has the same
    /// subject as this one, so that it counts as self-issued (RFC 5280 §6.1) and the path may be one
    /// longer. Who trusts only this authority thus trusts the next one, too.
    public func crossCertificate(
        of next: Certificate, at now: Timestamp
    ) throws(CryptoFailure) -> Certificate {
        guard next.subject == certificate.subject else {
            throw CryptoFailure("the next authority must have the name of this one")
        }
        return try Self.sign(
            CertificateRequest(
                key: try next.publicKey(), notBefore: now - Self.leeway,
                notAfter: min(certificate.notAfter, next.notAfter), isAuthority: true),
            subject: next.subject, issuer: certificate.subject, keyID: keyID, key: key, randomness: randomness)
    }

    /// Issues a certificate for a client that keeps its private key.
    public func issueClient(
        uri: String, key: P256PublicKey, days: Int, at now: Timestamp
    ) throws(CryptoFailure) -> Certificate {
        var request = CertificateRequest(
            key: key, commonName: uri, names: [.uri(uri)], usages: [.clientAuth], notBefore: now - Self.leeway,
            notAfter: now + .days(days))
        request.revocationListURL = revocationListURL
        return try issue(request)
    }

    /// Issues a certificate for a key that signs documents. TLS does not accept it.
    public func issueSigner(
        uri: String, key: P256PublicKey, days: Int, at now: Timestamp
    ) throws(CryptoFailure) -> Certificate {
        var request = CertificateRequest(
            key: key, commonName: uri, names: [.uri(uri)], usages: [.documentSigning], notBefore: now - Self.leeway,
            notAfter: now + .days(days))
        request.revocationListURL = revocationListURL
        return try issue(request)
    }

    /// Issues a certificate for a client, with a new key.
    public func issueClient(uri: String, days: Int, at now: Timestamp) throws(CryptoFailure) -> IssuedCertificate {
        let key = try P256PrivateKey.generate(randomness)
        return IssuedCertificate(
            certificate: try issueClient(uri: uri, key: key.publicKey, days: days, at: now), key: key)
    }

    private static func sign(
        _ request: CertificateRequest, subject: [UInt8]? = nil, issuer: [UInt8], keyID: [UInt8], key: any AuthorityKey,
        randomness: any Randomness
    ) throws(CryptoFailure) -> Certificate {
        let body = DER.sequence(
            DER.explicit(0, DER.integer([2])), DER.integer(randomness.bytes(16)), X509Identifier.ecdsaWithSHA256,
            issuer, DER.sequence(DER.time(request.notBefore), DER.time(request.notAfter)), subject ?? request.subject(),
            request.key.spki, request.extensions(authorityKeyID: keyID))
        return try Certificate(der: try signed(body, by: key))
    }

    static func signed(_ body: [UInt8], by key: any AuthorityKey) throws(CryptoFailure) -> [UInt8] {
        guard let signature = ECDSASignature.der(fromRaw: try key.sign(body)) else {
            throw CryptoFailure("the authority's key made an invalid signature")
        }
        return DER.sequence(body, X509Identifier.ecdsaWithSHA256, DER.bits(signature))
    }
}

/// A certificate together with its new private key.
public struct IssuedCertificate: Sendable {
    public let certificate: Certificate
    public let key: P256PrivateKey

    package init(certificate: Certificate, key: P256PrivateKey) {
        self.certificate = certificate
        self.key = key
    }

    public func certificatePEM() throws(CryptoFailure) -> [UInt8] { try certificate.pem() }
    public func keyPEM() throws(CryptoFailure) -> Secret { try key.pem() }
}

extension Duration {
    static func days(_ days: Int) -> Duration { .seconds(days * 86_400) }
}
