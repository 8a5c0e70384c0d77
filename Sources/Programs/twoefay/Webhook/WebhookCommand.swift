import Bytes
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
                .init("NAME", "A website that 'website list' shows."),
                .init("ACTION", "One of: \(WebhookAction.allCases.map(\.rawValue).joined(separator: ", "))."),
            ],
            options: [
                .init(
                    "at-once", .nothing,
                    "With rotate-secret: the old secret is invalid at once, because others have seen it."),
                .init(
                    "out", .one("DIR"),
                    "With rotate-secret: the directory for NAME.secret.new; the current one if left out."),
                .init(
                    "since", .one("TIME"), "With replay: only events since then, as 2026-11-22T08:00:00Z."),
            ],
            notes: """
                rotate-secret  writes a new secret to a file. For one day, webhooks are signed with both secrets.
                disable        sends no more webhooks. New ones wait for 30 days.
                enable         sends webhooks again, the waiting ones first. A relay disables an endpoint that answers 410,
                               or that has accepted nothing for three days.
                test           sends the event twoefay.test from this machine and prints the result. Exit status
                               0: accepted, 1: not accepted, 5: no answer.
                replay         sends dead webhooks again.
                  twoefay --config /etc/twoefay/twoefay.yaml website webhook shop rotate-secret --out /root
                """)
    ) { invocation throws(Failure) in
        let action = try WebhookAction(invocation)
        let settings = try Settings.load(invocation)
        let desk = try OperatorStore(settings)
        defer { desk.close() }
        let endpoint = try WebhookEndpointCommands(desk.website(named: invocation.operand(0)), desk)
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
        let next = "Run 'twoefay website webhook --help' for what it takes."
        guard let action = WebhookAction(rawValue: word) else {
            let words = Self.allCases.map(\.rawValue)
            let near = Spelling.nearest(to: word, among: words).map { "; did you mean \($0)?" } ?? ""
            throw Failure(.usage, "ACTION \(word) is none of \(words.joined(separator: ", "))\(near)", next: next)
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
                next: "'twoefay website edit \(website.name) --webhook URL' gives it one, and makes its secret.")
        }
        guard let view = try store.read(WebhookEndpoints.find(website.id)) else {
            throw Failure(
                .notFound, "the webhook endpoint of \(website.name) has no secret",
                next: "'twoefay website edit \(website.name) --webhook \(url.asShellWord)' makes one.")
        }
        (name, id, self.url, self.view, self.store) = (website.name, website.id, url, view, store)
    }

    // MARK: Secret

    func rotate(_ invocation: Invocation) throws(Failure) -> Report {
        let isAtOnce = invocation.has("at-once")
        if !isAtOnce, let until = view.previousUntil, until > store.now {
            throw Failure(
                .conflict, "two secrets of \(name) are valid already, until \(until.rfc3339)",
                next:
                    "Nothing was changed. Wait until then; or, if others have seen one of them, give --at-once: only the new one counts then."
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
                next: "Nothing was changed. Choose another directory with --out, or move that file away.")
        }
        try change(writing: path) { operation in
            WebhookEndpoints.rotate(
                id, from: view.sealed, to: sealed, previousUntil: secrets.former?.until, at: store.now, as: operation)
        }
        let until = secrets.former?.until
        return Report(
            until.map {
                """
                The new secret of \(name) is in \(path). Until \($0.rfc3339) every webhook is signed with both: give the website the
                new one by then. It may accept both meanwhile; afterwards only the new one is signed with.
                """
            } ?? """
                The new secret of \(name) is in \(path), and is the only one that is signed with from now on.
                Until the website has it, it takes no webhook; each is tried again, for a day and three hours.
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
                    "Whether the secret in \(path) counts is not known. Have another made once the store answers, with --at-once: "
                    + "only that one counts then.")
        }
        guard isChanged else {
            Files.remove(path)
            throw Failure(
                .conflict, "another command changed the webhook endpoint of \(name) at the same time",
                next: "Nothing was changed here. Look at 'twoefay website show \(name)', and try again.")
        }
    }

    // MARK: State

    func disable() throws(Failure) -> Report {
        guard try store.run({ WebhookEndpoints.disable(id, at: store.now, as: $0) }) else {
            throw Failure(
                .conflict, "\(name) is disabled already\(try since())",
                next: "Nothing was changed. 'twoefay website webhook \(name) enable' has it called again.")
        }
        return Report(
            """
            \(name) is called no more; what is under way comes to its end. What it is to be told waits, for 30 days.
            'twoefay website webhook \(name) enable' has it called again, with all that waits.
            """, json: json("disabled"))
    }

    func enable() throws(Failure) -> Report {
        // This comes before the endpoint is enabled. If the command is stopped in between, the
        // endpoint is still disabled, and the operator can repeat the command.
        if view.health.isDisabled { try store.makeWebhooksDue(of: id) }
        guard try store.run({ WebhookEndpoints.enable(id, at: store.now, as: $0) }) else {
            throw Failure(
                .conflict, "\(name) is enabled already: it is called",
                next:
                    "Nothing was changed. 'twoefay website show \(name)' says how it stands, and 'twoefay website webhook \(name) test' tries it."
            )
        }
        var lines = ["\(name) is called again, by whichever relay runs. \(counted(view.waiting)) waited, due now."]
        if view.dead > 0 {
            lines.append(
                "\(counted(view.dead)) had been given up before: 'twoefay website webhook \(name) replay' has those tried, too."
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

    private func counted(_ count: Int64) -> String { count == 0 ? "Nothing" : "\(count)" }

    // MARK: Dead letters

    func replay(since text: String?) throws(Failure) -> Report {
        var since: Timestamp?
        if let text {
            since = Timestamp(rfc3339: text) ?? Timestamp(rfc3339: text + "T00:00:00Z")
            guard since != nil else {
                throw Failure(
                    .usage, "--since \(text) is no time", next: "It is UTC, as 2026-11-22 or 2026-11-22T08:00:00Z.")
            }
        }
        let count = try store.read(WebhookEndpoints.countDead(id, since: since, until: store.now))
        let json: JSONValue = .object(["website": .string(name), "replayed": .integer(count)])
        guard count > 0 else { return Report("Nothing was given up that \(name) was to be told.", json: json) }
        _ = try store.run { WebhookEndpoints.replay(id, at: store.now, as: $0) }
        while try store.read(WebhookEndpoints.replayDead(id, since: since, at: store.now)) {}
        return Report(
            "\(count) to be tried again, "
                + (view.health.isDisabled
                    ? "once \(name) is enabled: 'twoefay website webhook \(name) enable'."
                    : "by whichever relay runs, as if written just now."),
            json: json)
    }
}
