import Daemon
import Domain
import JSON
import Relay
import Storage
import World

/// The commands that list, replay and drop entries of the outbox.

extension Tool {
    static let listOutbox = Subcommand(
        command: Command(
            "outbox list", "Lists the entries of the outbox: pending work and dead letters, the oldest first.",
            options: [
                .init(
                    "kind", .one("KIND"), "Only entries of this kind: push, mail, sms, webhook, next or expiry.",
                    choices: ["push", "mail", "sms", "webhook", "next", "expiry"]),
                .init("dead", .nothing, "Only dead letters."),
                .init("website", .one("NAME"), "Only entries about users of this website, and its webhooks."),
                .init("user", .one("USER"), "Only entries about this user; needs --website."),
                .init("limit", .one("N"), "At most this many entries (default: 100)."),
            ],
            notes: """
                The states are: waiting (not due yet), due, held (leased by a relay), left (leased by a relay that died; another
                relay takes over), shelved (the webhooks of its website are disabled: 'website webhook NAME enable'), and dead.
                No entry contains a code.
                """)
    ) { invocation throws(Failure) in
        let filter = try filter(invocation)
        let store = try OperatorStore(invocation)
        defer { store.close() }
        try store.requireServed(limit: filter.limit, next: "Use --kind, --dead, --website or --user for fewer entries.")
        if let website = filter.website { _ = try store.website(named: website) }
        var more = filter
        more.limit += 1
        let found = try store.read(OutboxAdmin.list(more))
        let rows = found.prefix(filter.limit)
        let headings = ["ID", "KIND", "EVENT", "WEBSITE", "USER", "STATE", "CREATED", "DUE", "ATTEMPTS", "REASON"]
        var lines = [rows.isEmpty ? "No entries." : Table(headings, rows.map { $0.cells(at: store.now) }).text]
        if found.count > rows.count { lines.append("There are more than \(filter.limit): give a higher --limit.") }
        return Report(
            lines.joined(separator: "\n"),
            json: .object([
                "entries": .array(rows.map { $0.json(at: store.now) }), "more": .bool(found.count > rows.count),
            ]))
    }

    static let replayOutbox = Subcommand(
        command: Command(
            "outbox replay", "Returns dead letters to the queue, with a new lifetime.",
            operands: [.init("ID", "The ids of 32 digits, as in 'outbox list --dead'.", isMany: true)],
            options: [.init("all-dead", .nothing, "Replay all dead letters, instead of IDs.")],
            notes: """
                To replay the webhooks of one website: 'website webhook NAME replay'. An entry with the reason 'forged' was not
                written by a relay, or was changed later. It stays dead until 'rows adopt outbox ID'.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        guard !invocation.has("all-dead") else { return try replayAll(invocation, store) }
        let ids = try dead(invocation, store)
        var replayed: [OutboxEntryID] = []
        let progress = invocation.progress()
        for (index, id) in ids.enumerated() {
            progress.show(index, of: ids.count, "entries")
            if try store.run({ OutboxAdmin.replay(id, at: store.now, as: $0) }) { replayed.append(id) }
        }
        if replayed.count < ids.count {
            let other = ids.first { !replayed.contains($0) }
            throw Failure(
                .conflict, "\(other?.text ?? "") is not a dead letter; \(replayed.count) others were replayed",
                next: "'twoefay outbox list --dead' shows the dead letters.")
        }
        return Report(
            replayedText(replayed.count),
            json: .object([
                "replayed": .array(replayed.map { .string($0.text) }), "count": .integer(Int64(replayed.count)),
                "refused": 0,
            ]))
    }

    private static func replayedText(_ count: Int) -> String {
        "Replayed: \(count). A running relay attempts them now; mails expire after a day."
    }

    /// Replays the dead letters in pages, until none is left. An entry that is not genuine does not
    /// prevent the replay of the others. One that dies again meanwhile is not replayed again.
    private static func replayAll(_ invocation: Invocation, _ store: OperatorStore) throws(Failure) -> Report {
        guard invocation.operands.isEmpty else {
            throw Failure(.usage, "IDs and --all-dead exclude each other", next: "Give one or the other.")
        }
        // A relay keeps no more in its memory for a caller. All of them are replayed and counted.
        let mostListed = store.isServed ? OperatorStore.mostServed : .max
        let progress = invocation.progress()
        var (listed, count, refused) = ([OutboxEntryID](), 0, 0)
        var last: OutboxEntryID?
        while true {
            let page = try store.read(OutboxAdmin.dead(after: last))
            progress.show("\(count) dead letters replayed")
            let outcomes = try store.runIfGenuine(
                page.map { id in { OutboxAdmin.replay(id, at: store.now, as: $0) } })
            for (id, outcome) in zip(page, outcomes) {
                switch outcome {
                case true?:
                    count += 1
                    if listed.count < mostListed { listed.append(id) }
                case false?: break  // another command was faster
                case nil: refused += 1
                }
            }
            guard page.count == OutboxAdmin.deadPageSize else { break }
            last = page.last
        }
        var lines = [count == 0 && refused == 0 ? "There are no dead letters." : replayedText(count)]
        if refused > 0 {
            lines.append(
                "Not replayed: \(refused), because their rows are not genuine. To see them: twoefay rows verify. "
                    + "If you changed one by SQL: twoefay rows adopt outbox ID --reason TEXT, and replay it again.")
        }
        return Report(
            lines.joined(separator: "\n"),
            json: .object([
                "replayed": .array(listed.map { .string($0.text) }), "count": .integer(Int64(count)),
                "refused": .integer(Int64(refused)),
            ]))
    }

    static let dropOutbox = Subcommand(
        command: Command(
            "outbox drop", "Removes entries, so that nobody is notified.",
            operands: [.init("ID", "The ids of 32 digits, as in 'outbox list'.", isMany: true)],
            options: [Invocation.yes],
            notes: """
                An entry that belongs to a login cannot be dropped: it is deleted with the login. A webhook about a login can be
                dropped; the login's next webhook then no longer waits for it.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let ids = try ids(invocation)
        for id in ids {
            let row = try known(id, store)
            guard !row.goesWithLogin else {
                throw Failure(
                    .conflict, "\(id) belongs to a login, and is deleted with it",
                    next: "Nothing was changed. A login ends when its website cancels it, or when its user is locked.")
            }
        }
        try invocation.confirm(
            "\(ids.count) entr\(ids.count == 1 ? "y is" : "ies are") removed for good, and nobody is notified.")
        var dropped: [OutboxEntryID] = []
        for id in ids where try store.run({ OutboxAdmin.drop(id, at: store.now, as: $0) }) { dropped.append(id) }
        return Report(
            "Dropped: \(dropped.count). Nobody is notified.",
            json: .object(["dropped": .array(dropped.map { .string($0.text) })]))
    }

    private static func filter(_ invocation: Invocation) throws(Failure) -> OutboxAdmin.Filter {
        var filter = OutboxAdmin.Filter()
        filter.kind = invocation.value("kind")
        let kinds = LeasedEntry.Kind.allCases.map(\.rawValue) + ["webhook"]
        if let kind = filter.kind, !kinds.contains(kind) {
            throw Failure(
                .usage, "--kind must be one of \(kinds.joined(separator: ", ")), not \(kind)",
                next: "Without --kind, entries of all kinds are listed.")
        }
        filter.onlyDead = invocation.has("dead")
        filter.website = invocation.value("website")
        filter.username = invocation.value("user")
        if filter.username != nil, filter.website == nil {
            throw Failure(
                .usage, "--website is missing",
                next: "User names belong to a website. 'twoefay website list' shows the websites.")
        }
        if let text = invocation.value("limit") {
            guard let limit = Int(text), (1...100_000).contains(limit) else {
                throw Failure(.usage, "--limit must be a number from 1 to 100000", next: "The default is 100.")
            }
            filter.limit = limit
        }
        return filter
    }

    private static func ids(_ invocation: Invocation) throws(Failure) -> [OutboxEntryID] {
        var ids: [OutboxEntryID] = []
        for text in invocation.operands {
            guard let id = OutboxEntryID(text) else {
                throw Failure(
                    .usage, "\(text) is not an ID: an ID has 32 digits", next: "'twoefay outbox list' shows the ids.")
            }
            if !ids.contains(id) { ids.append(id) }
        }
        guard !ids.isEmpty else {
            throw Failure(.usage, "no ID is given", next: "'twoefay outbox list' shows the ids.")
        }
        return ids
    }

    private static func known(_ id: OutboxEntryID, _ store: OperatorStore) throws(Failure) -> OutboxAdmin.Row {
        if let row = try store.read(OutboxAdmin.row(id)) { return row }
        throw Failure(
            .notFound, "there is no \(id) in the outbox",
            next: "Nothing was changed. An entry leaves the outbox when its work is done or has expired.")
    }

    /// Returns the dead letters that are named. Throws if one of them is missing or not dead.
    private static func dead(_ invocation: Invocation, _ store: OperatorStore) throws(Failure) -> [OutboxEntryID] {
        let ids = try ids(invocation)
        for id in ids {
            guard try known(id, store).deadAt == nil else { continue }
            throw Failure(
                .conflict, "\(id) is not a dead letter: relays still attempt it",
                next: "Nothing was changed. 'twoefay outbox list --dead' shows the dead letters.")
        }
        return ids
    }
}

extension OutboxAdmin.Row {
    fileprivate func cells(at now: Timestamp) -> [String] {
        [
            id.text, kind, event ?? "", website ?? "", username ?? "", state(at: now).rawValue,
            createdAt?.rfc3339 ?? "", (deadAt ?? dueAt)?.rfc3339 ?? "", String(attempts), reason ?? "",
        ]
    }

    fileprivate func json(at now: Timestamp) -> JSONValue {
        .object([
            "id": .string(id.text), "kind": .string(kind), "event": .text(event), "website": .text(website),
            "user": .text(username), "challenge": .text(challenge?.text), "state": .string(state(at: now).rawValue),
            "created_at": .text(createdAt?.rfc3339), "due_at": .text(dueAt?.rfc3339),
            "expires_at": .text(expiresAt?.rfc3339), "dead_at": .text(deadAt?.rfc3339),
            "attempts": .integer(attempts), "reason": .text(reason), "relay": .text(holder?.text),
        ])
    }
}
