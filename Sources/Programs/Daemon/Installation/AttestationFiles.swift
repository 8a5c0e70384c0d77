import Attestation
import Crypto
import World

/// The judge of the phones' attestations, with its roots and its revocation list.
public struct AttestationFiles: Sendable {
    public internal(set) var verifier: AttestationVerifier
    /// The reason why the revocation list cannot be read; nil if it was read, or if none is set.
    ///
    /// It is no problem of the files as a whole: a relay that does not start, or keeps an expired
    /// certificate, would lock out everybody.
    public let problem: String?
}

extension LoadedFilesReader {
    /// Reads the further roots and the revocation list.
    mutating func attestations() -> AttestationFiles? {
        let wanted = settings.attestations
        let (apple, android) = (roots(wanted.appleRoots), roots(wanted.androidRoots))
        let (list, problem) = wanted.revocations.map { revocations($0) } ?? (nil, nil)
        if let problem { warnings.append(problem) }
        do throws(CryptoFailure) {
            let verifier = AttestationVerifier(
                roots: try AttestationRoots.pinned(furtherApple: apple, furtherAndroid: android),
                appleApps: wanted.appleApps?.all ?? [], androidApps: wanted.androidApps?.all ?? [],
                revocationList: list, maxListAge: .seconds(86_400 * Int64(wanted.revocationDays)),
                acceptsDevelopment: wanted.development == .accepted)
            return AttestationFiles(verifier: verifier, problem: problem)
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

    private func revocations(_ file: FileName) -> (list: RevocationList?, problem: String?) {
        let path = settings.path(of: file)
        do throws(Files.Problem) {
            let bytes = try Files.read(path, atMost: 64 << 20)
            let fetchedAt = try Files.modified(path)
            do throws(RevocationList.Fault) {
                return (try RevocationList(json: bytes, fetchedAt: fetchedAt), nil)
            } catch {
                return (nil, "\(path): is not Google's revocation list: \(error.description)")
            }
        } catch {
            return (nil, error.text)
        }
    }
}

extension AttestationVerifier {
    /// Returns this judge with another revocation list.
    func with(_ list: RevocationList) -> AttestationVerifier {
        AttestationVerifier(
            roots: roots, appleApps: appleApps, androidApps: androidApps, revocationList: list, maxListAge: maxListAge,
            acceptsDevelopment: acceptsDevelopment)
    }
}
