import Bytes
import Crypto
import HTTP
import World

/// The relay's server certificate with its key and chain, as `twoefay server` writes them.
///
/// The chain is checked as callers check it before a file is replaced. A failure leaves the present
/// files, so a relay never finds a certificate with the key of another one for longer than the two
/// renames take; a reload in between keeps the old pair.
public struct ServerCertificate: Sendable {
    /// The longest validity that Apple's devices accept, whichever authority signed it.
    public static let days: Int64 = 825

    let settings: Settings
    /// The certificate that is in use.
    public let present: Certificate
    /// The certificates that follow it in the file.
    let chain: [Certificate]

    public init(_ settings: Settings) throws(Failure) {
        self.settings = settings
        let path = settings.path(of: settings.tls.certificate)
        let all: [Certificate]
        do {
            all = try Certificate.all(pem: try Files.read(path))
        } catch {
            throw Failure(.failed, "\(path): \(error)", next: "Check 'tls.certificate' in the settings.")
        }
        guard let first = all.first else {
            throw Failure(.failed, "\(path): holds no certificate", next: "Check 'tls.certificate' in the settings.")
        }
        present = first
        chain = Array(all.dropFirst())
    }

    /// Returns the names of the new certificate: those of the present one, unless others are given.
    public func names(_ given: [String]) throws(Failure) -> [CertificateRequest.Name] {
        let names = given.isEmpty ? present.hosts : given.map { CertificateRequest.Name(host: $0) }
        guard !names.isEmpty else {
            throw Failure(.failed, "the present certificate has no host name", next: "Give the names with --host.")
        }
        return names
    }

    /// Issues a new certificate, and replaces the files.
    ///
    /// - Parameters:
    ///   - authority: the authority that issues it.
    ///   - chain: the certificates that follow it; nil for those of the present one.
    ///   - keepsKey: whether the present private key stays.
    public func renew(
        by authority: CertificateAuthority, names: [CertificateRequest.Name], chain: [Certificate]? = nil,
        keepsKey: Bool, days: Int64 = days, at now: Timestamp
    ) throws(Failure) -> Certificate {
        let chain = chain ?? self.chain
        let keyPath = settings.path(of: settings.tls.key)
        let issued: Certificate
        let keyPEM: [UInt8]?
        var pem: [UInt8] = []
        do {
            let key =
                keepsKey
                ? try P256PrivateKey(pem: Secret(try Files.readPrivate(keyPath)))
                : try P256PrivateKey.generate(SystemRandomness())
            issued = try authority.issueServer(names: names, key: key.publicKey, days: Int(days), at: now)
            keyPEM = keepsKey ? nil : try key.pem().reveal()
            for certificate in [issued] + chain { pem += try certificate.pem() }
        } catch {
            throw Failure(
                .failed, "no certificate can be issued: \(error)",
                next: "Nothing was changed. If a file is named, look at it. " + Failure.cryptoRemedy)
        }
        try check([issued] + chain, by: authority, at: now)
        do throws(Files.Problem) {
            if let keyPEM { try Files.rewrite(keyPath, keyPEM) }
            try Files.rewrite(settings.path(of: settings.tls.certificate), pem)
        } catch {
            throw Failure(.failed, error.text, next: "Repeat the command. The relays keep what they have read.")
        }
        return issued
    }

    /// Writes the present certificate with another chain. The key stays.
    func rechain(_ chain: [Certificate], by authority: CertificateAuthority, at now: Timestamp) throws(Failure) {
        try check([present] + chain, by: authority, at: now)
        do {
            var pem: [UInt8] = []
            for certificate in [present] + chain { pem += try certificate.pem() }
            try Files.rewrite(settings.path(of: settings.tls.certificate), pem)
        } catch {
            throw Failure(.failed, "the chain cannot be written: \(error)", next: "Repeat the command.")
        }
    }

    private func check(
        _ certificates: [Certificate], by authority: CertificateAuthority, at now: Timestamp
    ) throws(Failure) {
        let host = settings.origin.host
        guard certificates[0].isValid(forHost: host) else {
            throw Failure(
                .usage, "the names do not contain \(host), the host of the origin, so every caller would refuse it",
                next: "Nothing was changed. Add it with --host.")
        }
        let roots = [authority.certificate] + certificates.dropFirst()
        for root in roots {
            guard let fault = CertificatePath.serverFault(certificates, authority: root, at: now) else { continue }
            throw Failure(
                .failed, "callers would refuse the new certificate: \(fault)",
                next: "Nothing was changed. Look at the authority in tls.ca and its chain, or replace the authority: "
                    + "docs/operators/replacing-authorities.md.")
        }
    }
}

/// The authority of the server's certificate, whose key phones pin. Only the operator's tool reads
/// its key, which may be kept elsewhere.
public enum ServerAuthority {
    public static let keyName = "ca.key"

    /// Loads the authority in `tls.ca`.
    ///
    /// - Parameter keyPath: the file of its key; nil for `ca.key` beside the settings.
    public static func load(_ settings: Settings, keyPath: String?) throws(Failure) -> CertificateAuthority {
        let path = keyPath ?? Files.resolve(keyName, in: settings.directory)
        return try load(certificate: settings.path(of: settings.tls.authority), key: path)
    }

    static func load(certificate: String, key: String) throws(Failure) -> CertificateAuthority {
        let next = "Bring the key of the server's authority back, and name it with --authority-key."
        let pem: [UInt8]
        let secret: Secret
        do throws(Files.Problem) {
            pem = try Files.read(certificate)
            secret = Secret(try Files.readPrivate(key))
        } catch {
            throw Failure(.failed, error.text, next: next)
        }
        do throws(CryptoFailure) {
            return try CertificateAuthority(certificatePEM: pem, keyPEM: secret)
        } catch {
            throw Failure(.failed, "\(key): \(error.description)", next: next)
        }
    }
}
