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
                .init("kind", .one("KIND"), "Only entries of this kind: push, mail, sms, webhook, next or expiry."),
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
        let ids = try dead(invocation, store)
        var replayed: [OutboxEntryID] = []
        let isForAll = invocation.has("all-dead")
        let progress = invocation.progress()
        for (index, id) in ids.enumerated() {
            progress.show(index, of: ids.count, "entries")
            let replay = { OutboxAdmin.replay(id, at: store.now, as: $0) }
            // With `--all-dead`, an entry that is not genuine does not prevent the replay of the
            // others.
            let isDone = isForAll ? try store.runIfGenuine(replay) : try store.run(replay)
            if isDone == true { replayed.append(id) }
        }
        if replayed.count < ids.count, !isForAll {
            let other = ids.first { !replayed.contains($0) }
            throw Failure(
                .conflict, "\(other?.text ?? "") is not a dead letter; \(replayed.count) others were replayed",
                next: "'twoefay outbox list --dead' shows the dead letters.")
        }
        return Report(
            replayed.isEmpty
                ? "There are no dead letters."
                : "Replayed: \(replayed.count). A running relay attempts them now; mails expire after a day.",
            json: .object(["replayed": .array(replayed.map { .string($0.text) })]))
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

    /// Returns the dead letters that are named, or all dead letters. Throws if a named entry is
    /// missing or not dead.
    private static func dead(_ invocation: Invocation, _ store: OperatorStore) throws(Failure) -> [OutboxEntryID] {
        guard invocation.has("all-dead") else {
            let ids = try ids(invocation)
            for id in ids {
                guard try known(id, store).deadAt == nil else { continue }
                throw Failure(
                    .conflict, "\(id) is not a dead letter: relays still attempt it",
                    next: "Nothing was changed. 'twoefay outbox list --dead' shows the dead letters.")
            }
            return ids
        }
        guard invocation.operands.isEmpty else {
            throw Failure(.usage, "IDs and --all-dead exclude each other", next: "Give one or the other.")
        }
        var filter = OutboxAdmin.Filter()
        filter.onlyDead = true
        // A relay reads no more into its memory at once. The command can be repeated.
        filter.limit = store.isServed ? OperatorStore.mostServed : .max
        return try store.read(OutboxAdmin.list(filter)).map(\.id)
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
