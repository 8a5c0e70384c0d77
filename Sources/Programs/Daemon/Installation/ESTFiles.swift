import Bytes
import Crypto
import Curl
import EST
import EventLoop
import Log
import TLS
import World

extension LoadedFilesReader {
    /// Reads the files of the EST server. Returns nil if none is set, or a file is wrong.
    mutating func est() -> ESTIssuer.Options? {
        let est = settings.est
        guard let address = est.url, let authority = est.authority else { return nil }
        let trusted = bytes(authority)
        _ = certificate(authority, trusted)
        let password = est.passwordFile.flatMap { line(of: $0) }
        let shown = est.certificate.flatMap { file in est.key.flatMap { clientCertificate(file, $0) } }
        guard let trusted, (est.passwordFile == nil) == (password == nil), (est.certificate == nil) == (shown == nil)
        else { return nil }
        var options = ESTIssuer.Options(url: address.url, authorities: trusted)
        options.documents = est.documents?.url
        if let username = est.username, let password { options.account = (username, password) }
        options.certificate = shown
        return options
    }

    private mutating func clientCertificate(
        _ file: FileName, _ keyFile: FileName
    ) -> WebClientOptions.ClientCertificate? {
        let chain = bytes(file)
        let isCertificate = certificate(file, chain) != nil
        let key = secret(keyFile)
        guard let chain, isCertificate, let key else { return nil }
        do throws(TLSFailure) {
            _ = try TLSClientContext(roots: .pem(chain), certificateChainPEM: chain, privateKeyPEM: key)
        } catch {
            problems.append(
                "\(settings.path(of: keyFile)): cannot be used with \(settings.path(of: file)): \(error.description)")
            return nil
        }
        return WebClientOptions.ClientCertificate(chain: chain, key: key)
    }
}

extension ESTIssuer.Options {
    /// The reason why the server cannot be used, as far as that shows without asking for a
    /// certificate; nil if none is known.
    func fault(root: Certificate) -> String? {
        do {
            return try EventLoop.run("est", time: SystemTime()) { _ in
                let issuer = ESTIssuer(self)
                defer { issuer.close() }
                return await issuer.fault(root: root)
            }
        } catch {
            return "\(error)"
        }
    }
}
