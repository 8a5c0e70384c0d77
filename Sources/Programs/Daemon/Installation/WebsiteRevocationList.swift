import Bytes
import Crypto
import World

/// The revocation list of the websites' authority, which `tls.revoked` names.
///
/// Relays refuse a revoked key without it, because the store no longer has the key. The list is for
/// other servers, and refuses the certificate in the handshake already. Its entries are the only
/// record of earlier revocations, so a new list takes over those of the old one.
public struct WebsiteRevocationList: Sendable {
    public let path: String
    private let authority: CertificateAuthority

    public static let days: Int64 = 365

    /// The result of a change.
    public struct Written: Sendable {
        public let count: Int
        public let nextUpdate: Timestamp
    }

    /// - Parameter path: the file; nil for the one in the settings.
    public init(_ settings: Settings, path: String? = nil) throws(Failure) {
        self.path =
            path ?? settings.tls.revoked.map { settings.path(of: $0) }
            ?? Files.resolve("website-crl.pem", in: settings.directory)
        authority = try WebsiteAuthority.load(settings).authority
    }

    /// Whether this authority has signed the certificates of that issuer, by the SHA-256 of its key.
    public func isOfIssuer(_ issuer: [UInt8]) -> Bool { authority.keyThumbprint == issuer }

    /// Writes the list anew, with further certificates. Lists of other authorities in the file stay.
    ///
    /// - Parameter former: the authority whose list goes, because relays refuse to start with the list
    ///   of an authority that they do not know.
    public func write(
        adding serials: [String] = [], without former: Certificate? = nil, days: Int64 = days, at now: Timestamp
    ) throws(Failure) -> Written {
        var others: [CertificateRevocationList] = []
        var entries: [RevokedCertificate] = []
        do throws(CryptoFailure) {
            if Files.exists(path) {
                for list in try CertificateRevocationList.all(pem: try bytes()) {
                    if list.isSigned(by: authority.certificate) {
                        entries += try list.entries()
                    } else if former.map({ list.isSigned(by: $0) }) != true {
                        others.append(list)
                    }
                }
            }
        } catch {
            throw Failure(.failed, "\(path): \(error.description)", next: "Nothing was written. Restore the file.")
        }
        let known = Set(entries.map(\.serial))
        entries += serials.filter { !known.contains($0) }.map { RevokedCertificate(serial: $0, at: now) }
        do {
            var pem = try authority.makeCRL(
                revoked: entries.map { ($0.serial, $0.at) }, days: Int(days), at: now)
            for other in others { pem += try other.pem() }
            if Files.exists(path) {
                try Files.rewrite(path, pem)
            } else {
                try Files.create(path, pem, mode: 0o644)
            }
        } catch {
            throw Failure(.failed, "the revocation list cannot be written: \(error)", next: "The old list stays.")
        }
        return Written(count: entries.count, nextUpdate: now + .seconds(days * 86_400))
    }

    private func bytes() throws(CryptoFailure) -> [UInt8] {
        do throws(Files.Problem) {
            return try Files.read(path)
        } catch {
            throw CryptoFailure(error.reason)
        }
    }
}
