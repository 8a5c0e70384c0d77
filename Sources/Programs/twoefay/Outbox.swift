import Daemon
import Domain
import JSON
import Relay
import Storage
import World

/// The outbox as operators see it: its entries, and the commands for dead letters.

extension Tool {
    static let listOutbox = Subcommand(
        command: Command(
            "outbox list", "Lists what is still to be done, and what nobody tries any more, the oldest first.",
            options: [
                .init("kind", .one("KIND"), "Only those: push, mail, sms, webhook, next or expiry."),
                .init("dead", .nothing, "Only those that nobody tries any more."),
                .init(
                    "website", .one("NAME"), "Only those about users of that website, and those that tell it something."
                ),
                .init("user", .one("USER"), "Only those about that user; --website must be given."),
                .init("limit", .one("N"), "At most so many; 100 otherwise."),
            ],
            notes: """
                A state is one of: waiting (for its time), due, held (a relay has it in hand), left (by a relay that died: another
                takes it), shelved (for a website that is called no more: 'website webhook NAME enable'), dead. Codes stand
                nowhere in the store.
                """)
    ) { invocation throws(Failure) in
        let wanted = try wanted(invocation)
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        if let website = wanted.website { _ = try desk.website(named: website) }
        var more = wanted
        more.limit += 1
        let found = try desk.read(OutboxAdmin.list(more))
        let rows = found.prefix(wanted.limit)
        let headings = ["ID", "KIND", "TELLS", "WEBSITE", "USER", "STATE", "SINCE", "DUE", "TRIES", "REASON"]
        var lines = [rows.isEmpty ? "There is nothing." : Table(headings, rows.map { $0.cells(at: desk.now) }).text]
        if found.count > rows.count { lines.append("There are more than \(wanted.limit): --limit N shows as many.") }
        return Report(
            lines.joined(separator: "\n"),
            json: .object([
                "entries": .array(rows.map { $0.json(at: desk.now) }), "more": .bool(found.count > rows.count),
            ]))
    }

    static let replayOutbox = Subcommand(
        command: Command(
            "outbox replay", "Has dead ones tried again, as if they had been written just now.",
            operands: [.init("ID", "Which ones: 32 digits each, as in 'outbox list --dead'.", isMany: true)],
            options: [.init("all-dead", .nothing, "All of them, instead of IDs.")],
            notes: """
                Those of one website alone: 'website webhook NAME replay'. One whose reason is forged was not written by a relay, or
                was changed since: it stays dead until 'rows adopt outbox ID' vouches for it.
                """)
    ) { invocation throws(Failure) in
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let ids = try dead(invocation, desk)
        var replayed: [OutboxEntryID] = []
        let isForAll = invocation.has("all-dead")
        for id in ids {
            let replay = { OutboxAdmin.replay(id, at: desk.now, as: $0) }
            // With `--all-dead`, an entry that is not genuine does not prevent the replay of the
            // others.
            let isDone = isForAll ? try desk.runIfGenuine(replay) : try desk.run(replay)
            if isDone == true { replayed.append(id) }
        }
        if replayed.count < ids.count, !isForAll {
            let other = ids.first { !replayed.contains($0) }
            throw Failure(
                .conflict, "\(other?.text ?? "") is not dead, and \(replayed.count) others are tried again",
                next: "'twoefay outbox list --dead' shows those that nobody tries any more.")
        }
        return Report(
            replayed.isEmpty
                ? "Nothing is dead."
                : "\(replayed.count) to be tried again, by whichever relay runs: mails for a day at most.",
            json: .object(["replayed": .array(replayed.map { .string($0.text) })]))
    }

    static let dropOutbox = Subcommand(
        command: Command(
            "outbox drop", "Takes out what nobody is to be told of any more.",
            operands: [.init("ID", "Which ones: 32 digits each, as in 'outbox list'.", isMany: true)],
            notes: """
                What belongs to a login is not dropped: it goes with the login. What a website is told of a login is: what was to
                follow it goes then, for it waits no longer.
                """)
    ) { invocation throws(Failure) in
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let ids = try ids(invocation)
        for id in ids {
            let row = try known(id, desk)
            guard !row.goesWithLogin else {
                throw Failure(
                    .conflict, "\(id) belongs to a login, and goes with it",
                    next: "Nothing was changed. A login ends when its website cancels it, or its user is locked.")
            }
        }
        var dropped: [OutboxEntryID] = []
        for id in ids where try desk.run({ OutboxAdmin.drop(id, at: desk.now, as: $0) }) { dropped.append(id) }
        return Report(
            "\(dropped.count) dropped: nobody is told.",
            json: .object(["dropped": .array(dropped.map { .string($0.text) })]))
    }

    private static func wanted(_ invocation: Invocation) throws(Failure) -> OutboxAdmin.Filter {
        var wanted = OutboxAdmin.Filter()
        wanted.kind = invocation.value("kind")
        let kinds = LeasedEntry.Kind.allCases.map(\.rawValue) + ["webhook"]
        if let kind = wanted.kind, !kinds.contains(kind) {
            throw Failure(.usage, "there is no kind \(kind)", next: "There are: \(kinds.joined(separator: ", ")).")
        }
        wanted.onlyDead = invocation.has("dead")
        wanted.website = invocation.value("website")
        wanted.username = invocation.value("user")
        if wanted.username != nil, wanted.website == nil {
            throw Failure(
                .usage, "--website is missing",
                next: "User names are each website's own. 'twoefay website list' shows the websites.")
        }
        if let text = invocation.value("limit") {
            guard let limit = Int(text), (1...100_000).contains(limit) else {
                throw Failure(.usage, "--limit must be a number from 1 to 100000", next: "It is 100 if it is left out.")
            }
            wanted.limit = limit
        }
        return wanted
    }

    private static func ids(_ invocation: Invocation) throws(Failure) -> [OutboxEntryID] {
        var ids: [OutboxEntryID] = []
        for text in invocation.operands {
            guard let id = OutboxEntryID(text) else {
                throw Failure(
                    .usage, "\(text) is no ID: they have 32 digits", next: "'twoefay outbox list' shows them.")
            }
            if !ids.contains(id) { ids.append(id) }
        }
        guard !ids.isEmpty else {
            throw Failure(.usage, "no ID is given", next: "'twoefay outbox list' shows them.")
        }
        return ids
    }

    private static func known(_ id: OutboxEntryID, _ store: OperatorStore) throws(Failure) -> OutboxAdmin.Row {
        if let row = try store.read(OutboxAdmin.row(id)) { return row }
        throw Failure(
            .notFound, "there is no \(id) in the outbox",
            next: "Nothing was changed. What was done, or had its end, is in it no more.")
    }

    /// Returns the dead letters that are named, or all dead letters. Throws if a named entry is
    /// missing or not dead.
    private static func dead(_ invocation: Invocation, _ store: OperatorStore) throws(Failure) -> [OutboxEntryID] {
        guard invocation.has("all-dead") else {
            let ids = try ids(invocation)
            for id in ids {
                guard try known(id, store).deadAt == nil else { continue }
                throw Failure(
                    .conflict, "\(id) is not dead: it is done by itself",
                    next: "Nothing was changed. 'twoefay outbox list --dead' shows those that nobody tries any more.")
            }
            return ids
        }
        guard invocation.operands.isEmpty else {
            throw Failure(.usage, "IDs and --all-dead are given", next: "Give one or the other.")
        }
        var wanted = OutboxAdmin.Filter()
        wanted.onlyDead = true
        wanted.limit = .max
        return try store.read(OutboxAdmin.list(wanted)).map(\.id)
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
