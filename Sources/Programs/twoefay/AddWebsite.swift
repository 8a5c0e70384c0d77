import Commands
import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let addWebsite = Subcommand(
        command: Command(
            "website add", "Adds a website, and writes the client certificate for its requests.",
            operands: [
                .init(
                    "NAME",
                    "Lower-case letters, digits, dots and hyphens. A name can be used only once, but see --reuse-name.")
            ],
            options: [
                .init("display-name", .one("TEXT"), "The name that users see (default: NAME)."),
                .init("webhook", .one("URL"), "The HTTPS URL that receives webhooks; see docs/websites/webhooks.md."),
                .init(
                    "out", .one("DIR"),
                    "The directory for NAME.pem, NAME.key and, with --webhook, NAME.secret (default: the current one)."),
                .init("reuse-name", .nothing, "Give the new website the name of one that was removed."),
            ] + Policy.keys.map { .init($0, .one("VALUE"), SettingsKeys.policyTexts[$0] ?? "") },
            notes: """
                A policy that is not given is taken from the settings.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let website = try NewWebsite(
            name: invocation.operand(0), displayName: invocation.value("display-name"),
            webhook: invocation.value("webhook"), allowed: settings.webhooks.allowed,
            policies: Policy.keys.compactMap { key in invocation.value(key).map { (key, $0) } },
            reusingName: invocation.has("reuse-name"))
        try website.requireAttestable(settings)
        let store = try settings.openStore()
        defer { store.close() }
        let credentials = try website.add(to: store, settings: settings, directory: invocation.value("out") ?? "")

        let origin = settings.origin.settingsText
        let authority = settings.path(of: settings.tls.authority)
        let webhookNote =
            credentials.secretPath.map {
                "\n\nWebhooks go to \(website.webhookURL ?? ""). Give the website \($0), too: it holds the secret that signs them."
            } ?? ""
        return Report(
            """
            The website \(website.name) is added. Its certificate is \(credentials.certificatePath), its key \(credentials.keyPath); \
            the certificate expires at \(credentials.expiresAt.rfc3339).
            Give the website these two files, and \(authority), the authority of the relay's certificate. Example:

              curl --http2 --cacert \(authority) --cert \(credentials.certificatePath) --key \(credentials.keyPath) \\
                --json '{"username": "alice"}' \(origin)/register\(webhookNote)
            """,
            json: .object([
                "website": .string(website.name), "certificate": .string(credentials.certificatePath),
                "key": .string(credentials.keyPath), "secret": .text(credentials.secretPath),
                "expires_at": .string(credentials.expiresAt.rfc3339),
                "authority": .string(authority), "origin": .string(origin),
            ]))
    }
}
