import Couriers
import Curl
import Domain
import HTTP
import Hardening
import Log
import Storage

/// The settings of an installation, as values only. `SettingsKey` declares the names of the keys
/// and how they are read.
public struct Settings: Sendable, Equatable {
    /// The directory of the settings file; relative paths start here.
    public var directory: String

    public var origin: WebAddress
    public var listen: HostPort
    /// The listener for phones in browsers.
    public var phone = PhoneListener()
    /// Whether HTTP/1.1 is spoken beside HTTP/2.
    public var http1 = Switch.on
    /// The addresses of balancers. Their connections begin with the address of the client (PROXY
    /// protocol).
    public var proxies: AddressRanges?
    public var connections = ConnectionSettings()
    /// The number of event loops; 0 means one for each core.
    public var loops = 0
    public var storage: StorageText
    public var masterKey = FileName("master.key")
    /// The values that are sealed under the master key.
    public var seal = SealedData.secrets
    /// The socket of `twoefay-keys`; nil if the relay reads the keys itself.
    public var keys: SocketName?
    /// The token with the key of the phones' authority, for `twoefay-keys`; without one, that
    /// process reads a file.
    public var token = TokenService()
    public var tls = TLSFiles()
    /// The authority of the phones outside of the installation.
    public var est = ESTService()
    public var command = CertificateCommand()
    public var push = PushService()
    public var fcm = FCMService()
    public var webPush = WebPushService()
    public var webhooks = WebhookSettings()
    public var mail = MailService()
    /// A directory with templates in other languages, or with other texts.
    public var templates: FileName?
    public var texts = SMSSettings()
    /// The sources of users.
    public var directories = DirectoryList()
    /// The geolocation database; nil if places are not looked up.
    public var geolocation: FileName?
    /// The apps whose phones are attested.
    public var attestations = AttestationSettings()
    /// The policy of websites that set nothing else.
    public var policy = Policy()
    /// The number of days after which rows are deleted.
    public var retention = Retention()
    /// The place to which the relay writes the heads of the audit; nil for none.
    public var auditHeads: AuditHeadsTarget?
    /// The socket for commands of other accounts.
    public var control = ControlSettings()
    /// The reason that an operator gave for this run (`--reason`); it is not in the file.
    public var reason: String?
    /// The hours after which the relays make a new key for nonces; 0 for never.
    public var nonceKeyHours = 24
    public var webhookSecretDays = 90
    /// The limits for one caller.
    public var quotas = Quotas()
    /// The prices for websites.
    public var prices = Prices()
    /// The address of the metrics page; nil if there is none.
    public var metrics: LocalAddress?
    public var log = LogSettings()
    /// The restrictions that the daemon puts on its own process.
    public var hardening = HardeningLevel.on

    public init(directory: String, origin: WebAddress, listen: HostPort, storage: StorageText) {
        self.directory = directory
        self.origin = origin
        self.listen = listen
        self.storage = storage
    }

    /// The number of connections that callers may have, and their longest life.
    public struct ConnectionSettings: Sendable, Equatable {
        /// 0 means as many as the limit of descriptors allows, at most `ConnectionLimits.most`.
        public var limit = 0
        /// 0 means half of the unidentified connections.
        public var perSource = 0
        public var perPhone = 32
        public var handshakesPerSecond = 200
        public var firstRequestSeconds = 30
        public var unidentifiedSeconds = 120

        public init() {}
    }

    public struct TLSFiles: Sendable, Equatable {
        public var certificate = FileName("server.pem")
        public var key = FileName("server.key")
        /// The authority that signed the certificate above; phones pin its key.
        public var authority = FileName("ca.pem")
        public var websites = FileName("website-ca.pem")
        public var websitesKey = FileName("website-ca.key")
        /// Whether websites may renew their certificates by themselves.
        public var websitesRenewal = Switch.off
        public var phones = FileName("device-ca.pem")
        public var phonesKey = FileName("device-ca.key")
        /// The statement for phones about the pins of the authority above.
        public var pins: FileName?
        /// The revocation lists of either authority.
        public var revoked: FileName?

        public init() {}
    }

    /// A key on a token, reached by PKCS#11.
    public struct TokenService: Sendable, Equatable {
        public var module: FileName?
        public var label: String?
        public var key: String?
        public var pinFile: FileName?

        public init() {}
    }

    /// Apple's push service, used if a topic is set.
    public struct PushService: Sendable, Equatable {
        public static let production = WebAddress(secure: true, host: "api.push.apple.com", port: nil)

        public var endpoint = production
        public var topic: String?
        public var key: FileName?
        public var keyID: String?
        public var teamID: String?
        public var certificate: FileName?
        public var certificateKey: FileName?
        /// An authority to trust for the endpoint besides the system's.
        public var authority: FileName?

        public init() {}

        public enum Credential: Sendable, Equatable {
            case token(key: FileName, keyID: String, teamID: String)
            case certificate(FileName, key: FileName)
        }

        /// The credential of the relay; nil unless exactly one kind is set completely.
        public var credential: Credential? {
            switch (key, keyID, teamID, certificate, certificateKey) {
            case (let key?, let keyID?, let teamID?, nil, nil): .token(key: key, keyID: keyID, teamID: teamID)
            case (nil, nil, nil, let certificate?, let key?): .certificate(certificate, key: key)
            default: nil
            }
        }
    }

    /// Google's push service for Android, used if an account is set.
    public struct FCMService: Sendable, Equatable {
        public static let production = WebAddress(secure: true, host: "fcm.googleapis.com", port: nil)

        public var endpoint = production
        /// The service account's JSON file.
        public var account: FileName?
        /// An authority to trust for the endpoint, and for the host that issues access tokens,
        /// besides the system's.
        public var authority: FileName?

        public init() {}
    }

    /// The push services of browsers, used if a key is set.
    public struct WebPushService: Sendable, Equatable {
        /// The private key whose public key browsers subscribe with.
        public var key: FileName?
        public var contact: ContactText?
        /// Internal addresses that pushes may nevertheless be sent to.
        public var allowed: AddressRanges?
        /// An authority to trust besides the system's.
        public var authority: FileName?

        public init() {}
    }

    /// The settings for sending webhooks.
    public struct WebhookSettings: Sendable, Equatable {
        /// Internal addresses that webhooks may nevertheless be sent to, also by `http:`.
        public var allowed: AddressRanges?
        /// An authority to trust besides the system's.
        public var authority: FileName?
        /// The client certificate for websites that require one. It is set together with its key,
        /// or not at all.
        public var certificate: FileName?
        public var key: FileName?

        public init() {}
    }

    /// The mail server, used if a URL is set.
    public struct MailService: Sendable, Equatable {
        public var url: SMTPAddress?
        public var from: MailAddress?
        public var username: String?
        public var passwordFile: FileName?
        /// An authority to trust besides the system's.
        public var authority: FileName?

        public init() {}
    }

    public struct LogSettings: Sendable, Equatable {
        public var format = LogFormat.logfmt
        public var level = LogLevel.info
        /// The number of lines that may wait for the reader.
        public var queue = 8192

        public init() {}
    }

    /// Returns the path of a file that the settings name.
    public func path(of file: FileName) -> String {
        Credentials.path(file.written) ?? Files.resolve(file.written, in: directory)
    }

    public func path(of socket: SocketName) -> String { Files.resolve(socket.path, in: directory) }
}
