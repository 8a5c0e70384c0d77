import Bytes
import Crypto
import Relay
import World

/// The authority of the websites' certificates, with its key.
///
/// Only the operator's tool loads the key in this way. So `tls.websites_key` can be kept elsewhere,
/// and brought back when something has to be signed, unless `tls.websites_renewal` is on.
public struct WebsiteAuthority: Sendable {
    public let authority: CertificateAuthority

    /// A certificate with its new key.
    public struct Issued: Sendable {
        public let certificate: [UInt8]
        public let key: [UInt8]
        public let thumbprint: [UInt8]
        public let stored: WebsiteCertificate
    }

    /// Loads the authority whose key `tls.websites_key` is. During a replacement, `tls.websites`
    /// holds a second authority.
    public static func load(_ settings: Settings) throws(Failure) -> WebsiteAuthority {
        let keyPath = settings.path(of: settings.tls.websitesKey)
        let certificates: [UInt8]
        let key: Secret
        do throws(Files.Problem) {
            certificates = try Files.read(settings.path(of: settings.tls.websites))
            key = Secret(try Files.readPrivate(keyPath))
        } catch {
            throw Failure(
                .failed, error.text,
                next: "The websites' authority signs new certificates: restore its certificate and key.")
        }
        do throws(CryptoFailure) {
            return WebsiteAuthority(authority: try CertificateAuthority(among: certificates, keyPEM: key))
        } catch {
            throw Failure(
                .failed, "\(keyPath): \(error.description)",
                next: "It must be the key of the websites' authority, in PEM.")
        }
    }

    /// Returns the authority that signs new certificates, by the SHA-256 of its key: the first one in
    /// `tls.websites`. Its private key is not needed.
    public static func current(_ settings: Settings) throws(Failure) -> [UInt8] {
        let path = settings.path(of: settings.tls.websites)
        let next = "Check 'tls.websites' in the settings: it names the authorities of the websites."
        let pem: [UInt8]
        do throws(Files.Problem) {
            pem = try Files.read(path)
        } catch {
            throw Failure(.failed, error.text, next: next)
        }
        guard let first = try? Certificate.all(pem: pem).first else {
            throw Failure(.failed, "\(path): holds no certificate", next: next)
        }
        return first.spkiThumbprint
    }

    /// Issues a certificate with a new key.
    public func issue(for website: String, at now: Timestamp) throws(Failure) -> Issued {
        do throws(CryptoFailure) {
            let issued = try authority.issueClient(
                uri: Relay.websiteURI + website, days: Relay.websiteCertificateDays, at: now)
            return Issued(
                certificate: try issued.certificatePEM(), key: try issued.keyPEM().reveal(),
                thumbprint: issued.certificate.spkiThumbprint,
                stored: WebsiteCertificate(issued.certificate, issuer: authority.keyThumbprint))
        } catch {
            throw Failure(.failed, "no certificate can be issued: \(error.description)", next: Failure.cryptoRemedy)
        }
    }
}

extension CertificateAuthority {
    /// Creates the authority of a key whose certificate is one of several. If the key has several
    /// certificates, the first one counts.
    public convenience init(among certificates: [UInt8], keyPEM: Secret) throws(CryptoFailure) {
        let key = try P256PrivateKey(pem: keyPEM)
        let all = try Certificate.all(pem: certificates)
        guard let own = all.first(where: { (try? $0.publicKey()) == key.publicKey }) ?? all.first else {
            throw CryptoFailure("there is no certificate of the authority")
        }
        try self.init(certificate: own, key: key)
    }
}
