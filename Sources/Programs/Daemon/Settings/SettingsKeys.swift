import Domain
import HTTP

/// All keys, in the order of the example.
public enum SettingsKeys {
    public static let all: [SettingsKey] =
        [
            .required(
                "origin", \.origin, example: "https://login.example.com:8080",
                "The public URL of this installation, for websites and phones. Phones sign it: changing it unbinds "
                    + "all phones."),
            .required(
                "listen", \.listen, example: "0.0.0.0:8080",
                "The address and port to listen on; [::]:8080 means every address of this machine."),
            .standard(
                "http1", \.http1,
                "Whether clients may use HTTP/1.1 at the same port, if they do not speak HTTP/2: on or off."),
            .optional(
                "proxies", \.proxies, example: "10.0.0.5, fd00:10::/64",
                "Load balancers that pass TCP through, such as HAProxy with send-proxy-v2. Each of their connections "
                    + "must begin with a PROXY header of version 2. The relay accepts this header from no other "
                    + "address."),
            .number(
                "connections.limit", \.connections.limit, 0...1_000_000,
                "The maximum number of connections of all callers; 0 means as many as the limit of open files "
                    + "allows, at most 20000. A quarter is reserved for websites. Another quarter is for callers "
                    + "that have not identified themselves."),
            .number(
                "connections.per_source", \.connections.perSource, 0...1_000_000,
                "The maximum number of unidentified connections of one source (an IPv4 address or an IPv6 /64); 0 "
                    + "means half of all unidentified connections that may be open."),
            .number(
                "connections.per_phone", \.connections.perPhone, 1...1000,
                "The maximum number of connections of one identified phone."),
            .number(
                "connections.handshakes", \.connections.handshakesPerSecond, 1...100_000,
                "TLS handshakes that one source may begin per second, with bursts of ten times as many. Further "
                    + "handshakes wait."),
            .number(
                "connections.first_request", \.connections.firstRequestSeconds, 1...3600,
                "Seconds within which an unidentified connection must make its first request. Otherwise the relay "
                    + "ends it."),
            .number(
                "connections.unidentified", \.connections.unidentifiedSeconds, 1...86_400,
                "Seconds after its first request within which a caller must identify itself. Otherwise the relay "
                    + "ends the connection."),
            .number(
                "loops", \.loops, 0...256,
                "The number of event loops, each on a separate thread; 0 means one for each core."),
            .required(
                "storage", \.storage, example: "sqlite:twoefay.db",
                "The store of all data: sqlite:FILE, or mariadb://USER@HOST[:PORT][,HOST…]/DATABASE with "
                    + "?password_file=FILE (or ?socket=…, ?ssl_ca=…)."),
            .standard(
                "master_key_file", \.masterKey,
                "The file with the master key, which encrypts the secrets in the store. If you lose it, those "
                    + "secrets are lost. Back it up, but not in the same place as the store."),
            .standard(
                "seal", \.seal,
                "What is sealed in the store under the master key. secrets: the secrets of codes, webhooks and answers. "
                    + "personal: mail addresses, phone numbers, push tokens and the contexts of logins as well, so SQL "
                    + "does not show them. SIGHUP switches, and the relays rewrite the rows in the background."),
            .optional(
                "key_service", \.keys, example: "unix:/run/twoefay-keys/socket",
                "The socket of `twoefay-keys`. If it is set, only that process reads master_key_file, "
                    + "tls.phones_key and, with tls.websites_renewal, tls.websites_key. The relay then gets derived keys "
                    + "and certificates from this process. If it is not set, the relay reads these files."),
            .optional(
                "pkcs11.module", \.token.module, example: "/usr/lib/softhsm/libsofthsm2.so",
                "The PKCS#11 library from the maker of the token. If it is set, the key on the token replaces "
                    + "tls.phones_key."),
            .optional("pkcs11.token", \.token.label, example: "phones", "The label of the token."),
            .optional(
                "pkcs11.key", \.token.key, example: "phone-authority",
                "The label of the private key on the token, a P-256 key."),
            .optional(
                "pkcs11.pin_file", \.token.pinFile, example: "keys/token.pin",
                "The file with the user PIN of the token."),

            .standard(
                "tls.certificate", \.tls.certificate,
                "The relay's server certificate, with its chain."),
            .standard(
                "tls.key", \.tls.key,
                "The private key of the server certificate."),
            .standard(
                "tls.ca", \.tls.authority,
                "The authority that issued the server certificate. Phones pin its key when they are bound."),
            .standard(
                "tls.websites", \.tls.websites,
                "The authority that issues the certificates of websites."),
            .standard(
                "tls.websites_key", \.tls.websitesKey,
                "The private key of this authority. `twoefay website add` and `website renew` sign with it."),
            .standard(
                "tls.websites_renewal", \.tls.websitesRenewal,
                "Whether websites may renew their certificates by themselves, for the same key: on or off. If it is on, "
                    + "the relay, or `twoefay-keys`, also reads tls.websites_key and signs with it."),
            .standard(
                "tls.phones", \.tls.phones,
                "The authority that issues the certificates of phones."),
            .standard(
                "tls.phones_key", \.tls.phonesKey,
                "The private key of this authority. The relay signs with it when a phone is bound."),
            .optional(
                "tls.pins", \.tls.pins, example: "pins.jwt",
                "The statement of the server's authority about the next one, as `twoefay server pins` writes it. Phones "
                    + "get it, and then also trust that one."),
            .optional(
                "tls.revoked", \.tls.revoked, example: "revoked.pem",
                "Revocation lists (CRL) of the authorities of websites and phones. Revoking a website or a phone in "
                    + "the store does not need them."),
        ] + phone + est + command + push + webhooks + mail + texts + directories + [
            .optional(
                "templates.directory", \.templates, example: "templates",
                "A directory of PO files, such as fr.po, with the texts in other languages. `twoefay templates show` "
                    + "prints a file to begin with. SIGHUP reads the files again."),
            .optional(
                "geo.database", \.geolocation, example: "GeoLite2-City.mmdb",
                "A MaxMind database of cities or countries. The relay keeps it in memory; SIGHUP reads it again."),
        ] + attestations + policies + quotas + prices + control + [
            .number(
                "retention.logins", \.retention.logins, Retention.loginDays,
                "Days after which a finished login and its steps are deleted, counted from when it was opened."),
            .number(
                "retention.audit", \.retention.audit, Retention.auditDays,
                "Days after which an audit line is deleted."),
            .number(
                "retention.usage", \.retention.usage, Retention.usageDays,
                "Days after which the counts of what a website used on a day are deleted."),
            .optional(
                "audit.heads", \.auditHeads, example: "/var/log/twoefay/audit-heads.jsonl",
                "A file to which the relay appends the newest link of each writer of the audit, at least every ten "
                    + "seconds while something changes. Or `syslog`, `syslog:FACILITY` or `syslog:FACILITY@SOCKET`: the "
                    + "relay sends them to the syslog service of this machine. `twoefay audit verify --heads` needs them. "
                    + "Ship them to another machine. If it is not set, nobody can see that the end of the audit was "
                    + "deleted."),
            .number(
                "rolling.nonces", \.nonceKeyHours, 0...8760,
                "Hours after which the relays make a new key for the nonces of phones. 0: they use a key that is "
                    + "derived from the master key. The value must be the same at all relays."),
            .number(
                "rolling.webhooks", \.webhookSecretDays, 0...3650,
                "Days after which the relays make a new webhook secret for a website that fetches its secrets. 0: never."
            ),
            .optional(
                "metrics.listen", \.metrics, example: "127.0.0.1:9464",
                "A loopback address on which http://…/metrics serves the metrics in the format of Prometheus."),
            .standard(
                "hardening", \.hardening,
                "Restrictions by Landlock and seccomp that the daemon applies to itself before it listens. on: the "
                    + "daemon warns if the kernel lacks some. required: the daemon then does not start. off: no "
                    + "restrictions."),
            .standard(
                "log.format", \.log.format,
                "logfmt or json. The relay writes one event per line to standard error."),
            .standard(
                "log.level", \.log.level,
                "The minimum level of logged events: debug, info, notice, warning, error."),
            .number(
                "log.queue", \.log.queue, 64...1_000_000,
                "The maximum number of log lines that wait while nobody reads the log. The relay drops and counts "
                    + "further lines, and continues."),
        ]

    private static let quotas: [SettingsKey] = [
        .number(
            "quotas.website_requests", \.quotas.requests, Quotas.requestBounds,
            "The maximum number of concurrent requests of one website, for each of its keys. Held requests do not "
                + "count."),
        .number(
            "quotas.website_held", \.quotas.held, Quotas.heldBounds,
            "The maximum number of held requests of one website and of its users' phones together."),
        .number(
            "quotas.website_users", \.quotas.users, Quotas.userBounds, example: 100_000,
            "The maximum number of users of one website. Default: no maximum. The relay counts the users every ten "
                + "minutes."),
        .number(
            "quotas.website_new_users", \.quotas.newUsers, Quotas.newUserBounds,
            "The maximum number of users that one website may register in a minute."),
        .number(
            "quotas.caller_requests", \.quotas.callerRequests, Quotas.callerBounds,
            "The maximum number of concurrent requests of one phone, or of one address without a certificate."),
    ]

    private static let push: [SettingsKey] = [
        .standard(
            "push.apns.endpoint", \.push.endpoint,
            "The URL of Apple's push service, or of a compatible one. With Apple's own URL, phones whose app "
                + "comes from Xcode (environment sandbox) are reached through Apple's sandbox by themselves."),
        .optional(
            "push.apns.topic", \.push.topic, example: "com.example.app",
            "The app's bundle id. Setting this key turns APNs pushes on."),
        .optional(
            "push.apns.key", \.push.key, example: "AuthKey.p8",
            "The private key for provider tokens, a .p8 file from Apple."),
        .optional(
            "push.apns.key_id", \.push.keyID, example: "ABC123DEFG",
            "The id of this key."),
        .optional(
            "push.apns.team_id", \.push.teamID, example: "DEF123GHIJ",
            "The id of the developer team that the key belongs to."),
        .optional(
            "push.apns.certificate", \.push.certificate, example: "apns.pem",
            "A client certificate, instead of key, key_id and team_id."),
        .optional(
            "push.apns.certificate_key", \.push.certificateKey, example: "apns.key",
            "The private key of the client certificate."),
        .optional(
            "push.apns.ca", \.push.authority, example: "test-ca.pem",
            "An authority to trust in addition to the system's, for test servers."),
        .optional(
            "push.fcm.account", \.fcm.account, example: "fcm.json",
            "The JSON file of a service account of the app's Firebase project. Setting this key turns pushes to "
                + "Android phones on, through FCM."),
        .standard(
            "push.fcm.endpoint", \.fcm.endpoint,
            "The URL of FCM, or of a compatible service. The account's file names the host of the access tokens."),
        .optional(
            "push.fcm.ca", \.fcm.authority, example: "test-ca.pem",
            "An authority to trust in addition to the system's, for test servers."),
        .optional(
            "push.web.key", \.webPush.key, example: "vapid.key",
            "The VAPID key with which browsers subscribe; `twoefay init` makes it. Setting this key turns web pushes "
                + "on. Changing it invalidates every subscription."),
        .optional(
            "push.web.contact", \.webPush.contact, example: "mailto:operator@example.com",
            "The contact for operators of push services, a mailto: or https: URL. Default: the origin."),
        .optional(
            "push.web.allow", \.webPush.allowed, example: "10.20.0.0/16, fd00:20::/32",
            "Ranges of private addresses to which the relay may send web pushes. It sends none to private addresses "
                + "outside these ranges, because users choose the push service."),
        .optional(
            "push.web.ca", \.webPush.authority, example: "inside-ca.pem",
            "An authority to trust in addition to the system's, for push services in your own network."),
    ]

    private static let webhooks: [SettingsKey] = [
        .optional(
            "webhooks.allow", \.webhooks.allowed, example: "10.30.0.0/16, fd00:30::/32",
            "Ranges of private addresses to which the relay may send webhooks, also over http:. It sends none to "
                + "private addresses outside these ranges."),
        .optional(
            "webhooks.ca", \.webhooks.authority, example: "inside-ca.pem",
            "An authority to trust in addition to the system's, for websites in your own network."),
        .optional(
            "webhooks.certificate", \.webhooks.certificate, example: "relay.pem",
            "A client certificate, with its chain, for websites that ask for one."),
        .optional(
            "webhooks.key", \.webhooks.key, example: "relay.key",
            "The private key of the client certificate. SIGHUP reads this whole group again."),
    ]

    private static let mail: [SettingsKey] = [
        .optional(
            "mail.url", \.mail.url, example: "smtp://127.0.0.1:25",
            "The mail server. smtp: uses STARTTLS, which is optional only for a server on this machine. smtps: uses "
                + "TLS from the first byte. Setting this key turns mails on."),
        .optional(
            "mail.from", \.mail.from, example: "login@example.com",
            "The sender of mails, optionally with a name: Login <login@example.com>. Without a name, mails show the "
                + "website's name."),
        .optional(
            "mail.username", \.mail.username, example: "relay",
            "The user name, if the mail server requires a login."),
        .optional(
            "mail.password_file", \.mail.passwordFile, example: "mail.password",
            "The file with the password. The relay sends it only over TLS, even to a server on this machine."),
        .optional(
            "mail.ca", \.mail.authority, example: "inside-ca.pem",
            "An authority to trust in addition to the system's, for mail servers in your own network."),
    ]

    private static let policies: [SettingsKey] = Policy.keys.map { .policy($0, policyTexts[$0] ?? "") }

    /// The meaning of each policy. A test checks that none is missing.
    public static let policyTexts = [
        "account-links":
            "The messages with a link to the person's account: none, or mail (mails with login codes and about the account). "
            + "It needs phone.origin; docs/operators/mail.md explains it.",
        "addresses":
            "The addresses to which codes are sent: vouched (also those that the website gave at /register) or "
            + "confirmed (only those that the user has confirmed by a code).",
        "answers":
            "How users answer: signed (the phone signs what it showed), certificate (the phone answers with its "
            + "client certificate) or website (the website answers for its users).",
        "attestation-android":
            "The weight of attestations of phones with Android: none, recorded (the website sees the verdict) or "
            + "required (only phones with a valid one can be bound and can approve).",
        "attestation-ios":
            "The same for phones with iOS. Phones that prove neither platform, such as browsers, are under the stricter "
            + "of the two.",
        "certificate-tags":
            "The purposes (tags) for which phones get further certificates to sign documents, such as sign, or none. The "
            + "key of a tag with :raw, such as legacy:raw, signs bare hashes.",
        "code-deadline":
            "Seconds that a code factor may go unanswered before the next factor begins, 10 to 600; with none, the "
            + "next factor never begins by itself.",
        "code-retries":
            "What a wrong code does to its login: keep (the user may try again), cancel (the login ends) or resend (if "
            + "the relay has sent no code for this login, it sends one; otherwise the login ends).",
        "devices": "The maximum number of phones of a user, 1 to 50.",
        "enrolment":
            "How the activation code of a phone reaches its user: open (the website shows it), letter (the relay mails "
            + "it) or confirmed (the relay mails it after an operator confirmed the user's identity).",
        "factors":
            "The factors with which users may answer, in the order in which they are tried: any of push, totp, hotp, "
            + "sms, mail, recovery, operator. Only with operator can the help desk give out temporary codes.",
        "further-factors":
            "Who must approve a further factor: proved (the user, with the strongest factor that they have or with a "
            + "recovery code) or website (the website alone).",
        "guesses":
            "Consecutive wrong codes that lock a user's codes, and consecutive wrong numbers that lock the user, 1 "
            + "to 100.",
        "lifetime": "The lifetime of a challenge in seconds, 60 to 600.",
        "limit-held":
            "The maximum number of requests of the website and of its users' phones that a relay holds, or quota for "
            + "that of quotas.website_held.",
        "limit-logins-day": "The maximum number of logins of the website in a day (UTC), or none.",
        "limit-logins-minute":
            "The maximum number of requests of the website in a minute that open a login, or none. Beyond it they are "
            + "answered 429.",
        "limit-mails-day":
            "The maximum number of mails of the website in a day (UTC), or none. Notices about accounts are counted, "
            + "and sent beyond it.",
        "limit-mails-month": "The maximum number of mails of the website in a month (UTC), or none.",
        "limit-outage-messages":
            "The maximum number of mails and text messages of the website in an hour that one relay begins because a "
            + "push service is down, or none. Beyond it the next factor begins.",
        "limit-pushes-day":
            "The maximum number of pushes of the website in a day (UTC), or none. Beyond it a phone finds the login when "
            + "it polls.",
        "limit-texts-day":
            "The maximum number of SMS segments of the website in a day (UTC), or none. Beyond it the next factor "
            + "begins.",
        "limit-texts-month": "The maximum number of SMS segments of the website in a month (UTC), or none.",
        "limit-users": "The maximum number of users of the website, or quota for that of quotas.website_users.",
        "login-limit": "The maximum number of challenges of one user in five minutes, 1 to 1000.",
        "min-app-android":
            "The minimum version code of your app for Android with which a phone can approve, or none.",
        "min-app-ios": "The minimum bundle version of your app for iOS with which a phone can approve, or none.",
        "max-uv-age":
            "The seconds for which a user verification by the phone counts, 1 to 86400, or none for any time. Otherwise an "
            + "approval needs a uv other than none, and an age.",
        "min-assurance":
            "The minimum assurance of a login: low (mail, operator), restricted (sms), substantial (totp, hotp, recovery, a "
            + "push without a number) or high (a push with a number, or with user verification by the phone).",
        "min-os-android":
            "The minimum version of Android with which a phone can approve, such as 14, or none. It applies to phones "
            + "that attested Android or, without an attestation, call themselves so; others can approve.",
        "min-os-ios":
            "The minimum version of iOS with which a phone can approve, such as 17.4, or none. It applies to phones "
            + "that attested iOS or, without an attestation, call themselves so; others can approve.",
        "min-patch-level":
            "The earliest month of security patches of Android, as attested when the phone was bound, such as 202607, or "
            + "none.",
        "min-uv": "The minimum verification of the user by the phone: none, passcode or biometric.",
        "number": "The number of digits that the user transfers from one screen to the other: 0, 2 or 6.",
        "number-below":
            "The amount below which the user need not transfer a number, with its currency, such as 30 EUR or 49.90 "
            + "CHF, or none. Amounts in other currencies always need the number.",
        "phone-codes":
            "Whether a phone gets the secret of codes that it shows itself, sealed to its key: off, once, or again (also "
            + "later). docs/websites/codes.md explains it.",
        "phone-place":
            "The use of the coarse place that phones report with an answer: ignore (phones are not asked), flag (the "
            + "website learns whether it is far from the login's address) or refuse (an approval from far away fails).",
        "phone-place-distance": "The distance in kilometres from which a phone counts as far, 50 to 20000.",
        "pin":
            "The use of PINs on phones: none, optional (a phone that has a PIN needs it to approve) or required (only phones "
            + "with a PIN can approve).",
        "push-deadline": "Seconds that a push may go unseen before the next factor begins, 5 to 300.",
        "push-detail":
            "What a push shows on a locked screen: full (website, service, place, address) or minimal (a fixed text).",
        "push-limit":
            "The maximum number of pushes to one user in five minutes, 1 to 100. For further challenges the relay "
            + "sends no push, but the phone finds them when it polls.",
        "recovery-check":
            "Whether new recovery codes count only after the user typed one of them back: on or off.",
        "recovery-url":
            "The page of the website that a user opens after losing a factor, https:, or none (users cannot recover "
            + "factors by themselves). The relay mails the link; docs/websites/recovery.md explains it.",
        "recovery-wait":
            "Hours between the second proof of such a user and the change, 1 to 336; a phone can end the wait.",
        "screen-lock": "Whether a phone needs a screen lock to approve: on or off.",
        "verified-boot":
            "Whether a phone can approve only if its system was the manufacturer's, as far as that was attested: on or "
            + "off.",
        "when-push-is-down":
            "What a login does while its push service is known to be down: next (the next factor begins at once, and the "
            + "push follows when it can) or wait (the next factor begins after push_deadline).",
    ]

    /// The text above each group of keys in the example.
    static let sections = [
        "connections": "Limits on connections. docs/operators/limits.md explains how callers share them.",
        "pkcs11": "A PKCS#11 token that holds the private key of tls.phones. Only `twoefay-keys` uses it.",
        "tls": "Certificates and keys, all in PEM format. `twoefay init` makes them.",
        "est":
            "The authority of the phones' certificates, if it is an EST server. docs/operators/authorities.md explains it.",
        "phone_ca":
            "The authority of the phones' certificates, if a command issues them. It needs key_service. "
            + "docs/operators/authorities.md explains it.",
        "phone":
            "A listener for phones that are pages in a browser. docs/operators/browsers.md explains it.",
        "push":
            "Push messages to phones. The relay sends none unless push.apns.topic, push.fcm.account or push.web.key "
            + "is set.",
        "push.fcm": "Firebase Cloud Messaging, for Android phones. docs/operators/fcm.md explains it.",
        "push.web": "Web Push, for browsers and for phones with UnifiedPush (RFC 8030, 8291 and 8292).",
        "webhooks":
            "Webhooks to websites with a webhook URL (`twoefay website add --webhook URL`). "
            + "docs/websites/webhooks.md describes the events.",
        "mail": "Mails with codes, and notifications to users. The relay sends none unless mail.url is set.",
        "templates": "The texts of mails and text messages. English and German are built in.",
        "sms":
            "Codes by text message. The relay sends none without a gateway. docs/operators/sms.md explains gateways, "
            + "routes, limits and costs.",
        "sms.limits":
            "Limits on text messages, against attackers who earn money from messages to their own numbers (SMS "
            + "pumping). Hours and days are in UTC.",
        "geo": "The place of an IP address, shown to the user who is asked. Without a database, no place is shown.",
        "attestation":
            "What phones must prove under the policies attestation-ios and attestation-android. docs/phones/attestation.md "
            + "explains the proofs. SIGHUP reads this whole group again.",
        "control":
            "Commands for accounts of this machine that have no key. docs/operators/help-desk.md explains the roles. SIGHUP "
            + "reads this whole group again, except the socket.",
        "metrics": "Metrics, for programs on this machine.",
        "policies": "The default policies of websites. `twoefay website add` and `website edit` can override each one.",
        "quotas":
            "Limits for one caller at one relay. Beyond a limit the answer is 429. The defaults are far above what a "
            + "normal caller needs.",
        "prices": "What websites pay, for `twoefay website usage`. Nothing else depends on it.",
        "retention": "How long the store keeps finished logins, audit lines and the counts of what websites use.",
        "audit": "The record of changes. docs/operators/audit.md explains how it is protected.",
        "rolling": "Keys that the relays make and replace by themselves. docs/operators/keys.md explains them.",
        "log": "The log.",
    ]

    /// The defaults. The values of origin, listen and storage are placeholders, because a file must
    /// set these keys.
    static let defaults = Settings(
        directory: "", origin: WebAddress(secure: true, host: "localhost", port: 8080),
        listen: HostPort(host: "127.0.0.1", port: 8080), storage: StorageText(path: "twoefay.db"))

    static func underscored(_ key: String) -> String { String(key.map { $0 == "-" ? "_" : $0 }) }
}
