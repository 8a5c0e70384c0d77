import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let addWebsite = Subcommand(
        command: Command(
            "website add", "Makes a website known, and writes the certificate with which it calls.",
            operands: [.init("NAME", "Small letters, digits, dots and dashes. It is never given to another website.")],
            options: [
                .init("display-name", .one("TEXT"), "What people are shown; NAME if left out."),
                .init("webhook", .one("URL"), "Where it is told what happens, https; see docs/websites/webhooks.md."),
                .init(
                    "out", .one("DIR"),
                    "Where NAME.pem, NAME.key and, with --webhook, NAME.secret are written; here if left out."),
            ] + Policy.keys.map { .init($0, .one("VALUE"), SettingsKeys.policyTexts[$0] ?? "") },
            notes: """
                Policies that are not given are those of the settings.
                  twoefay --config /etc/twoefay/twoefay.yaml website add shop --answers website
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let website = try NewWebsite(
            name: invocation.operand(0), displayName: invocation.value("display-name"),
            webhook: invocation.value("webhook"), allowed: settings.webhooks.allowed,
            policies: Policy.keys.compactMap { key in invocation.value(key).map { (key, $0) } })
        let store = try settings.openStore()
        defer { store.close() }
        let credentials = try website.add(to: store, settings: settings, directory: invocation.value("out") ?? "")

        let origin = settings.origin.settingsText
        let authority = settings.path(of: settings.tls.authority)
        let told =
            credentials.secretPath.map {
                "\n\nIt is called at \(website.webhookURL ?? ""): \($0) holds the secret that its webhooks are signed with. Give it that, too."
            } ?? ""
        return Report(
            """
            The website \(website.name) is known. It calls with \(credentials.certificatePath) and \(credentials.keyPath), \
            until \(credentials.expiresAt.rfc3339).
            Give it these two, and \(authority), from which the relay's own certificate comes. For example:

              curl --http2 --cacert \(authority) --cert \(credentials.certificatePath) --key \(credentials.keyPath) \\
                --json '{"username": "alice"}' \(origin)/register\(told)
            """,
            json: .object([
                "website": .string(website.name), "certificate": .string(credentials.certificatePath),
                "key": .string(credentials.keyPath), "secret": .text(credentials.secretPath),
                "expires_at": .string(credentials.expiresAt.rfc3339),
                "authority": .string(authority), "origin": .string(origin),
            ]))
    }
}
