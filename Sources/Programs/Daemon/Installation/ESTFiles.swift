import Bytes
import Crypto
import Curl
import EST
import EventLoop
import Log
import World

extension LoadedFilesReader {
    /// Reads the files of the EST server. Returns nil if none is set, or a file is wrong. An expired
    /// one is not wrong: phones then get no certificates, but they log in.
    mutating func est() -> ESTIssuer.Options? {
        let est = settings.est
        guard let address = est.url, let authority = est.authority else { return nil }
        let trusted = bytes(authority)
        _ = certificate(authority, trusted, mayHaveExpired: true)
        let password = est.passwordFile.flatMap { line(of: $0) }
        var shown: WebClientOptions.ClientCertificate?
        if let file = est.certificate, let keyFile = est.key,
            let (chain, key) = clientCertificate(file, keyFile, mayHaveExpired: true)
        {
            shown = WebClientOptions.ClientCertificate(chain: chain, key: key)
        }
        guard let trusted, (est.passwordFile == nil) == (password == nil), (est.certificate == nil) == (shown == nil)
        else { return nil }
        var options = ESTIssuer.Options(url: address.url, authorities: trusted)
        options.documents = est.documents?.url
        if let username = est.username, let password { options.account = (username, password) }
        options.certificate = shown
        return options
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
