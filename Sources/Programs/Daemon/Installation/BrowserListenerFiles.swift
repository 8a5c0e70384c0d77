import Crypto
import HTTP
import TLS

extension LoadedFilesReader {
    /// Makes the TLS context of the listener for browsers; nil without one.
    ///
    /// It requests no certificate from clients. The relay does its other work without this
    /// listener, so an expired certificate is only logged.
    mutating func browserContext() -> TLSServerContext? {
        let phone = settings.phone
        guard phone.listen != nil, let origin = phone.origin, let file = phone.certificate, let keyFile = phone.key
        else { return nil }
        let pem = bytes(file)
        let leaf = certificate(file, pem, mayHaveExpired: true)
        let key = secret(keyFile)
        guard let pem, let leaf, let key else { return nil }
        guard leaf.isValid(forHost: origin.host) else {
            problems.append(
                "\(settings.path(of: file)): is not for \(origin.host), the host of phone.origin, so every browser "
                    + "would refuse it")
            return nil
        }
        do {
            return try TLSServerContext(
                certificateChainPEM: pem, privateKeyPEM: key, application: settings.http1 == .on ? .http : .http2)
        } catch {
            problems.append("\(settings.path(of: keyFile)): cannot be used with \(settings.path(of: file)): \(error)")
            return nil
        }
    }
}
