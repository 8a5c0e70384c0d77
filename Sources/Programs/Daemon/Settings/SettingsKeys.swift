import Domain
import HTTP

/// All keys, in the order of the example.
public enum SettingsKeys {
    public static let all: [SettingsKey] =
        [
            .required(
                "origin", \.origin, example: "https://login.example.com:8080",
                "Where websites and phones reach this installation. Phones sign for it: changing it unbinds them."),
            .required(
                "listen", \.listen, example: "0.0.0.0:8080",
                "The address and port to listen on; [::]:8080 is every address of this machine."),
            .optional(
                "proxies", \.proxies, example: "10.0.0.5, fd00:10::/64",
                "Balancers that pass TCP through, such as HAProxy with send-proxy-v2. Their connections must begin with a "
                    + "PROXY header of version 2, which is believed; nobody else's is."),
            .number(
                "connections.limit", \.connections.limit, 0...1_000_000,
                "Connections of all callers together; 0 is as many as the limit of open files allows, at most 20000. A "
                    + "quarter is reserved for websites, and a quarter is for callers that have not identified themselves."
            ),
            .number(
                "connections.per_source", \.connections.perSource, 0...1_000_000,
                "Unidentified connections of one source (an IPv4 address or an IPv6 /64); 0 is half of all that may be "
                    + "unidentified."),
            .number("connections.per_phone", \.connections.perPhone, 1...1000, "Connections of one identified phone."),
            .number(
                "connections.handshakes", \.connections.handshakesPerSecond, 1...100_000,
                "TLS handshakes that one source may begin in a second; ten times as many at once. The others wait."),
            .number(
                "connections.first_request", \.connections.firstRequestSeconds, 1...3600,
                "Seconds after which an unidentified connection is ended that has not made a request."),
            .number(
                "connections.unidentified", \.connections.unidentifiedSeconds, 1...86_400,
                "Seconds after its first request at which a connection is ended that has not identified itself."),
            .number("loops", \.loops, 0...256, "Event loops, each on a thread of its own; 0 is one for each core."),
            .required(
                "storage", \.storage, example: "sqlite:twoefay.db",
                "Where everything is kept: sqlite:FILE, or mariadb://USER@HOST[:PORT][,HOST…]/DATABASE with "
                    + "?password_file=FILE (or ?socket=…, ?ssl_ca=…)."),
            .standard(
                "master_key_file", \.masterKey,
                "The 32 bytes that seal what is secret in the store. Without this file its secrets are lost: back it up, "
                    + "elsewhere than the store."),
            .optional(
                "keys", \.keys, example: "unix:/run/twoefay-keys/socket",
                "The socket of `twoefay-keys`. With it that process alone reads master_key_file and tls.phones_key; the relay "
                    + "gets derived keys at its start, and certificates of phones. Without it the relay reads both files."
            ),
            .optional(
                "pkcs11.module", \.token.module, example: "/usr/lib/softhsm/libsofthsm2.so",
                "The library of the token's maker. Setting it takes the place of tls.phones_key."),
            .optional("pkcs11.token", \.token.label, example: "phones", "The label of the token."),
            .optional("pkcs11.key", \.token.key, example: "phone-authority", "The label of the private key, on P-256."),
            .optional(
                "pkcs11.pin_file", \.token.pinFile, example: "keys/token.pin",
                "A file with the PIN of the token's user."),

            .standard("tls.certificate", \.tls.certificate, "The certificate shown to callers, with its chain."),
            .standard("tls.key", \.tls.key, "Its private key."),
            .standard(
                "tls.ca", \.tls.authority, "The authority that signed it. Phones pin its key when they are bound."),
            .standard("tls.websites", \.tls.websites, "The authority of the websites' certificates."),
            .standard(
                "tls.websites_key", \.tls.websitesKey, "Its private key, with which `twoefay website add` signs."),
            .standard("tls.phones", \.tls.phones, "The authority of the phones' certificates."),
            .standard("tls.phones_key", \.tls.phonesKey, "Its private key: the relay signs when a phone is bound."),
            .optional(
                "tls.revoked", \.tls.revoked, example: "revoked.pem",
                "Revocation lists (CRL) of the two authorities. Revoking a website or a phone in the store needs none."),
        ] + push + webhooks + mail + texts + [
            .optional(
                "templates.directory", \.templates, example: "templates",
                "Files such as fr.po with what mails and text messages say; `twoefay templates show` prints one to begin "
                    + "with. SIGHUP reads them again."),
            .optional(
                "geo.database", \.geolocation, example: "GeoLite2-City.mmdb",
                "A MaxMind database of cities or of countries. It is kept in memory; SIGHUP reads it again."),
        ] + policies + quotas + [
            .number(
                "keep.logins", \.retention.logins, Retention.loginDays,
                "Days after which a login is dropped that has its end, with its steps."),
            .number(
                "keep.audit", \.retention.audit, Retention.auditDays, "Days after which a line of the audit is dropped."
            ),
            .optional(
                "metrics.listen", \.metrics, example: "127.0.0.1:9464",
                "An address of this machine alone where http://…/metrics shows what is counted, as Prometheus reads it."
            ),
            .standard(
                "hardening", \.hardening,
                "Restrictions that the daemon puts on itself before it listens, by Landlock and seccomp: on warns of what the "
                    + "kernel lacks, required does not start without it, off puts none."),
            .standard("log.format", \.log.format, "logfmt or json; always one event a line, to standard error."),
            .standard("log.level", \.log.level, "The least that is logged: debug, info, notice, warning, error."),
            .number(
                "log.queue", \.log.queue, 64...1_000_000,
                "Lines that may wait while nobody reads the log. Further ones are dropped and counted: the relay goes on."
            ),
        ]

    private static let quotas: [SettingsKey] = [
        .number(
            "quotas.website_requests", \.quotas.requests, Quotas.requestBounds,
            "Requests of one website in work at the same time, for each of its keys. Held ones are not in work."),
        .number(
            "quotas.website_held", \.quotas.held, Quotas.heldBounds,
            "Requests held for one website, those of its users' phones included."),
        .number(
            "quotas.website_users", \.quotas.users, Quotas.userBounds, example: 100_000,
            "Users that one website may have; as many as it registers where nothing is set. They are counted every ten "
                + "minutes."),
        .number(
            "quotas.website_new_users", \.quotas.newUsers, Quotas.newUserBounds,
            "Users that one website may register in a minute."),
        .number(
            "quotas.caller_requests", \.quotas.callerRequests, Quotas.callerBounds,
            "Requests of one phone, or of one address without a certificate, in work at the same time."),
    ]

    private static let push: [SettingsKey] = [
        .standard(
            "push.apns.endpoint", \.push.endpoint,
            "Apple's service (https://api.sandbox.push.apple.com for apps from Xcode), or one that speaks as it does."),
        .optional(
            "push.apns.topic", \.push.topic, example: "com.example.app",
            "The app's bundle id. Setting it turns push on."),
        .optional("push.apns.key", \.push.key, example: "AuthKey.p8", "The key for tokens, as Apple gives it."),
        .optional("push.apns.key_id", \.push.keyID, example: "ABC123DEFG", "Its id."),
        .optional("push.apns.team_id", \.push.teamID, example: "DEF123GHIJ", "The team it belongs to."),
        .optional(
            "push.apns.certificate", \.push.certificate, example: "apns.pem",
            "Instead of the three above: a client certificate,"),
        .optional("push.apns.certificate_key", \.push.certificateKey, example: "apns.key", "and its private key."),
        .optional(
            "push.apns.ca", \.push.authority, example: "test-ca.pem",
            "An authority to trust besides the system's, for test servers."),
        .optional(
            "push.web.key", \.webPush.key, example: "vapid.key",
            "The key that browsers subscribe with (VAPID), as `twoefay init` makes it. Setting it turns their pushes on. "
                + "Changing it makes every subscription void."),
        .optional(
            "push.web.contact", \.webPush.contact, example: "mailto:operator@example.com",
            "Whom the people of a push service may turn to: mailto: or https:. The origin where nothing is set."),
        .optional(
            "push.web.allow", \.webPush.allowed, example: "10.20.0.0/16, fd00:20::/32",
            "Users choose the push service, so nothing is sent to addresses inside, but for those in these ranges."),
        .optional(
            "push.web.ca", \.webPush.authority, example: "inside-ca.pem",
            "An authority to trust besides the system's, for push services inside."),
    ]

    private static let webhooks: [SettingsKey] = [
        .optional(
            "callbacks.allow", \.webhooks.allowed, example: "10.30.0.0/16, fd00:30::/32",
            "Nothing is sent to addresses inside, but for those in these ranges; there http: is allowed too."),
        .optional(
            "callbacks.ca", \.webhooks.authority, example: "inside-ca.pem",
            "An authority to trust besides the system's, for websites inside."),
        .optional(
            "callbacks.certificate", \.webhooks.certificate, example: "relay.pem",
            "The certificate that is shown to a website that asks for one, with its chain,"),
        .optional(
            "callbacks.key", \.webhooks.key, example: "relay.key",
            "and its private key. SIGHUP reads all of these again."),
    ]

    private static let mail: [SettingsKey] = [
        .optional(
            "mail.url", \.mail.url, example: "smtp://127.0.0.1:25",
            "The mail server: smtp: with STARTTLS, which may be missing on this machine alone, or smtps:. Setting it turns "
                + "mails on."),
        .optional(
            "mail.from", \.mail.from, example: "login@example.com",
            "Whom mails come from, perhaps with a name: Login <login@example.com>. Without one they bear the website's."
        ),
        .optional("mail.username", \.mail.username, example: "relay", "Who hands in, if the server asks;"),
        .optional(
            "mail.password_file", \.mail.passwordFile, example: "mail.password",
            "and the file with the password. It is said over TLS only, to this machine too."),
        .optional(
            "mail.ca", \.mail.authority, example: "inside-ca.pem",
            "An authority to trust besides the system's, for mail servers inside."),
    ]

    private static let policies: [SettingsKey] = Policy.keys.map { .policy($0, policyTexts[$0] ?? "") }

    /// The meaning of each policy. A test checks that none is missing.
    public static let policyTexts = [
        "addresses":
            "Where codes are sent: vouched (also to addresses that the website gave at /register) or confirmed (only to "
            + "those that the user confirmed by a code).",
        "answers":
            "How users answer: signed (the phone signs what it showed), certificate (the phone, with its certificate) or "
            + "website (the website for its own users).",
        "code-deadline":
            "Seconds after which the factor that follows a code's begins by itself, 10 to 600, or none.",
        "devices": "Phones that a user may have, 1 to 50.",
        "factors":
            "What users may answer by, in the order in which it is tried: any of push, totp, hotp, sms, mail, recovery.",
        "further-factors":
            "What binds a further factor: proved (the user approves by a phone) or website (the website's word).",
        "guesses": "Wrong codes in a row that lock codes, and wrong numbers that lock the user, 1 to 100.",
        "lifetime": "Seconds a challenge lives, 60 to 600.",
        "login-limit": "Challenges of one user in five minutes, 1 to 1000.",
        "min-assurance":
            "The least that a login must be worth: low (mail), restricted (sms), substantial (totp, hotp, recovery, a bare "
            + "push) or high (a push with a number, or with min_uv).",
        "min-uv": "How the phone must have made sure of its owner: none, passcode or biometric.",
        "number": "Digits of the number to carry from one screen to the other: 0, 2 or 6.",
        "number-below": "The amount below which no number is asked, such as 30 or 49.90, or none.",
        "push-deadline": "Seconds after which the next factor begins if nobody has looked at the push, 5 to 300.",
        "push-detail":
            "What a push shows on a locked screen: full (service, place, address) or minimal (a fixed text).",
        "push-limit": "Pushes to one user in five minutes, 1 to 100. Beyond them the phone has to look for itself.",
    ]

    /// The text above each group of keys in the example.
    static let sections = [
        "connections":
            "Who gets a connection when many want one. docs/operators/limits.md explains it.",
        "pkcs11":
            "A token that holds the private key of tls.phones. Only `twoefay-keys` uses it.",
        "tls": "Certificates and keys, all PEM. `twoefay init` makes them.",
        "push": "How phones are woken. Without a topic and without a key for the web nothing is pushed.",
        "push.web": "Browsers, and phones with UnifiedPush (RFC 8030, 8291 and 8292).",
        "callbacks":
            "How websites are called that have a callback (`twoefay website add --callback URL`). "
            + "docs/websites/webhooks.md says what they are told.",
        "mail": "How mails leave: codes, and what users are told of. Without a URL none does.",
        "templates": "What mails and text messages say. English and German are built in.",
        "sms":
            "Codes as text messages. Without a gateway none is sent. docs/operators/sms.md explains gateways, "
            + "routes, limits and costs.",
        "sms.limits":
            "How many text messages are begun, against those who have them sent to numbers of their own. Hours and days "
            + "are those of UTC.",
        "geo": "Where an address is, for the person who is asked. Without a database a place is never named.",
        "metrics": "Counters, for callers on this machine.",
        "policies": "What holds for websites for which `twoefay website add` said nothing else.",
        "quotas":
            "What one caller may take of a relay. Beyond it the answer is 429. The defaults are far above what a healthy "
            + "caller needs; each relay counts by itself.",
        "keep": "When what is over goes from the store.",
        "log": "The log.",
    ]

    /// The defaults. The values of origin, listen and storage are placeholders, because a file must
    /// set these keys.
    static let defaults = Settings(
        directory: "", origin: WebAddress(secure: true, host: "localhost", port: 8080),
        listen: HostPort(host: "127.0.0.1", port: 8080), storage: StorageText(path: "twoefay.db"))

    static func underscored(_ key: String) -> String { String(key.map { $0 == "-" ? "_" : $0 }) }
}
