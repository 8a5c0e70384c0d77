import Commands
import Daemon
import Glibc
import JSON
import Storage
import World

extension Tool {
    static let migrate = Subcommand(
        command: Command(
            "migrate", "Creates the tables of the store, or updates them.",
            options: [
                .init("plan", .nothing, "Show what would be done, and change nothing."),
                .init(
                    "storage", .one("URL"),
                    "The same database with an account that may change tables (default: as in the settings)."),
            ],
            notes: """
                After an update: install the new version on all machines first, then run it once. Relays of both versions go on
                meanwhile. It can be run again at any time, and continues where an interrupted run stopped. It asks for no
                confirmation, because it deletes nothing that a program of the version before still uses.
                Exit status 0: the tables are up to date. 5: the store does not answer, or has tables of another version. 1: a
                statement failed.
                """)
    ) { invocation throws(Failure) in
        var settings = try Settings.load(invocation)
        do throws(SettingsFault) {
            if let text = invocation.value("storage") { settings.storage = try StorageText(settingsText: text) }
        } catch {
            throw Failure(
                .usage, "--storage: \(error.message)",
                next: "Nothing was changed. Give a URL as in the setting 'storage': docs/operators/store.md.")
        }
        let url = try settings.store()
        if invocation.has("plan") { return MigrationReport(url, try settings.migrationPlan(), isDone: false).report }
        let isTerminal = isatty(STDERR_FILENO) == 1
        let done = try settings.migrate { event in
            guard isTerminal, let line = event.line else { return }
            Program.printProgress(line)
        }
        let store = try settings.openStore()
        defer { store.close() }
        try settings.recordIfAble("schema.migrated", note: done.note, in: store)
        return MigrationReport(url, done, isDone: true).report
    }
}

extension MigrationEvent {
    /// The event as a line for people; nil if the report tells it.
    fileprivate var line: String? {
        switch self {
        case .waits: "another program migrates this database: waiting for it"
        case .begins(let step, let number, let sql):
            "schema \(step.version), statement \(number) of \(step.statementCount): \(Self.beginning(of: sql))"
        case .done: nil
        }
    }

    /// The first words of a statement, which name what it changes.
    private static func beginning(of sql: String) -> String {
        sql.split(whereSeparator: \.isWhitespace).prefix(7).joined(separator: " ")
    }
}

extension MigrationPlan {
    /// The versions before and after, for the audit.
    fileprivate var note: String {
        guard let present else { return "created schema \(target)" }
        if changesVersion { return "schema \(present) to \(target)" }
        return steps.isEmpty ? "schema \(present), nothing to do" : "schema \(present), missing views"
    }
}

/// The report of `twoefay migrate`: what is, or was, to do.
private struct MigrationReport {
    let url: StorageURL
    let plan: MigrationPlan
    let isDone: Bool

    init(_ url: StorageURL, _ plan: MigrationPlan, isDone: Bool) {
        self.url = url
        self.plan = plan
        self.isDone = isDone
    }

    var report: Report {
        Report(
            ([opening] + plan.steps.map(line) + [next]).joined(separator: "\n"),
            json: .object([
                "storage": .string("\(url)"), "schema_version": version.map { .integer($0) } ?? .null,
                "from": plan.present.map { .integer($0) } ?? .null, "to": .integer(plan.target),
                "known": .integer(SchemaState.known), "changed": .bool(isDone && !plan.steps.isEmpty),
                "steps": .array(plan.steps.map(json)), "next": .string(next),
            ]))
    }

    /// The version of the tables when this is printed.
    private var version: Int64? { isDone ? plan.target : plan.present }

    private var opening: String {
        let target = "schema \(plan.target)"
        guard let present = plan.present else {
            return isDone ? "The tables in \(url) are created, with \(target)." : "\(url) has no tables yet. The plan:"
        }
        guard plan.changesVersion else {
            let state = "The tables in \(url) have schema version \(present)"
            return plan.steps.isEmpty ? "\(state)." : "\(state). \(isDone ? "What was done:" : "The plan:")"
        }
        return isDone
            ? "The tables in \(url) are brought from schema \(present) to \(plan.target)."
            : "The tables in \(url) have schema \(present), and this program knows \(plan.target). The plan:"
    }

    private func line(_ step: MigrationPlan.Step) -> String {
        "  schema \(step.version), \(step.statementCount) statement\(step.statementCount == 1 ? "" : "s"): \(step.summary)"
    }

    private var next: String {
        let known = SchemaState.known
        if let present = plan.present, present > known {
            return "This program knows schema \(known), and works with these tables. There is nothing to do."
        }
        if plan.steps.isEmpty { return "There is nothing to do." }
        guard isDone else {
            return plan.changesVersion
                ? "Nothing was changed. When all relays run the new version: twoefay --config FILE migrate"
                : "Nothing was changed. To do it: twoefay --config FILE migrate"
        }
        return plan.changesVersion
            ? "Relays that run go on as before. Restart them, one after the other, so that they use the new tables: "
                + "systemctl restart twoefayd"
            : "Relays can use them."
    }

    private func json(_ step: MigrationPlan.Step) -> JSONValue {
        .object([
            "version": .integer(step.version), "summary": .string(step.summary),
            "statements": .integer(Int64(step.statementCount)),
        ])
    }
}
