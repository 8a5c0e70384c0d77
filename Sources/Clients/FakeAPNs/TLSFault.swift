import Crypto
import TLS
import World

/// What can be wrong with the service's side of TLS.
public enum TLSFault: String, Sendable, CaseIterable {
    /// The certificate is for another host.
    case wrongName = "wrong-name"
    case expired
    /// Signed by somebody whom nobody has been told to trust.
    case foreignAuthority = "foreign-authority"
    /// A client that shows a certificate gets an alert: its authority is not known here.
    case refusesCertificate = "refuses-certificate"
}

extension FakeTeam {
    /// What the service shows when this is wrong, and whose certificates it takes from providers.
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
