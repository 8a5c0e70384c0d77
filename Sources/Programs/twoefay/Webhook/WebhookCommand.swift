import Bytes
import Commands
import Daemon
import Domain
import JSON
import Storage
import Webhooks
import World

extension Tool {
    static let webhookCommand = Subcommand(
        command: Command(
            "website webhook", "Manages a website's webhook endpoint: its secret, its state, its dead letters.",
            operands: [
                .init("NAME", "The website's name, as in 'website list'."),
                .init(
                    "ACTION", "One of: \(WebhookAction.allCases.map(\.rawValue).joined(separator: ", ")).",
                    choices: WebhookAction.allCases.map(\.rawValue)),
            ],
            options: [
                .init(
                    "at-once", .nothing,
                    "With rotate-secret: make the old secret invalid at once, because it has leaked."),
                .init(
                    "out", .one("DIR"),
                    "With rotate-secret: the directory for NAME.secret.new (default: the current one)."),
                .init(
                    "since", .one("TIME"), "With replay: only events since this time, such as 2026-11-22T08:00:00Z."),
            ],
            notes: """
                rotate-secret  writes a new secret to a file. For one day, webhooks are signed with both secrets.
                disable        stops the webhooks. Pending and new ones are kept for 30 days.
                enable         sends webhooks again, the pending ones first. A relay disables an endpoint that answers 410,
                               or that has accepted nothing for three days.
                test           sends the event twoefay.test from this machine and prints the result. Exit status
                               0: accepted, 1: not accepted, 5: no answer.
                replay         returns the dead letters to the queue.
                """)
    ) { invocation throws(Failure) in
        let action = try WebhookAction(invocation)
        let settings = try Settings.load(invocation)
        let store = try OperatorStore(settings)
        defer { store.close() }
        let endpoint = try WebhookEndpointCommands(store.website(named: invocation.operand(0)), store)
        switch action {
        case .rotateSecret: return try endpoint.rotate(invocation)
        case .disable: return try endpoint.disable()
        case .enable: return try endpoint.enable()
        case .test: return try endpoint.test()
        case .replay: return try endpoint.replay(since: invocation.value("since"))
        }
    }
}

private enum WebhookAction: String, CaseIterable {
    case rotateSecret = "rotate-secret"
    case disable, enable, test, replay

    init(_ invocation: Invocation) throws(Failure) {
        let word = invocation.operand(1)
        let next = "Run 'twoefay website webhook --help' for usage."
        guard let action = WebhookAction(rawValue: word) else {
            let words = Self.allCases.map(\.rawValue)
            let near = Spelling.nearest(to: word, among: words).map { "; did you mean \($0)?" } ?? ""
            throw Failure(
                .usage, "ACTION must be one of \(words.joined(separator: ", ")), not \(word)\(near)", next: next)
        }
        for (option, owner) in [("at-once", Self.rotateSecret), ("out", .rotateSecret), ("since", .replay)]
        where invocation.has(option) && owner != action {
            throw Failure(.usage, "--\(option) belongs to \(owner.rawValue), not to \(word)", next: next)
        }
        self = action
    }
}

extension OperatorStore {
    /// Makes all pending webhooks of a website due now.
    func makeWebhooksDue(of website: WebsiteID) throws(Failure) {
        var next: Timestamp? = WebhookEndpoints.farthest
        for _ in 0..<WebhookEndpoints.makeDueLimit {
            guard let upTo = next else { return }
            next = try read(WebhookEndpoints.makeDue(website, at: now, upTo: upTo))
        }
    }
}

/// The commands for one existing webhook endpoint.
struct WebhookEndpointCommands {
    let name: String
    let id: WebsiteID
    let url: String
    let view: WebhookEndpoints.View
    let store: OperatorStore

    init(_ website: Websites.Listed, _ store: OperatorStore) throws(Failure) {
        guard let url = website.traits.webhookURL else {
            throw Failure(
                .notFound, "\(website.name) has no webhook endpoint",
                next: "To add one, with its secret: twoefay website edit \(website.name) --webhook URL")
        }
        guard let view = try store.read(WebhookEndpoints.find(website.id)) else {
            throw Failure(
                .notFound, "the webhook endpoint of \(website.name) has no secret",
                next: "To create one: twoefay website edit \(website.name) --webhook \(url.asShellWord)")
        }
        (name, id, self.url, self.view, self.store) = (website.name, website.id, url, view, store)
    }

    // MARK: Secret

    func rotate(_ invocation: Invocation) throws(Failure) -> Report {
        let isAtOnce = invocation.has("at-once")
        // Nobody has a secret that was not fetched, so another one may take its place.
        if !isAtOnce, let until = view.previousUntil, until > store.now, until != WebhookSecrets.untilFetched {
            throw Failure(
                .conflict, "two secrets of \(name) are valid already, until \(until.shownEnd)",
                next:
                    "Nothing was changed. Wait until then. If one of them has leaked, give --at-once: then only the new one is valid."
            )
        }
        let masterKey = try store.settings.loadMasterKey()
        let new = WebhookSecret.make(SystemRandomness())
        let secrets =
            isAtOnce
            ? WebhookSecrets(current: new) : try masterKey.open(view, of: id).rotated(to: new, at: store.now)
        let sealed = try masterKey.seal(secrets, of: id)
        let path = Files.resolve("\(name).secret.new", in: invocation.value("out") ?? "")
        do throws(Files.Problem) {
            try new.write(to: path)
        } catch {
            throw Failure(
                error.exists ? .conflict : .failed, error.text,
                next: "Nothing was changed. Choose another directory with --out, or move the existing file away.")
        }
        try change(writing: path) { operation in
            WebhookEndpoints.rotate(
                id, from: view.sealed, to: sealed, previousUntil: secrets.former?.until, at: store.now, as: operation)
        }
        let until = secrets.former?.until
        return Report(
            until.map {
                """
                The new secret of \(name) is in \(path). Until \($0.rfc3339) relays sign every webhook with both secrets, afterwards
                only with the new one. Give the website the new secret by then.
                """
            } ?? """
                The new secret of \(name) is in \(path). Relays sign with it alone from now on.
                A website that does not have it yet rejects the webhooks. Relays retry each of them for 27 hours.
                """,
            json: .object([
                "website": .string(name), "secret": .string(path), "previous_until": .text(until?.rfc3339),
            ]))
    }

    private func change(
        writing path: String, _ change: (Operation) -> Query<Bool>
    ) throws(Failure) {
        let isChanged: Bool
        do throws(Failure) {
            isChanged = try store.run(change)
        } catch {
            throw Failure(
                error.code, error.message,
                next:
                    "It is unknown whether the secret in \(path) is in use. When the store answers again, create another one with "
                    + "--at-once: then only that one is valid.")
        }
        guard isChanged else {
            Files.remove(path)
            throw Failure(
                .conflict, "another command changed the webhook endpoint of \(name) at the same time",
                next: "Nothing was changed here. Check 'twoefay website show \(name)', then try again.")
        }
    }

    // MARK: State

    func disable() throws(Failure) -> Report {
        guard try store.run({ WebhookEndpoints.disable(id, at: store.now, as: $0) }) else {
            throw Failure(
                .conflict, "\(name) is disabled already\(try since())",
                next: "Nothing was changed. To enable it: twoefay website webhook \(name) enable")
        }
        return Report(
            """
            The webhooks of \(name) are disabled. Attempts under way are completed; pending webhooks are kept for 30 days.
            To send them: twoefay website webhook \(name) enable
            """, json: json("disabled"))
    }

    func enable() throws(Failure) -> Report {
        // This comes before the endpoint is enabled. If the command is stopped in between, the
        // endpoint is still disabled, and the operator can repeat the command.
        if view.health.isDisabled { try store.makeWebhooksDue(of: id) }
        guard try store.run({ WebhookEndpoints.enable(id, at: store.now, as: $0) }) else {
            throw Failure(
                .conflict, "\(name) is enabled already",
                next:
                    "Nothing was changed. 'twoefay website show \(name)' shows its health, and 'twoefay website webhook \(name) test' sends a test event."
            )
        }
        var lines = ["The webhooks of \(name) are enabled. Pending webhooks, all due now: \(view.waiting)."]
        if view.dead > 0 {
            lines.append(
                "Dead letters: \(view.dead). To replay them: twoefay website webhook \(name) replay"
            )
        }
        return Report(lines.joined(separator: "\n"), json: json("working"))
    }

    private func json(_ state: String) -> JSONValue {
        .object([
            "website": .string(name), "before": .string(view.health.word), "state": .string(state),
            "waiting": .integer(view.waiting), "dead": .integer(view.dead),
        ])
    }

    private func since() throws(Failure) -> String {
        guard case .disabled(let reason, let since)? = try store.read(WebhookEndpoints.find(id))?.health.state else {
            return ""
        }
        return ", since \(since.rfc3339): \(reason.shown)"
    }

    // MARK: Dead letters

    func replay(since text: String?) throws(Failure) -> Report {
        var since: Timestamp?
        if let text {
            since = Timestamp(rfc3339: text) ?? Timestamp(rfc3339: text + "T00:00:00Z")
            guard since != nil else {
                throw Failure(
                    .usage, "--since \(text) is not a time",
                    next: "Give it in UTC, such as 2026-11-22 or 2026-11-22T08:00:00Z.")
            }
        }
        let count = try store.read(WebhookEndpoints.countDead(id, since: since, until: store.now))
        let json: JSONValue = .object(["website": .string(name), "replayed": .integer(count)])
        let time = text.map { " since \($0)" } ?? ""
        guard count > 0 else { return Report("\(name) has no dead letters\(time).", json: json) }
        _ = try store.run { WebhookEndpoints.replay(id, at: store.now, as: $0) }
        while try store.read(WebhookEndpoints.replayDead(id, since: since, at: store.now)) {}
        return Report(
            "Replayed: \(count). "
                + (view.health.isDisabled
                    ? "Relays send them when \(name) is enabled: twoefay website webhook \(name) enable"
                    : "A running relay sends them now."),
            json: json)
    }
}
