import Commands
import Daemon
import Domain
import JSON
import Relay
import Storage
import Webhooks
import World

extension Tool {
    static let editWebsite = Subcommand(
        command: Command(
            "website edit", "Changes a website's policies, its display name or its webhook URL.",
            operands: [.init("NAME", "The website's name, as in 'website list'.")],
            options: [
                .init("display-name", .one("TEXT"), "The name that users see."),
                .init(
                    "webhook", .one("URL"),
                    "The HTTPS URL that receives webhooks. \(WebsiteChange.none) removes it, and drops the pending webhooks."
                ),
                .init(
                    "out", .one("DIR"),
                    "The directory for NAME.secret, which the first webhook URL creates (default: the current one)."
                ),
                Invocation.yes,
            ] + Policy.keys.map { .init($0, .one("VALUE"), SettingsKeys.policyTexts[$0] ?? "") },
            notes: """
                Options that are not given change nothing. The value \(WebsiteChange.fromSettings) resets a policy to the one of the settings.
                Running relays apply the change at once. Open logins keep the policies with which they began. A new webhook URL
                keeps the secret.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let change = try WebsiteChange(
            displayName: invocation.value("display-name"), webhook: invocation.value("webhook"),
            allowed: settings.webhooks.allowed,
            policies: Policy.keys.compactMap { key in invocation.value(key).map { (key, $0) } })
        let store = try OperatorStore(settings)
        defer { store.close() }
        let website = try store.website(named: invocation.operand(0))
        let new = try change.applied(to: website.traits)
        try settings.requireAttestable(try WebsitePolicy(new, settings: settings), of: website.name)
        let differences = try Difference.between(website.traits, new, settings: settings)
        let name = website.name
        let secret = try NewSecret(of: website, at: new.webhookURL, invocation.value("out"), settings: settings)
        guard new != website.traits || secret != nil else {
            return Report("\(name) has these values already.", json: Difference.json([], nil, website: name))
        }
        if website.traits.webhookURL == nil {
            try drop(website.id, store)
        } else if new.webhookURL == nil {
            try invocation.confirm(
                "Webhooks to \(name) end. Those that wait are dropped, and the secret that signs them is deleted.")
        }
        try secret?.write()
        let edited: Bool
        do throws(Failure) {
            edited = try store.run { operation in
                Websites.edit(
                    website.id, from: website.traits, to: new, secrets: secret?.sealed, at: store.now, as: operation)
            }
        } catch {
            guard let secret else { throw error }
            throw Failure(
                error.code, error.message,
                next:
                    "Run 'twoefay website show \(name)'. If it shows the webhook URL, \(secret.path) holds the secret. If not, remove "
                    + "that file and try again.")
        }
        guard edited else {
            secret?.remove()
            throw Failure(
                .conflict, "another command changed \(name) at the same time",
                next: "Nothing was changed here. Check 'twoefay website show \(name)', then try again.")
        }
        if new.webhookURL == nil {
            try drop(website.id, store)
        } else if new.webhookURL != website.traits.webhookURL {
            // Webhooks that failed at the old URL need not wait for their next attempt.
            try store.makeWebhooksDue(of: website.id)
        }
        var lines = ["\(name) is changed. The policies apply to logins that begin from now on."]
        if let secret {
            lines.append(
                "Webhooks are sent from now on. Give the website \(secret.path): it holds the secret that signs them."
            )
        } else if new.webhookURL != website.traits.webhookURL, website.health?.isDisabled == true, new.webhookURL != nil
        {
            lines.append("Its webhooks are still disabled. To enable them: twoefay website webhook \(name) enable")
        }
        let table = Table(["", "BEFORE", "AFTER"], differences.map { [$0.name, $0.before.shown, $0.after.shown] })
        return Report(
            (lines + ["", table.text]).joined(separator: "\n"),
            json: Difference.json(differences, secret?.path, website: name))
    }

    /// Drops the pending webhooks of a website without a webhook URL, some hundreds at a time.
    private static func drop(_ website: WebsiteID, _ store: OperatorStore) throws(Failure) {
        while try store.read(WebhookEndpoints.drop(website)) {}
    }
}

/// The secret of a new webhook endpoint, and the file in which the operator gives it to the
/// website.
private struct NewSecret {
    let path: String
    let sealed: WebhookEndpoints.Secrets
    private let secret: WebhookSecret

    /// Creates the secret; nil if none is needed.
    init?(
        of website: Websites.Listed, at url: String?, _ directory: String?, settings: Settings
    ) throws(Failure) {
        guard url != nil, website.traits.webhookURL == nil || website.health == nil else {
            guard directory == nil else {
                throw Failure(
                    .usage, "--out is given, but no secret is created",
                    next:
                        "Only the first webhook URL creates a secret. For a new one: twoefay website webhook \(website.name) rotate-secret"
                )
            }
            return nil
        }
        secret = WebhookSecret.make(SystemRandomness())
        sealed = try settings.loadMasterKey().seal(WebhookSecrets(current: secret), of: website.id)
        path = Files.resolve("\(website.name).secret", in: directory ?? "")
    }

    func write() throws(Failure) {
        do throws(Files.Problem) {
            try secret.write(to: path)
        } catch {
            throw Failure(
                error.exists ? .conflict : .failed, error.text,
                next: "Nothing was changed. Choose another directory with --out, or move the existing file away.")
        }
    }

    func remove() { Files.remove(path) }
}

/// A difference that an edit makes.
private struct Difference {
    struct Value: Equatable {
        let text: String?
        /// Whether the value comes from the settings, because none is set for this website.
        let isOfSettings: Bool

        var shown: String { (text ?? "") + (isOfSettings ? " (settings)" : "") }
        var json: JSONValue { text.map { .string($0) } ?? .null }
    }

    let name: String
    let before: Value
    let after: Value

    static func between(
        _ old: Websites.Traits, _ new: Websites.Traits, settings: Settings
    ) throws(Failure) -> [Difference] {
        // The edit may repair a value that cannot be read.
        let before = values(of: old, WebsitePolicy.stored(old, settings: settings))
        let after = values(of: new, try WebsitePolicy(new, settings: settings).rows)
        return zip(before, after).map { Difference(name: $0.name, before: $0.value, after: $1.value) }
            .filter { $0.before != $0.after }
    }

    private static func values(
        of traits: Websites.Traits, _ rows: [(key: String, text: String, isOwn: Bool)]
    ) -> [(name: String, value: Value)] {
        return [
            ("display-name", Value(text: traits.displayName, isOfSettings: false)),
            ("webhook", Value(text: traits.webhookURL, isOfSettings: false)),
        ] + rows.map { ($0.key, Value(text: $0.text, isOfSettings: !$0.isOwn)) }
    }

    static func json(_ differences: [Difference], _ secret: String?, website: String) -> JSONValue {
        let changed = differences.map { difference in
            (difference.name, JSONValue.object(["before": difference.before.json, "after": difference.after.json]))
        }
        var members: JSONObject = ["website": .string(website), "changed": .object(JSONObject(changed))]
        if let secret { members.set("secret", .string(secret)) }
        return .object(members)
    }
}
