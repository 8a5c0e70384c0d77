import Crypto

extension Settings {
    /// Returns the pin of the phones: the SHA-256 of the public key of the authority that signed
    /// the relay's certificate.
    public func loadPin() throws(Failure) -> [UInt8] {
        let path = path(of: tls.authority)
        let next = "Check 'tls.ca' in the settings: it names the authority of the relay's certificate."
        let pem: [UInt8]
        do throws(Files.Problem) {
            pem = try Files.read(path)
        } catch {
            throw Failure(.failed, error.text, next: next)
        }
        let certificates: [Certificate]
        do throws(CryptoFailure) {
            certificates = try Certificate.all(pem: pem)
        } catch {
            throw Failure(.failed, "\(path): \(error.description)", next: next)
        }
        guard let authority = certificates.first else {
            throw Failure(.failed, "\(path): holds no certificate", next: next)
        }
        return authority.spkiThumbprint
    }
}
