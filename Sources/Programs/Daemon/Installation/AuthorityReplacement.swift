import Bytes
import Crypto
import Relay
import World

/// The replacement of the authority of websites or of phones. The relay trusts two of them during an
/// overlap: the first certificate in the file is the one that signs, the second the former one.
///
/// `begin` puts a new authority in front, and renames the former key. `finish` takes the former
/// authority out. `revert` lets the former one sign again. The relay reads the files at a reload.
/// Tested in `AuthorityReplacementTests.swift`.
public struct AuthorityReplacement: Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        case websites, phones

        fileprivate var commonName: String {
            self == .websites ? "Twoefay website authority" : "Twoefay phone authority"
        }
    }

    public let kind: Kind
    public let certificatesPath: String
    public let keyPath: String

    private static let authorityDays = 3650

    public init(_ kind: Kind, _ settings: Settings) throws(Failure) {
        self.kind = kind
        let tls = settings.tls
        certificatesPath = settings.path(of: kind == .websites ? tls.websites : tls.phones)
        keyPath = settings.path(of: kind == .websites ? tls.websitesKey : tls.phonesKey)
        guard kind == .phones, settings.hasOutsideAuthority || settings.token.module != nil else { return }
        throw Failure(
            .usage, "the authority of phones is on a token, or outside of the installation",
            next: "Put the certificate of the new one in front of the former one in \(certificatesPath).")
    }

    public var formerKeyPath: String { keyPath + ".former" }

    /// The authorities: the one that signs, and the former one during a replacement.
    public func authorities() throws(Failure) -> [Certificate] {
        do {
            return try Certificate.all(pem: try Files.read(certificatesPath))
        } catch {
            throw Failure(
                .failed, "\(certificatesPath): \(error)", next: "Check 'tls.\(kind.rawValue)' in the settings.")
        }
    }

    public func begin(at now: Timestamp) throws(Failure) -> Certificate {
        let present = try authorities()
        guard present.count == 1 else {
            throw Failure(
                .conflict, "\(certificatesPath) holds \(present.count) authorities: a replacement is under way",
                next: "Nothing was changed. Finish it first: twoefay authority finish \(kind.rawValue)")
        }
        do {
            let key = try Files.readPrivate(keyPath)
            // Lists and certificates name their issuer, so each authority needs a name of its own.
            let next = try CertificateAuthority.create(
                commonName: "\(kind.commonName) \(now.rfc3339.prefix(10)) \(now.seconds % 86_400)",
                days: Self.authorityDays, at: now)
            try Files.replace(formerKeyPath, key, mode: 0o600)
            try write([next.certificate] + present)
            try Files.rewrite(keyPath, try next.keyPEM().reveal())
            return next.certificate
        } catch {
            throw Failure(
                .failed, "the authority cannot be replaced: \(error)",
                next: "The key of the present one must be readable, and both files writable.")
        }
    }

    /// Lets the former authority sign again. The newer one stays trusted until `finish`.
    public func revert() throws(Failure) -> Certificate {
        let (first, second) = try pair()
        do {
            let key = try Files.readPrivate(keyPath)
            let former = try Files.readPrivate(formerKeyPath)
            try write([second, first])
            try Files.rewrite(keyPath, former)
            try Files.replace(formerKeyPath, key, mode: 0o600)
            return second
        } catch {
            throw Failure(.failed, "the former authority cannot be used: \(error)", next: "Restore \(formerKeyPath).")
        }
    }

    /// Takes the former authority out, and deletes its key.
    public func finish() throws(Failure) -> Certificate {
        let (first, second) = try pair()
        do {
            try write([first])
            Files.remove(formerKeyPath)
            return second
        } catch {
            throw Failure(
                .failed, "\(error)",
                next: "Nothing was changed. If a file is named, make room on its disk, let this account write to it, "
                    + "and run the command again.")
        }
    }

    /// The time at which the last certificate of a phone by the former authority expires, if the
    /// relays were reloaded on the day of the last change of the file. Phones renew in the last month.
    ///
    /// The age of the authority that signs now says nothing: after `revert` it is the older one.
    public func lastPhoneExpiry() throws(Failure) -> Timestamp {
        _ = try pair()
        do throws(Files.Problem) {
            return try Files.modified(certificatesPath) + .seconds(86_400 * (Relay.certificateDays + 1))
        } catch {
            throw Failure(.failed, error.text, next: "Check 'tls.\(kind.rawValue)' in the settings.")
        }
    }

    private func pair() throws(Failure) -> (Certificate, Certificate) {
        let all = try authorities()
        guard all.count == 2 else {
            throw Failure(
                .conflict, "\(certificatesPath) holds \(all.count == 1 ? "one authority" : "\(all.count) authorities")",
                next: "Nothing was changed. 'twoefay authority replace \(kind.rawValue)' begins a replacement.")
        }
        return (all[0], all[1])
    }

    private func write(_ certificates: [Certificate]) throws {
        var pem: [UInt8] = []
        for certificate in certificates { pem += try certificate.pem() }
        try Files.rewrite(certificatesPath, pem)
    }
}
