import Crypto
import TLS
import World

/// A fault in the service's TLS.
public enum TLSFault: String, Sendable, CaseIterable {
    /// The certificate is for another host.
    case wrongName = "wrong-name"
    case expired
    /// The certificate is signed by an authority that no client was configured to trust.
    case foreignAuthority = "foreign-authority"
    /// The service refuses a client certificate with an alert, because it does not know its
    /// authority.
    case refusesCertificate = "refuses-certificate"
}

extension FakeTeam {
    /// Returns a TLS context that has this fault.
    public func tls(_ fault: TLSFault) throws -> TLSServerContext {
        let wrong: IssuedCertificate
        var takes = providers
        switch fault {
        case .wrongName: wrong = try authority.issueServer(names: ["another.invalid"], days: 30, at: made)
        case .expired:
            let key = try P256PrivateKey.generate(randomness)
            let request = CertificateRequest(
                key: key.publicKey, commonName: names.first ?? "", names: names.map { .init(host: $0) },
                usages: [.serverAuth], notBefore: made - .seconds(172_800), notAfter: made - .seconds(86_400))
            wrong = IssuedCertificate(certificate: try authority.issue(request), key: key)
        case .foreignAuthority:
            wrong = try stranger().issueServer(names: names, days: 30, at: made)
        case .refusesCertificate:
            wrong = server
            takes = try stranger()
        }
        return try TLSServerContext(
            certificateChainPEM: wrong.certificatePEM(), privateKeyPEM: wrong.keyPEM(),
            websitesCA: takes.certificatePEM())
    }

    private func stranger() throws(CryptoFailure) -> CertificateAuthority {
        try CertificateAuthority.create(commonName: "A stranger", days: 30, at: made, randomness: randomness)
    }
}
