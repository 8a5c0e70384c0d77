import Couriers
import Curl
import Domain
import HTTP
import Hardening
import Log
import Storage

/// What an installation is set to. Values only: how they are read and what they are called stands in `SettingsKey`.
public struct Settings: Sendable, Equatable {
    /// Where the settings lie; relative paths in them start here.
    public var directory: String

    public var origin: WebAddress
    public var listen: HostPort
    /// Whose connections begin with whose they are.
    public var proxies: AddressRanges?
    public var connections = ConnectionSettings()
    /// Event loops; 0 is one for each core.
    public var loops = 0
    public var storage: StorageText
    public var masterKey = FileName("master.key")
    /// The socket of the process that holds keys; nil where the relay reads them itself.
    public var keys: SocketName?
    /// The device that holds the key of the phones' authority for `twoefay-keys`; without it that reads a file.
    public var token = TokenService()
    public var tls = TLSFiles()
    public var push = PushService()
    public var webPush = WebPushService()
    public var webhooks = WebhookSettings()
    public var mail = MailService()
    /// A directory with words in other languages, or other words.
    public var templates: FileName?
    public var texts = SMSSettings()
    /// Says where addresses are; nil is that nobody knows.
    public var geolocation: FileName?
    /// What holds for websites that say nothing else.
    public var policy = Policy()
    /// When what is over goes.
    public var retention = Retention()
    /// The share of the relay that one caller may take.
    public var quotas = Quotas()
    /// Where counters are shown; nil is nowhere.
    public var metrics: LocalAddress?
    public var log = LogSettings()
    /// Restrictions that the daemon puts on its own process.
    public var hardening = HardeningLevel.on

    public init(directory: String, origin: WebAddress, listen: HostPort, storage: StorageText) {
        self.directory = directory
        self.origin = origin
        self.listen = listen
        self.storage = storage
    }

    /// The number of connections that callers may have, and their longest life.
    public struct ConnectionSettings: Sendable, Equatable {
        /// 0: as many as the limit of descriptors allows, at most `ConnectionLimits.most`.
        public var limit = 0
        /// 0: half of the unidentified ones.
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
        /// Signed the certificate above; phones pin it.
        public var authority = FileName("ca.pem")
        public var websites = FileName("website-ca.pem")
        public var websitesKey = FileName("website-ca.key")
        public var phones = FileName("device-ca.pem")
        public var phonesKey = FileName("device-ca.key")
        /// Certificates that count no more, of either authority.
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

    /// The push service, used once a topic is set.
    public struct PushService: Sendable, Equatable {
        public static let production = WebAddress(secure: true, host: "api.push.apple.com", port: nil)

        public var endpoint = production
        public var topic: String?
        public var key: FileName?
        public var keyID: String?
        public var teamID: String?
        public var certificate: FileName?
        public var certificateKey: FileName?
        /// Trusted for the endpoint besides the system's authorities.
        public var authority: FileName?

        public init() {}

        public enum Credential: Sendable, Equatable {
            case token(key: FileName, keyID: String, teamID: String)
            case certificate(FileName, key: FileName)
        }

        /// How the relay proves who it is; nil unless exactly one way is set completely.
        public var credential: Credential? {
            switch (key, keyID, teamID, certificate, certificateKey) {
            case (let key?, let keyID?, let teamID?, nil, nil): .token(key: key, keyID: keyID, teamID: teamID)
            case (nil, nil, nil, let certificate?, let key?): .certificate(certificate, key: key)
            default: nil
            }
        }
    }

    /// The push services that browsers bring, used once a key is set.
    public struct WebPushService: Sendable, Equatable {
        /// The private key that subscriptions are made for.
        public var key: FileName?
        public var contact: ContactText?
        /// Inside addresses that pushes may go to all the same.
        public var allowed: AddressRanges?
        /// Trusted besides the system's authorities.
        public var authority: FileName?

        public init() {}
    }

    /// How the websites that have a callback are called.
    public struct WebhookSettings: Sendable, Equatable {
        /// Inside addresses that callbacks may go to all the same, by `http:` too.
        public var allowed: AddressRanges?
        /// Trusted besides the system's authorities.
        public var authority: FileName?
        /// Shown to a website that asks who we are; with its key or not at all.
        public var certificate: FileName?
        public var key: FileName?

        public init() {}
    }

    /// The mail server, used once a URL is set.
    public struct MailService: Sendable, Equatable {
        public var url: SMTPAddress?
        public var from: MailAddress?
        public var username: String?
        public var passwordFile: FileName?
        /// Trusted besides the system's authorities.
        public var authority: FileName?

        public init() {}
    }

    public struct LogSettings: Sendable, Equatable {
        public var format = LogFormat.logfmt
        public var level = LogLevel.info
        /// Lines that may wait for the reader.
        public var queue = 8192

        public init() {}
    }

    /// Where a file that the settings name lies.
    public func path(of file: FileName) -> String { Files.resolve(file.written, in: directory) }

    public func path(of socket: SocketName) -> String { Files.resolve(socket.path, in: directory) }
}
