import Crypto
import TLS
import World

/// Authorities and certificates for tests, made in this process.
public struct TestCertificates: Sendable {
    public let now = SystemTime().now()
    public let websites: CertificateAuthority
    public let phones: CertificateAuthority
    public let server: IssuedCertificate

    public init() throws {
        websites = try CertificateAuthority.create(commonName: "websites", days: 10, at: now)
        phones = try CertificateAuthority.create(commonName: "phones", days: 10, at: now)
        server = try websites.issueServer(names: ["localhost", "127.0.0.1"], days: 10, at: now)
    }

    public func serverContext(
        crl: [UInt8]? = nil, application: Application = .http2, sessions: ResumableSessions? = nil
    ) throws -> TLSServerContext {
        try TLSServerContext(
            certificateChainPEM: server.certificatePEM(), privateKeyPEM: server.keyPEM(),
            websitesCA: websites.certificatePEM(), phonesCA: phones.certificatePEM(), crl: crl,
            application: application, sessions: sessions)
    }

    public func clientContext(_ certificate: IssuedCertificate? = nil) throws -> TLSClientContext {
        try TLSClientContext(
            roots: .pem(websites.certificatePEM()), certificateChainPEM: certificate?.certificatePEM(),
            privateKeyPEM: certificate?.keyPEM())
    }

    public func client(
        of authority: CertificateAuthority? = nil, names: [CertificateRequest.Name] = [.uri("twoefay:website:shop")],
        usages: [CertificateRequest.Usage] = [.clientAuth], from: Duration = .seconds(-60), to: Duration = .seconds(600)
    ) throws -> IssuedCertificate {
        let key = try P256PrivateKey.generate(SystemRandomness())
        let request = CertificateRequest(
            key: key.publicKey, commonName: "client", names: names, usages: usages, notBefore: now + from,
            notAfter: now + to)
        return IssuedCertificate(certificate: try (authority ?? websites).issue(request), key: key)
    }
}
