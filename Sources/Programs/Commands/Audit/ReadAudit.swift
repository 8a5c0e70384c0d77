import Bytes
import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let tailAudit = Subcommand(
        command: Command(
            "audit tail", "Shows the newest rows of the audit.",
            options: [.init("count", .one("N"), "How many rows (20 if it is missing, 1000 at most).")])
    ) { invocation throws(Failure) in
        let text = invocation.value("count") ?? "20"
        guard let count = Int(text), 1...1000 ~= count else {
            throw Failure(.usage, "--count must be a number from 1 to 1000", next: "Without it, 20 rows are shown.")
        }
        let store = try OperatorStore(invocation)
        defer { store.close() }
        return report(try store.read(AuditTrail.newest(count)))
    }

    static let searchAudit = Subcommand(
        command: Command(
            "audit search", "Finds rows of the audit.",
            options: AuditFilter.options + [.init("limit", .one("N"), "At most so many rows (1000 if it is missing).")],
            notes: """
                A row must fit all options. Times are as in the output: 2026-11-27T04:00:00Z, or 2026-11-27 for midnight in UTC.
                """)
    ) { invocation throws(Failure) in
        guard let limit = Int(invocation.value("limit") ?? "1000"), limit > 0 else {
            throw Failure(.usage, "--limit must be a number above 0", next: "Without it, 1000 rows are shown at most.")
        }
        let store = try OperatorStore(invocation)
        defer { store.close() }
        try store.requireServed(
            limit: limit,
            next: "Use --since and --until for further rows. 'twoefay audit export' writes all of them to a file.")
        let filter = try AuditFilter.read(invocation, store)
        let progress = invocation.progress()
        var events: [AuditEvent] = []
        try store.eachAuditPage(filter, progress) { page in
            events += page
            return events.count < limit
        }
        return report(Array(events.prefix(limit)))
    }

    static let exportAudit = Subcommand(
        command: Command(
            "audit export", "Writes rows of the audit to a file, as lines of JSON.",
            options: [.init("out", .one("FILE"), "The file, which must not exist yet (required).")]
                + AuditFilter.options,
            notes: """
                Each line is an object with the members of 'audit search --json'. The file can have personal data: its mode is 0600.
                The export is itself in the audit (audit.exported).
                """)
    ) { invocation throws(Failure) in
        guard let path = invocation.value("out") else {
            throw Failure(.usage, "--out is missing", next: "Name a new file for the rows.")
        }
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let filter = try AuditFilter.read(invocation, store)
        do throws(Files.Problem) {
            try Files.create(path, [], mode: 0o600)
        } catch {
            throw Failure(error.exists ? .conflict : .failed, error.text, next: "Choose another file with --out.")
        }
        // Before the first row, so that an export that is cut short is in the audit, too.
        let wanted = AuditFilter.text(invocation)
        try store.run {
            ProgramEvents.record("audit.export_begun", note: "\(wanted) to \(path)", at: store.now, as: $0)
        }
        let count = try writeRows(filter, of: store, to: path, invocation.progress())
        try store.run {
            ProgramEvents.record(
                "audit.exported", outcome: "done", note: "\(count) rows (\(wanted)) to \(path)", at: store.now, as: $0)
        }
        return Report(
            "\(count) rows are in \(path).", json: .object(["rows": .integer(Int64(count)), "file": .string(path)]))
    }

    private static func writeRows(
        _ filter: AuditTrail.Filter, of store: OperatorStore, to path: String, _ progress: ProgressLines
    ) throws(Failure) -> Int {
        var count = 0
        try store.eachAuditPage(filter) { page throws(Failure) in
            do throws(Files.Problem) {
                try Files.append(page.flatMap { JSONWriter.write($0.json) + [UInt8(ascii: "\n")] }, to: path)
            } catch {
                throw Failure(.failed, error.text, next: "The file has \(count) rows, and is not complete.")
            }
            count += page.count
            progress.show("\(count) rows written")
            return true
        }
        return count
    }

    private static func report(_ events: [AuditEvent]) -> Report {
        let json = JSONValue.object(["rows": .array(events.map { .object($0.json) })])
        guard !events.isEmpty else { return Report("No row fits.", json: json) }
        let rows = events.map { event in
            [
                event.at.rfc3339, event.event, event.actor ?? "", event.website ?? "",
                event.username ?? event.user ?? "",
                event.device ?? "", event.outcome ?? "",
                [event.note, event.changes, event.reason].compactMap(\.self).joined(separator: "; "),
            ]
        }
        let header = ["TIME", "EVENT", "ACTOR", "WEBSITE", "USER", "PHONE", "OUTCOME", "WORDS"]
        return Report(Table(header, rows).text, json: json)
    }
}

/// The options of a search in the audit.
private enum AuditFilter {
    static let options: [Command.Option] = [
        .init("website", .one("NAME"), "Only rows about this website."),
        .init("user", .one("USER"), "Only rows about this user: an id of 32 digits, or a name with --website."),
        .init("device", .one("DEVICE"), "Only rows about this phone."),
        .init("challenge", .one("ID"), "Only rows about this login, by the id of its challenge."),
        .init("request", .one("ID"), "Only rows that this request wrote, by its id in the log."),
        .init("actor", .one("ACTOR"), "Only rows by this actor, such as operator or 'operator alice'."),
        .init("event", .one("EVENT"), "Only this event, such as user.locked, or all that begin with user."),
        .init("since", .one("TIME"), "Only rows of this time or later."),
        .init("until", .one("TIME"), "Only rows before this time."),
    ]

    static func read(_ invocation: Invocation, _ store: OperatorStore) throws(Failure) -> AuditTrail.Filter {
        var filter = AuditTrail.Filter()
        let website = invocation.value("website")
        if let website { filter.website = try store.website(named: website).id }
        if let user = invocation.value("user") {
            if let id = UserID(user) {
                filter.user = id
            } else {
                guard let website else {
                    throw Failure(
                        .usage, "--user needs --website, or the id of the user (32 digits)",
                        next: "'twoefay user find' finds users.")
                }
                guard let found = try store.read(Accounts.user(user, of: website)) else {
                    throw Failure(
                        .notFound, "\(website) has no user \(user)",
                        next: "Rows of a deleted user have only the id: give --user its 32 digits.")
                }
                filter.user = found.id
            }
        }
        if let device = invocation.value("device") {
            guard let id = DeviceID(device) else {
                throw Failure(
                    .usage, "--device must be the 32 digits of a phone's id", next: "'twoefay device list' shows them.")
            }
            filter.device = id
        }
        if let challenge = invocation.value("challenge") {
            guard let id = ChallengeID(challenge) else {
                throw Failure(
                    .usage, "--challenge must be the 32 digits of a login's id",
                    next: "'twoefay user logins' and the log show them.")
            }
            filter.challenge = id
        }
        filter.request = invocation.value("request")
        filter.actor = invocation.value("actor")
        filter.event = invocation.value("event")
        filter.since = try time("since", invocation)
        filter.until = try time("until", invocation)
        return filter
    }

    /// The options as the operator gave them.
    static func text(_ invocation: Invocation) -> String {
        let given = options.compactMap { option in invocation.value(option.name).map { "\(option.name) \($0)" } }
        return given.isEmpty ? "all rows" : given.joined(separator: ", ")
    }

    private static func time(_ name: String, _ invocation: Invocation) throws(Failure) -> Timestamp? {
        guard let text = invocation.value(name) else { return nil }
        var full = text.count == 10 ? text + "T00:00:00Z" : text
        if full.hasSuffix("Z"), !full.contains(".") { full = full.dropLast() + ".000Z" }
        guard let time = Timestamp(rfc3339: full) else {
            throw Failure(.usage, "--\(name) must be a time", next: "Write it as 2026-11-27T04:00:00Z, or as a date.")
        }
        return time
    }
}

extension OperatorStore {
    /// Calls `body` with the rows that fit, oldest first, until it returns false.
    fileprivate func eachAuditPage(
        _ filter: AuditTrail.Filter, _ progress: ProgressLines? = nil, _ body: ([AuditEvent]) throws(Failure) -> Bool
    ) throws(Failure) {
        var position: AuditTrail.Position?
        var searched = 0
        repeat {
            let page = try read(AuditTrail.page(filter, after: position))
            let goesOn = page.events.isEmpty ? true : try body(page.events)
            guard goesOn else { return }
            position = page.next
            searched += AuditTrail.pageSize
            progress?.show("\(searched) rows searched")
        } while position != nil
    }
}
