import Bytes
import Curl
import EventLoop
import TLS

extension LoadedFiles {
    /// The files for sending webhooks. Each of them is optional.
    public struct WebhookFiles: Sendable {
        public let allowed: [AddressRange]
        /// An authority to trust besides the system's, in PEM.
        public let authority: [UInt8]?
        public let certificate: WebClientOptions.ClientCertificate?
    }
}

extension LoadedFilesReader {
    mutating func webhooks() -> LoadedFiles.WebhookFiles {
        let webhooks = settings.webhooks
        let authority = webhooks.authority.flatMap { bytes($0) }
        // libcurl reports a bad authority file only when it connects, and then every webhook fails.
        if let file = webhooks.authority { _ = certificate(file, authority) }
        return LoadedFiles.WebhookFiles(
            allowed: webhooks.allowed?.all ?? [], authority: authority, certificate: shownToWebsites())
    }

    /// Returns the client certificate for websites that require one. It may have any key that TLS
    /// supports, because it may come from a website's own authority.
    private mutating func shownToWebsites() -> WebClientOptions.ClientCertificate? {
        guard let file = settings.webhooks.certificate, let keyFile = settings.webhooks.key,
            let (chain, key) = clientCertificate(file, keyFile)
        else { return nil }
        return WebClientOptions.ClientCertificate(chain: chain, key: key)
    }

    /// Returns a client certificate and its key, in PEM. Reports a problem if TLS cannot use them
    /// together, because that would be noticed only when a connection is made.
    mutating func clientCertificate(
        _ file: FileName, _ keyFile: FileName, mayHaveExpired: Bool = false
    ) -> ([UInt8], Secret)? {
        let chain = bytes(file)
        let isCertificate = certificate(file, chain, mayHaveExpired: mayHaveExpired) != nil
        let key = secret(keyFile)
        guard let chain, isCertificate, let key else { return nil }
        do throws(TLSFailure) {
            _ = try TLSClientContext(roots: .pem(chain), certificateChainPEM: chain, privateKeyPEM: key)
        } catch {
            problems.append(
                "\(settings.path(of: keyFile)): cannot be used with \(settings.path(of: file)): \(error.description)")
            return nil
        }
        return (chain, key)
    }
}
