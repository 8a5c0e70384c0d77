import Bytes
import Crypto
import KeyService
import Relay

/// The issuer of the certificates that websites renew by themselves.
public enum WebsiteIssuer: Sendable {
    /// The authority with its key, in this process.
    case authority(CertificateAuthority)
    /// The process `twoefay-keys`, which has the key of the authority with this certificate.
    case service(Certificate)

    /// Returns the issuer for the relay; nil if the key is in a process that it does not ask.
    func certificates(by service: RemoteCertificates?) -> (any WebsiteCertificates)? {
        switch self {
        case .authority(let authority): authority
        case .service(let certificate): service.map { RemoteWebsiteCertificates($0, authority: certificate) }
        }
    }
}

extension LoadedFilesReader {
    /// Returns the issuer for websites that renew; nil if they may not.
    ///
    /// - Parameter first: the first certificate in `tls.websites`, whose authority signs.
    mutating func websiteIssuer(_ first: Certificate?) -> WebsiteIssuer? {
        guard settings.tls.websitesRenewal == .on, let first else { return nil }
        return settings.keys == nil ? websiteAuthority(first).map { .authority($0) } : .service(first)
    }

    private mutating func websiteAuthority(_ first: Certificate) -> CertificateAuthority? {
        let path = settings.path(of: settings.tls.websitesKey)
        let remedy =
            "tls.websites_renewal needs the key of the first authority in "
            + "\(settings.path(of: settings.tls.websites)): put it there, or set tls.websites_renewal: off"
        let key: Secret
        do throws(Files.Problem) {
            key = try Files.readSecret(path)
        } catch {
            problems.append("\(error.text). \(remedy)")
            return nil
        }
        do throws(CryptoFailure) {
            return try CertificateAuthority(certificate: first, key: try P256PrivateKey(pem: key))
        } catch {
            problems.append("\(path): \(error.description). \(remedy)")
            return nil
        }
    }
}
