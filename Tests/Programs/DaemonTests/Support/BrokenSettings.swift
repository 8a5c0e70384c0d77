/// A kind of fault in the settings, as `twoefayd --check` must report it.
///
/// `▸` in the lines marks where the message must point to. The file begins with the three required
/// settings, unless the lines contain `origin:`, `listen:` or `storage:` themselves.
struct BrokenSettings: Sendable {
    let kind: String
    let lines: String
    let message: String

    init(_ kind: String, _ lines: String, _ message: String) {
        self.kind = kind
        self.lines = lines
        self.message = message
    }

    /// The least number of kinds.
    static let promised = 50

    static let all = form + required + values + pairs + messages + policies + files

    /// The form of the file.
    private static let form = [
        BrokenSettings("an unknown key", "▸lissten: 1", "lissten is not a setting; did you mean listen?"),
        BrokenSettings(
            "an unknown key in a group", "tls:\n  ▸kee: a", "kee is not a setting in tls; did you mean key?"),
        BrokenSettings("a key twice", "loops: 1\n▸loops: 2", "\"loops\" is already set in line 4"),
        BrokenSettings("a tab", "log:\n▸\tlevel: info", "a tab is not allowed for indentation; use spaces"),
        BrokenSettings("an anchor", "loops: ▸&a 1", "anchors and aliases are not supported"),
        BrokenSettings("a tag", "loops: ▸!!int 1", "tags are not supported"),
        BrokenSettings("a second document", "▸---\nloops: 1", "a second document is not allowed"),
        BrokenSettings("a value for a group", "log: ▸info", "log must contain keys with values"),
        BrokenSettings("a list for a value", "loops: ▸[1]", "loops must be a single value"),
        BrokenSettings("a mapping for a value", "tls: {key: ▸{}}", "tls.key must be a single value"),
        BrokenSettings("a value for a list", "sms: {gateways: ▸kannel}", "sms.gateways must be a list: write a dash"),
    ]

    /// The settings that must be there, and their values.
    private static let required = [
        BrokenSettings(
            "no storage", "▸origin: https://localhost:8080\nlisten: 127.0.0.1:8080",
            "storage is missing, as in storage: sqlite:twoefay.db"),
        BrokenSettings(
            "an origin without TLS", "origin: ▸http://localhost:8080\nlisten: 127.0.0.1:8080\nstorage: sqlite:t.db",
            "origin must be https://HOST or https://HOST:PORT, with no path and no / at the end"),
        BrokenSettings(
            "an origin with a path", "listen: 127.0.0.1:8080\norigin: ▸https://localhost/login\nstorage: sqlite:t.db",
            "origin must be https://HOST or https://HOST:PORT, with no path and no / at the end"),
        BrokenSettings(
            "listen without a port", "origin: https://localhost:8080\nlisten: ▸127.0.0.1\nstorage: sqlite:t.db",
            "listen must be HOST:PORT, such as 0.0.0.0:8080 or [::1]:8080"),
        BrokenSettings(
            "listen with a host name", "origin: https://localhost:8080\n▸listen: localhost:1\nstorage: sqlite:t.db",
            "listen: localhost is not an IP address, such as 0.0.0.0 or [::] for all"),
        BrokenSettings(
            "storage of another kind", "origin: https://localhost:8080\nlisten: 127.0.0.1:1\nstorage: ▸mysql://x",
            "storage must begin with sqlite: or mariadb://"),
        BrokenSettings(
            "storage without a database",
            "origin: https://localhost:8080\nlisten: 127.0.0.1:1\nstorage: ▸mariadb://u@db",
            "storage "),
    ]

    /// Values of one key.
    private static let values = [
        BrokenSettings("text for a number", "loops: ▸many", "loops must be a whole number from 0 to 256"),
        BrokenSettings(
            "a number out of range", "connections:\n  per_phone: ▸0",
            "connections.per_phone must be a whole number from 1 to 1000"),
        BrokenSettings(
            "days out of range", "retention: {logins: ▸1}", "retention.logins must be a whole number from 2 to 3650"),
        BrokenSettings(
            "an unknown word", "log: {level: ▸inof}", "log.level must be one of debug, info, notice, warning, error"),
        BrokenSettings("an unknown level of hardening", "hardening: ▸yes", "hardening must be one of "),
        BrokenSettings("an empty file name", "tls: {key: ▸''}", "tls.key must name a file"),
        BrokenSettings(
            "a range with host bits", "proxies: ▸10.0.0.1/8", "proxies must be ranges such as 10.20.0.0/16"),
        BrokenSettings("all addresses as proxies", "▸proxies: 0.0.0.0/0", "proxies must not contain all addresses"),
        BrokenSettings(
            "a mapped address", "▸proxies: '::ffff:10.0.0.6'", "proxies must contain IPv4 addresses in IPv4 form"),
        BrokenSettings(
            "metrics for the network", "metrics: {listen: ▸'0.0.0.0:9464'}",
            "metrics.listen must be a loopback address, such as 127.0.0.1:9464 or [::1]:9464"),
        BrokenSettings(
            "a socket without its scheme", "key_service: ▸/run/keys", "key_service must be unix:PATH, such as"),
        BrokenSettings(
            "a credential with a path", "tls: {key: ▸'credential:a/b'}",
            "tls.key must be credential:NAME, with the name of a LoadCredential= of the unit"),
        BrokenSettings(
            "a contact that is no address", "push: {web: {key: vapid.key, contact: ▸op}}",
            "push.web.contact must be mailto:NAME@HOST or an https: URL"),
        BrokenSettings(
            "an app without a digest", "attestation:\n  android_apps: ▸com.example.app",
            "attestation.android_apps must be PACKAGE=DIGEST"),
    ]

    /// Keys that do not fit together.
    private static let pairs = [
        BrokenSettings(
            "a push key without a topic", "push: {apns: {▸key: k, key_id: a}}",
            "push.apns.key, key_id have no effect without push.apns.topic"),
        BrokenSettings(
            "a topic without a key", "push:\n  ▸apns: {topic: t}",
            "push.apns needs either key, key_id and team_id, or certificate and certificate_key"),
        BrokenSettings(
            "a web push setting without a key", "push:\n  web: {▸allow: 10.0.0.0/8}",
            "push.web.allow has no effect without push.web.key"),
        BrokenSettings(
            "a certificate for browsers without a listener", "phone:\n  ▸certificate: p.pem",
            "phone.certificate has no effect without phone.listen"),
        BrokenSettings(
            "an FCM setting without an account", "push:\n  fcm: {▸endpoint: 'https://fcm.example.com'}",
            "push.fcm.endpoint has no effect without push.fcm.account"),
        BrokenSettings(
            "half of a client certificate", "webhooks:\n  ▸key: k",
            "webhooks.certificate and webhooks.key must be set together"),
        BrokenSettings(
            "a token without its process", "pkcs11: {▸key: k}",
            "pkcs11.key has no effect without key_service: only twoefay-keys uses a token"),
        BrokenSettings(
            "half of a token", "key_service: unix:/run/k\n▸pkcs11: {module: m}",
            "pkcs11 needs module, token, key and pin_file"),
        BrokenSettings(
            "an EST setting without a server", "est: {▸ca: ca.pem}", "est.ca has no effect without est.url"),
        BrokenSettings(
            "an EST login without a password",
            "est:\n  url: https://est.example.com/est\n  ca: ca.pem\n  ▸username: relay",
            "est.username and est.password_file must be set together"),
        BrokenSettings(
            "an EST server that does not know the relay", "▸est: {url: https://est.example.com/est, ca: ca.pem}",
            "est needs username and password_file, or certificate and key: the server must know the relay"),
        BrokenSettings(
            "a command's setting without the command", "phone_ca: {▸timeout: 5}",
            "phone_ca.timeout has no effect without phone_ca.command"),
    ]

    /// Mails, text messages and directories.
    private static let messages = [
        BrokenSettings(
            "a mail URL with a user", "mail: {url: ▸'smtp://u:p@a.example', from: a@b.example}",
            "mail.url must be smtp://HOST[:PORT] or smtps://HOST[:PORT], with no user and no path"),
        BrokenSettings("no sender", "▸mail: {url: 'smtp://127.0.0.1'}", "mail.from is missing, as in mail.from: "),
        BrokenSettings(
            "a sender that is no address", "mail: {url: 'smtp://127.0.0.1', from: ▸nobody}",
            "mail.from must be NAME@HOST, or a name and the address in < and >"),
        BrokenSettings(
            "a mail login without a password", "mail:\n  url: smtp://127.0.0.1\n  from: a@b.example\n  ▸username: u",
            "mail.username and mail.password_file must be set together"),
        BrokenSettings(
            "an unknown gateway", "sms:\n  allow: [\"+49\"]\n  gateways:\n    - {name: a, kind: ▸kanel}",
            "gateway a: kind must be one of kannel, twilio, http, smpp, mail; did you mean kannel?"),
        BrokenSettings(
            "an unknown setting of a gateway",
            "sms:\n  allow: [\"+49\"]\n  gateways:\n    - name: a\n      kind: kannel\n      url: https://x/\n"
                + "      username: u\n      ▸passwordfile: p\n      password_file: p",
            "gateway a: passwordfile is not a setting of kind kannel; did you mean password_file?"),
        BrokenSettings(
            "a gateway without a password",
            "sms: {allow: [\"+49\"], gateways: [▸{name: a, kind: kannel, url: \"https://x/\", username: u}]}",
            "gateway a: password_file is missing"),
        BrokenSettings(
            "plain HTTP to another machine",
            "sms:\n  allow: [\"+49\"]\n  gateways:\n"
                + "    - {name: a, kind: kannel, url: ▸\"http://10.0.0.1/\", username: u, password_file: p}",
            "gateway a: url is plain http to another machine, so others can read codes and the password"),
        BrokenSettings(
            "text messages to nobody",
            "▸sms: {gateways: [{name: a, kind: kannel, url: \"https://x/\", username: u, password_file: password}]}",
            "sms.allow is missing: name the allowed number prefixes"),
        BrokenSettings(
            "prefixes without a gateway", "sms: {▸allow: [\"+49\"]}", "sms.allow has no effect without sms.gateways"),
        BrokenSettings(
            "a prefix without a plus",
            "sms:\n  gateways: [{name: a, kind: kannel, url: \"https://x/\", username: u, password_file: password}]\n"
                + "  allow: [▸49]", "sms.allow must be number prefixes such as \"+49\""),
        BrokenSettings(
            "an unknown kind of directory", "directories:\n  - {name: staff, website: shop, kind: ▸fax}",
            "directory staff: kind must be one of active-directory, ldap, csv"),
        BrokenSettings(
            "a directory without a file", "directories:\n  - ▸{name: staff, website: shop, kind: csv}",
            "directory staff: file is missing"),
        BrokenSettings(
            "a directory without TLS",
            "directories:\n  - {name: staff, website: shop, kind: ldap, url: ▸'ldap://10.0.0.1', base: 'dc=x'}",
            "directory staff: url "),
    ]

    private static let policies = [
        BrokenSettings(
            "a policy out of range", "policies: {lifetime: ▸30}",
            "policies.lifetime must be a whole number from 60 to 600"),
        BrokenSettings(
            "a policy with an unknown word", "policies: {answers: ▸phone}",
            "policies.answers must be one of signed, certificate, website"),
        BrokenSettings("an unknown factor", "policies:\n  factors: ▸push, fax", "policies.factors "),
        BrokenSettings(
            "an attestation without an app", "policies:\n  lifetime: 90\n  ▸attestation_ios: required",
            "attestation-ios: required needs the setting attestation.ios_apps"),
        BrokenSettings(
            "a demand on phones that do not answer", "policies:\n  answers: website\n  ▸screen_lock: on",
            "screen-lock has no effect with answers: website"),
        BrokenSettings(
            "a PIN without signed answers", "policies:\n  answers: certificate\n  ▸pin: required",
            "pin: required needs answers: signed"),
    ]

    /// Files that the settings name. `DIR` stands for the directory of the settings.
    private static let files = [
        BrokenSettings(
            "a missing file", "tls:\n  certificate: ▸nowhere.pem", "DIR/nowhere.pem: No such file or directory"),
        BrokenSettings("no certificate", "tls: {ca: ▸empty.pem}", "DIR/empty.pem: holds no certificate"),
        BrokenSettings("an expired authority", "tls: {phones: ▸expired.pem}", "DIR/expired.pem: expired at "),
        BrokenSettings(
            "a key of something else", "tls: {key: ▸vapid.key}", "DIR/vapid.key: is not the key of DIR/server.pem"),
        BrokenSettings(
            "a key that others can read", "tls: {key: ▸open.key}", "DIR/open.key: can be read by others than its owner"),
        BrokenSettings("no revocation list", "tls: {revoked: ▸ca.crt}", "DIR/ca.crt: holds no revocation list"),
        BrokenSettings("no master key", "master_key_file: ▸empty.pem", "DIR/empty.pem: "),
        BrokenSettings("a push key that is none", "push: {web: {key: ▸empty.pem}}", "DIR/empty.pem: "),
        BrokenSettings("a database of something else", "geo: {database: ▸empty.pem}", "DIR/empty.pem: "),
        BrokenSettings(
            "no password",
            "mail:\n  url: smtp://127.0.0.1\n  from: a@b.example\n  username: u\n  password_file: ▸no.password",
            "DIR/no.password: No such file or directory"),
        BrokenSettings(
            "no password of a gateway",
            "sms:\n  allow: [\"+49\"]\n  gateways:\n    - name: a\n      kind: kannel\n      url: https://x/\n"
                + "      username: u\n      password_file: ▸sms.password",
            "DIR/sms.password: No such file or directory"),
        BrokenSettings(
            "no authority of websites' servers", "webhooks:\n  ca: ▸empty.pem", "DIR/empty.pem: holds no certificate"),
        BrokenSettings(
            "no roots of attestations", "attestation:\n  ios_roots: ▸empty.pem", "DIR/empty.pem: holds no certificate"),
        BrokenSettings(
            "no directory of the audit's heads", "audit:\n  heads: ▸none/heads",
            "DIR/none/heads: cannot be written: DIR/none: No such file or directory"),
        BrokenSettings(
            "no group of operators", "control:\n  socket: unix:control\n  ▸operators: no-such-group-here",
            "control.operators: there is no group no-such-group-here"),
        BrokenSettings(
            "no directory of the control socket", "control:\n  ▸socket: unix:none/control",
            "control.socket: the directory DIR/none No such file or directory"),
    ]
}
