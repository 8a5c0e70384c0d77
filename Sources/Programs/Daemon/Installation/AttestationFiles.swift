import Attestation
import Crypto
import World

extension LoadedFilesReader {
    /// Reads the further roots and the revocation list.
    mutating func attestations() -> AttestationVerifier? {
        let wanted = settings.attestations
        let (apple, android) = (roots(wanted.appleRoots), roots(wanted.androidRoots))
        let list = wanted.revocations.flatMap { revocations($0) }
        do throws(CryptoFailure) {
            return AttestationVerifier(
                roots: try AttestationRoots.pinned(furtherApple: apple, furtherAndroid: android),
                appleApps: wanted.appleApps?.all ?? [], androidApps: wanted.androidApps?.all ?? [],
                revocationList: list, maxListAge: .seconds(86_400 * Int64(wanted.revocationDays)),
                acceptsDevelopment: wanted.development == .accepted)
        } catch {
            problems.append("the roots of attestations cannot be read: \(error.description)")
            return nil
        }
    }

    /// Returns the PEM text of further roots. Reports a problem if it holds no certificate.
    private mutating func roots(_ file: FileName?) -> [UInt8] {
        guard let file, let pem = bytes(file) else { return [] }
        let path = settings.path(of: file)
        do throws(CryptoFailure) {
            let certificates = try Certificate.all(pem: pem)
            guard !certificates.isEmpty else {
                problems.append("\(path): holds no certificate")
                return []
            }
            return pem
        } catch {
            problems.append("\(path): \(error.description)")
            return []
        }
    }

    private mutating func revocations(_ file: FileName) -> RevocationList? {
        let path = settings.path(of: file)
        do throws(Files.Problem) {
            let bytes = try Files.read(path, atMost: 64 << 20)
            let fetchedAt = try Files.modified(path)
            do throws(RevocationList.Fault) {
                return try RevocationList(json: bytes, fetchedAt: fetchedAt)
            } catch {
                problems.append("\(path): is not Google's revocation list: \(error.description)")
            }
        } catch {
            problems.append(error.text)
        }
        return nil
    }
}
