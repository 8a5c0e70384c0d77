import Crypto
import World

extension Settings {
    /// Returns the pin that activations name, as the relay would: during a replacement it is that of
    /// the former authority, which every relay can prove, also one that was not reloaded yet.
    public func loadActivationPin(at now: Timestamp) throws(Failure) -> [UInt8] {
        let present = try loadPin()
        guard let file = tls.pins, let statement = try StatementFile.read(path(of: file)), statement.expiresAt > now
        else { return present }
        return statement.formerPin(before: present, chain: try ServerCertificate(self).chain) ?? present
    }

    /// Returns the pin of the authority in `tls.ca`: the SHA-256 of its public key.
    private func loadPin() throws(Failure) -> [UInt8] {
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
