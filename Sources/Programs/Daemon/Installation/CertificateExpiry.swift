import Crypto
import JSON
import World

/// A certificate or revocation list that the settings name, and its end date.
public struct CertificateExpiry: Sendable, Equatable {
    /// The key of the setting that names its file.
    public let setting: String
    public let path: String
    public let notAfter: Timestamp
    /// The whole time for which a revocation list is valid; nil for a certificate. Lists are often
    /// made anew every week or day, and then a notice weeks before their end would always be due.
    public let life: Duration?

    init(setting: String, path: String, notAfter: Timestamp, life: Duration? = nil) {
        self.setting = setting
        self.path = path
        self.notAfter = notAfter
        self.life = life
    }

    /// A warning for people; nil if no notice is due yet.
    public func warning(at now: Timestamp) -> String? {
        guard ExpiryNotices.threshold(of: self, at: now) != nil else { return nil }
        let end = notAfter.rfc3339
        switch days(at: now) {
        case _ where notAfter <= now: return "\(path): expired at \(end)"
        case 0: return "\(path): expires today, at \(end)"
        case 1: return "\(path): expires in 1 day, at \(end)"
        case let days: return "\(path): expires in \(days) days, at \(end)"
        }
    }

    /// The whole days that are left.
    func days(at now: Timestamp) -> Int64 { max(0, (notAfter - now).wholeMilliseconds / 86_400_000) }
}

extension CertificateExpiry {
    /// Returns the end dates of the certificates and lists in all files that can be read. A file
    /// that cannot be read is reported by the code that uses it. If a file holds several
    /// certificates, the first counts; of several lists, the one that ends first.
    public static func all(_ settings: Settings) -> [CertificateExpiry] {
        let certificates: [CertificateExpiry] = settings.certificates.compactMap { setting, file in
            let path = settings.path(of: file)
            guard let pem = try? Files.read(path), let first = try? Certificate.all(pem: pem).first else { return nil }
            return CertificateExpiry(setting: setting, path: path, notAfter: first.notAfter)
        }
        return certificates + [lists(settings)].compactMap { $0 }
    }

    private static func lists(_ settings: Settings) -> CertificateExpiry? {
        guard let path = settings.tls.revoked.map({ settings.path(of: $0) }), let pem = try? Files.read(path),
            let lists = try? CertificateRevocationList.all(pem: pem)
        else { return nil }
        let ends = lists.compactMap { list in list.nextUpdate.map { (end: $0, life: $0 - list.thisUpdate) } }
        return ends.min { $0.end < $1.end }.map {
            CertificateExpiry(setting: "tls.revoked", path: path, notAfter: $0.end, life: $0.life)
        }
    }

    public static func json(_ certificates: [CertificateExpiry], at now: Timestamp) -> JSONValue {
        .array(
            certificates.map {
                .object([
                    "setting": .string($0.setting), "path": .string($0.path),
                    "expires_at": .string($0.notAfter.rfc3339), "days": .integer($0.days(at: now)),
                ])
            })
    }
}

extension Settings {
    /// Every certificate file that a relay reads, with the key of the setting that names it.
    var certificates: [(setting: String, file: FileName)] {
        var all = [
            ("tls.certificate", tls.certificate), ("tls.ca", tls.authority), ("tls.websites", tls.websites),
            ("tls.phones", tls.phones),
        ]
        if case .certificate(let file, _) = push.credential { all.append(("push.apns.certificate", file)) }
        if let file = push.authority { all.append(("push.apns.ca", file)) }
        if let file = webPush.authority { all.append(("push.web.ca", file)) }
        if let file = webhooks.certificate { all.append(("webhooks.certificate", file)) }
        if let file = webhooks.authority { all.append(("webhooks.ca", file)) }
        return all
    }
}
