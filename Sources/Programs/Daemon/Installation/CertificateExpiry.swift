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
    /// The position of the certificate in its file, from 1; nil if it is the first one.
    let ordinal: Int?

    public init(setting: String, path: String, notAfter: Timestamp, life: Duration? = nil, ordinal: Int? = nil) {
        self.setting = setting
        self.path = path
        self.notAfter = notAfter
        self.life = life
        self.ordinal = ordinal
    }

    /// A warning for people; nil if no notice is due yet.
    public func warning(at now: Timestamp) -> String? {
        guard ExpiryNotices.threshold(of: self, at: now) != nil else { return nil }
        let (name, end) = (ordinal.map { "\(path): certificate \($0)" } ?? "\(path):", notAfter.rfc3339 + origin)
        switch days(at: now) {
        case _ where notAfter <= now: return "\(name) expired at \(end)"
        case 0: return "\(name) expires within a day, at \(end)"
        case 1: return "\(name) expires in 1 day, at \(end)"
        case let days: return "\(name) expires in \(days) days, at \(end)"
        }
    }

    /// The setting, and the command that renews the file if there is one. A website's certificate is
    /// named by the website alone.
    private var origin: String {
        if setting == path { return "" }
        let command = ["tls.certificate": "twoefay server renew", "tls.revoked": "twoefay website crl"][setting]
        return " (\(setting)\(life == nil ? "" : ", a revocation list")\(command.map { "; to renew it: \($0)" } ?? ""))"
    }

    /// The whole days that are left.
    func days(at now: Timestamp) -> Int64 { max(0, (notAfter - now).wholeMilliseconds / 86_400_000) }
}

extension CertificateExpiry {
    /// Returns the end dates of the certificates and lists in all files that can be read. A file
    /// that cannot be read is reported by the code that uses it. If a file holds several
    /// certificates or lists, the one that ends first counts.
    public static func all(_ settings: Settings) -> [CertificateExpiry] {
        let certificates: [CertificateExpiry] = settings.certificates.compactMap { setting, file in
            let path = settings.path(of: file)
            guard let pem = try? Files.read(path), let all = try? Certificate.all(pem: pem),
                let first = all.enumerated().min(by: { $0.element.notAfter < $1.element.notAfter })
            else { return nil }
            return CertificateExpiry(
                setting: setting, path: path, notAfter: first.element.notAfter,
                ordinal: first.offset == 0 ? nil : first.offset + 1)
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
    /// Every certificate file that a relay reads, with the key of the setting that names it. The
    /// roots of attestations are not among them: their dates do not count.
    var certificates: [(setting: String, file: FileName)] {
        var all = [
            ("tls.certificate", tls.certificate), ("tls.ca", tls.authority), ("tls.websites", tls.websites),
            ("tls.phones", tls.phones),
        ]
        if phone.listen != nil, let file = phone.certificate { all.append(("phone.certificate", file)) }
        if case .certificate(let file, _) = push.credential { all.append(("push.apns.certificate", file)) }
        if let file = push.authority { all.append(("push.apns.ca", file)) }
        if let file = fcm.authority { all.append(("push.fcm.ca", file)) }
        if let file = webPush.authority { all.append(("push.web.ca", file)) }
        if let file = webhooks.certificate { all.append(("webhooks.certificate", file)) }
        if let file = webhooks.authority { all.append(("webhooks.ca", file)) }
        if let file = mail.authority { all.append(("mail.ca", file)) }
        if est.url != nil {
            if let file = est.authority { all.append(("est.ca", file)) }
            if let file = est.certificate { all.append(("est.certificate", file)) }
        }
        for gateway in texts.gateways.all {
            if let file = gateway.authority { all.append(("sms.gateways.\(gateway.name).ca", file)) }
        }
        for directory in directories.all {
            guard case .ldap(let server) = directory.kind, let file = server.authority else { continue }
            all.append(("directories.\(directory.name).ca", file))
        }
        return all
    }
}
