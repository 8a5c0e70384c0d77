import Attestation
import Bytes
import Crypto
import Curl
import Domain
import EventLoop
import Geo
import HTTP
import KeyService
import PKCS11
import Pushes
import Relay
import TLS
import Templates
import World

/// The contents of the files that the settings name, read and checked against each other.
///
/// Purpose: the daemon reads all files before it restricts itself and listens, and again at a
/// reload. The relay then works with these values, not with the files.
///
/// Invariant: a value exists only if no problem was found. Certificates and revocation lists are
/// within their validity, the server's certificate has its key and the name of the origin, and its
/// chain contains the authority that phones pin.
///
/// Failure modes: several files may be wrong at once, so `LoadedFilesReader` continues after a
/// problem and reports all of them. `SettingsErrorTests.swift` and `ReloadTests.swift` test it.
public struct LoadedFiles: Sendable {
    /// The server's certificate, and the authorities and revocation lists for its clients.
    public let tls: TLSServerContext
    /// The certificate for phones in browsers; nil without `phone.listen`.
    public let browsers: TLSServerContext?
    /// The signer of the relay's statements, with the same key.
    public let statements: StatementSigner
    /// The authority that phones pin.
    public let authority: Certificate
    /// The statement for phones about the pins of authorities; nil if there is none in force.
    public let pins: PinStatement?
    /// The pin of the former authority, while phones move from it to the present one.
    public let formerPin: [UInt8]?
    public let issuer: PhoneIssuer
    /// The issuer for websites that renew their certificates; nil if they may not.
    public let websites: WebsiteIssuer?
    public let keys: DataKeys
    /// The credential for Apple's push service; nil if no topic is set.
    public let push: Push?
    /// The account for FCM; nil if none is set.
    public let fcm: FCM?
    /// The key for pushes to browsers; nil if none is set.
    public let webPush: WebPush?
    public let webhooks: WebhookFiles
    /// The mail server; nil if none is set.
    public let mail: Mail?
    /// The texts of mails and text messages.
    public let wording: MessageCatalog
    /// The gateways for text messages; nil if none is set.
    public let texts: SMSFiles?
    /// The geolocation database; nil if none is set.
    public let geolocation: PlaceFinder?
    /// The judge of the phones' attestations, with its roots and its revocation list.
    public let attestations: AttestationFiles
    /// The end dates of all certificates and revocation lists above.
    public let certificates: [CertificateExpiry]
    /// Faults with which the relay runs all the same.
    fileprivate(set) var warnings: [String]

    public struct Push: Sendable {
        public enum Credential: Sendable {
            case token(key: P256PrivateKey, keyID: String, teamID: String)
            /// A client certificate and its key, both in PEM.
            case certificate([UInt8], key: Secret)
        }

        public let endpoint: WebAddress
        public let topic: String
        public let credential: Credential
        /// An authority to trust besides the system's, in PEM.
        public let authority: [UInt8]?
    }

    public struct FCM: Sendable {
        public let endpoint: WebAddress
        public let account: FCMServiceAccount
        /// An authority to trust besides the system's, in PEM.
        public let authority: [UInt8]?
    }

    public struct WebPush: Sendable {
        public let key: P256PrivateKey
        public let contact: String
        public let allowed: [AddressRange]
        /// An authority to trust besides the system's, in PEM.
        public let authority: [UInt8]?
    }

    public struct SMSFiles: Sendable {
        public struct Gateway: Sendable {
            public let form: Settings.SMSGatewaySettings
            /// The password; empty if the gateway needs none.
            public let password: Secret
            /// An authority to trust besides the system's, in PEM.
            public let authority: [UInt8]?
            /// The mail server and the sender, if the gateway is reached by mail.
            public let mail: Mail?
            /// The sender of the text messages, unless the gateway is reached by mail.
            public let from: String?
        }

        public let gateways: [Gateway]
        public let limits: SMSLimits
    }

    /// Reads all files. Reports all problems at once.
    ///
    /// - Parameter start: how long to wait for the key service to start, if the settings name one.
    public static func load(
        _ settings: Settings, at now: Timestamp, waiting start: Duration = .seconds(5)
    ) throws(Failure) -> LoadedFiles {
        try load(settings, SettingsPositions(), at: now, waiting: start)
    }

    /// Reads all files, and names the positions in the settings in messages.
    ///
    /// - Parameter isStart: whether everything else that a start needs is checked, too.
    static func load(
        _ settings: Settings, _ places: SettingsPositions, at now: Timestamp, waiting start: Duration = .seconds(5),
        forStart isStart: Bool = false
    ) throws(Failure) -> LoadedFiles {
        var reading = LoadedFilesReader(settings: settings, now: now, start: start)
        if isStart { reading.checkPlaces() }
        var files = reading.all()
        files?.warnings = reading.warnings.map { places.located($0, settings) }
        guard let files, reading.problems.isEmpty else {
            let warnings = isStart ? reading.warnings.map { "Warning: " + places.located($0, settings) } : []
            throw Failure(
                .failed,
                (reading.problems.map { places.located($0, settings) } + warnings).joined(separator: "\n"),
                next:
                    "The settings name these files; docs/operators/files.md explains each of them, and how "
                    + "to renew it."
            )
        }
        return files
    }
}

/// Reads the files, and continues after a problem to find the others.
struct LoadedFilesReader {
    let settings: Settings
    let now: Timestamp
    var start = Duration.zero
    /// Whether the settings name the origin. Without it, the name in the certificate is not
    /// checked.
    var knowsOrigin = true
    /// The token with the key of the phones' authority, for `twoefay-keys`.
    var token: TokenKey?
    var problems: [String] = []
    /// Faults with which the relay runs all the same. Each begins with the path of its file.
    var warnings: [String] = []

    mutating func all() -> LoadedFiles? {
        let tls = settings.tls
        let chain = bytes(tls.certificate)
        let server = certificate(tls.certificate, chain)
        let key = secret(tls.key)
        let authority = certificate(tls.authority, bytes(tls.authority))
        let websites = bytes(tls.websites)
        let websiteIssuer = websiteIssuer(certificate(tls.websites, websites))
        let phonesPEM = bytes(tls.phones)
        let phones = certificate(tls.phones, phonesPEM)
        let revoked = tls.revoked.flatMap { bytes($0) }
        let keys = keys(phones)
        let browsers = browserContext()
        let push = push()
        let fcm = fcm()
        let webPush = webPush()
        let webhookFiles = webhooks()
        let mail = mail()
        let wording = wording()
        let texts = texts(mail)
        let placeFinder = placeFinder()
        let attestations = attestations()
        let statements = signer(key, of: server)
        checkDirectories()
        checkHost(of: server)
        checkChain(chain, endsWith: authority)
        let pins = pins(authority)
        checkAuthorities(of: websites, and: phonesPEM)
        checkLists(revoked, of: websites, and: phonesPEM)
        guard let chain, let key, let statements, let authority, let websites, let phonesPEM, let keys, let wording,
            let attestations,
            let tls = serverContext(chain, key, websites: websites, phones: phonesPEM, revoked: revoked)
        else { return nil }
        return LoadedFiles(
            tls: tls, browsers: browsers, statements: statements, authority: authority, pins: pins,
            formerPin: pins?.formerPin(
                before: authority.spkiThumbprint, chain: (try? Certificate.all(pem: chain)) ?? []),
            issuer: keys.issuer, websites: websiteIssuer, keys: keys.data, push: push, fcm: fcm,
            webPush: webPush, webhooks: webhookFiles, mail: mail, wording: wording,
            texts: texts,
            geolocation: placeFinder, attestations: attestations, certificates: CertificateExpiry.all(settings),
            warnings: warnings)
    }

    mutating func bytes(_ file: FileName) -> [UInt8]? {
        do throws(Files.Problem) {
            return try Files.read(settings.path(of: file))
        } catch {
            problems.append(error.text)
            return nil
        }
    }

    mutating func secret(_ file: FileName) -> Secret? {
        do throws(Files.Problem) {
            return try Files.readSecret(settings.path(of: file))
        } catch {
            problems.append(error.text)
            return nil
        }
    }

    /// Returns the first certificate of a file. Reports a problem for each that is not valid now: an
    /// authority or an intermediate that has expired refuses a part of the callers.
    ///
    /// - Parameter mayHaveExpired: whether the relay does its work without this file. The end of the
    ///   certificate is then only logged, see `CertificateExpiry`.
    mutating func certificate(_ file: FileName, _ pem: [UInt8]?, mayHaveExpired: Bool = false) -> Certificate? {
        guard let pem else { return nil }
        let path = settings.path(of: file)
        do throws(CryptoFailure) {
            let all = try Certificate.all(pem: pem)
            if all.isEmpty { problems.append("\(path): holds no certificate") }
            for (index, certificate) in all.enumerated() {
                let name = index == 0 ? "" : "certificate \(index + 1) "
                if now > certificate.notAfter, !mayHaveExpired {
                    problems.append("\(path): \(name)expired at \(certificate.notAfter.rfc3339)")
                } else if now < certificate.notBefore {
                    problems.append("\(path): \(name)is not valid before \(certificate.notBefore.rfc3339)")
                }
            }
            return all.first
        } catch {
            problems.append("\(path): \(error.description)")
            return nil
        }
    }

    /// Makes the signer of statements, and checks that the key belongs to the certificate. Phones
    /// can verify signatures of three kinds of keys. TLS checks a certificate whose key is not on
    /// P-256.
    private mutating func signer(_ key: Secret?, of certificate: Certificate?) -> StatementSigner? {
        guard let certificate, let key else { return nil }
        let path = settings.path(of: settings.tls.key)
        do throws(CryptoFailure) {
            let signing = try CertificateKey(pem: key)
            if let expected = try? certificate.publicKey(), try P256PrivateKey(pem: key).publicKey != expected {
                problems.append("\(path): is not the key of \(settings.path(of: settings.tls.certificate))")
            }
            return StatementSigner(certificate: certificate, key: signing)
        } catch {
            problems.append("\(path): \(error.description)")
            return nil
        }
    }

    private mutating func push() -> LoadedFiles.Push? {
        guard let topic = settings.push.topic, let wanted = settings.push.credential else { return nil }
        var credential: LoadedFiles.Push.Credential?
        switch wanted {
        case .token(let file, let keyID, let teamID):
            guard let pem = secret(file) else { break }
            do throws(CryptoFailure) {
                credential = .token(key: try P256PrivateKey(pem: pem), keyID: keyID, teamID: teamID)
            } catch {
                problems.append("\(settings.path(of: file)): \(error.description)")
            }
        case .certificate(let file, let keyFile):
            if let (pem, key) = clientCertificate(file, keyFile) { credential = .certificate(pem, key: key) }
        }
        let authority = settings.push.authority.flatMap { bytes($0) }
        if let file = settings.push.authority { _ = certificate(file, authority) }
        guard let credential else { return nil }
        return LoadedFiles.Push(
            endpoint: settings.push.endpoint, topic: topic, credential: credential, authority: authority)
    }

    private mutating func fcm() -> LoadedFiles.FCM? {
        let fcm = settings.fcm
        let authority = fcm.authority.flatMap { bytes($0) }
        if let file = fcm.authority { _ = certificate(file, authority) }
        guard let file = fcm.account, let json = secret(file) else { return nil }
        do throws(FCMServiceAccount.Fault) {
            return LoadedFiles.FCM(
                endpoint: fcm.endpoint, account: try FCMServiceAccount(json: json), authority: authority)
        } catch {
            problems.append("\(settings.path(of: file)): \(error)")
            return nil
        }
    }

    private mutating func webPush() -> LoadedFiles.WebPush? {
        let web = settings.webPush
        let authority = web.authority.flatMap { bytes($0) }
        // libcurl reports a bad authority file only when it connects, and then every push fails.
        if let file = web.authority { _ = certificate(file, authority) }
        guard let file = web.key, let pem = secret(file) else { return nil }
        do throws(CryptoFailure) {
            return LoadedFiles.WebPush(
                key: try P256PrivateKey(pem: pem),
                contact: web.contact?.settingsText ?? settings.origin.settingsText, allowed: web.allowed?.all ?? [],
                authority: authority)
        } catch {
            problems.append("\(settings.path(of: file)): \(error.description)")
            return nil
        }
    }

    private mutating func texts(_ mail: LoadedFiles.Mail?) -> LoadedFiles.SMSFiles? {
        let texts = settings.texts
        guard !texts.gateways.all.isEmpty else { return nil }
        let gateways = texts.gateways.all.map { form in
            let password = form.passwordFile.flatMap { line(of: $0) } ?? Secret([])
            let authority = form.authority.flatMap { bytes($0) }
            if let file = form.authority { _ = certificate(file, authority) }
            var own: LoadedFiles.Mail?
            if case .mail(let mailed) = form.kind { own = self.mail(of: mailed, password, authority, usual: mail) }
            let gateway = LoadedFiles.SMSFiles.Gateway(
                form: form, password: password, authority: authority, mail: own, from: form.from ?? texts.from)
            if let fault = gateway.fault { problems.append("sms.gateways: \(fault)") }
            return gateway
        }
        return LoadedFiles.SMSFiles(gateways: gateways, limits: texts.limits)
    }

    private mutating func placeFinder() -> PlaceFinder? {
        guard let file = settings.geolocation else { return nil }
        do throws(PlaceFinder.Fault) {
            return try PlaceFinder(path: settings.path(of: file))
        } catch {
            problems.append(error.text)
            return nil
        }
    }
}
