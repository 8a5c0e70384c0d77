import Commands
import Daemon
import Directory
import Domain
import JSON
import Storage
import World

extension Tool {
    static let syncDirectory = Subcommand(
        command: Command(
            "directory sync", "Adds, changes and disables users of a website as a directory says.",
            operands: [.init("NAME", "The directory, as the settings name it.")],
            options: [
                .init("dry-run", .nothing, "Show the changes, and change nothing."),
                .init("allow-many", .nothing, "Disable users, and take values, beyond what disable_limit allows."),
            ],
            notes: """
                The source is read to its end before anything is written. If it fails, ends in the middle or is empty, nothing
                is changed. The command can be run at any time, also while a relay syncs: the newest sync goes on.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let directory = try settings.directory(named: invocation.operand(0))
        let store = try settings.openStore()
        defer { store.close() }
        let sync = DirectorySync(directory, settings, store: store, time: SystemTime(), progress: invocation.progress())
        guard !invocation.has("dry-run") else {
            return try sync.dryRun().report(directory, isDryRun: true)
        }
        let master = try settings.loadMasterKey()
        let keys = DirectorySync.Keys(
            operations: Operations(masterKey: master.secret, randomness: SystemRandomness()),
            sealer: try master.usableSealer(), randomness: SystemRandomness())
        let outcome = try sync.run(keys, allowsMany: invocation.has("allow-many"))
        return outcome.report(directory, isDryRun: false)
    }
}

extension DirectorySync.Outcome {
    /// The number of changes that the text of a dry run shows.
    private static let shown = 100

    fileprivate func report(_ directory: Settings.DirectorySettings, isDryRun: Bool) -> Report {
        Report(
            text(directory, isDryRun: isDryRun),
            json: .object([
                "directory": .string(directory.name), "website": .string(directory.website),
                "dry_run": .bool(isDryRun), "added": .integer(number(isDryRun, \.added) { $0.isAddition }),
                "changed": .integer(number(isDryRun, \.changed) { $0.isUpdate }),
                "disabled": .integer(number(isDryRun, \.disabled) { $0.isDisabling }),
                "unchanged": .integer(Int64(plan.unchanged)),
                "losses": .integer(Int64(plan.losses)), "lost_policies": .integer(Int64(plan.lostPolicies)),
                "over_limit": .bool(plan.exceeds(percent: directory.disableLimit)),
                "keeps_leavers": .bool(plan.keepsLeavers),
                "changes": .array(plan.actions.map(\.json)), "conflicts": .array(conflicts.map(\.json)),
            ]))
    }

    /// The number of planned changes of a kind in a dry run, and of those that were made otherwise.
    private func number(
        _ isDryRun: Bool, _ count: KeyPath<DirectoryRuns.Counts, Int>, _ isKind: (DirectoryPlan.Action) -> Bool
    ) -> Int64 {
        Int64(isDryRun ? plan.actions.count(where: isKind) : counts[keyPath: count])
    }

    private func text(_ directory: Settings.DirectorySettings, isDryRun: Bool) -> String {
        let numbers =
            "\(number(isDryRun, \.added) { $0.isAddition }) added, \(number(isDryRun, \.changed) { $0.isUpdate }) changed, "
            + "\(number(isDryRun, \.disabled) { $0.isDisabling }) disabled, \(plan.unchanged) unchanged, "
            + "\(conflicts.count) left as they are"
        var lines = [
            isDryRun
                ? "Nothing was changed. Without --dry-run, the sync of \(directory.name) to \(directory.website) would be:"
                : "\(directory.name) is synced to \(directory.website):",
            "  \(numbers)",
        ]
        if isDryRun, !plan.actions.isEmpty {
            let rows = plan.actions.prefix(Self.shown).map { [$0.word, $0.username, $0.detail] }
            lines += ["", Table(["ACTION", "USER", "CHANGES"], rows).text]
            if plan.actions.count > Self.shown {
                lines.append("and \(plan.actions.count - Self.shown) more; --json shows all")
            }
        }
        if isDryRun, plan.lostPolicies > 0 {
            lines.append("\nUsers who lose the policy of their group: \(plan.lostPolicies)")
        }
        if isDryRun, plan.exceeds(percent: directory.disableLimit) {
            lines.append(
                "\nThe sync would be refused: \(plan.excess(over: directory.disableLimit)). --allow-many permits it.")
        }
        if plan.keepsLeavers {
            lines.append("\nNobody is disabled, because an entry has no readable id: see below.")
        }
        return (lines + DirectoryConflict.lines(conflicts)).joined(separator: "\n")
    }
}

extension DirectoryPlan.Action {
    fileprivate var isAddition: Bool { if case .add = self { true } else { false } }
    fileprivate var isUpdate: Bool { if case .update = self { true } else { false } }
    fileprivate var isDisabling: Bool { if case .disable = self { true } else { false } }

    /// The name of the action in output.
    fileprivate var word: String {
        switch self {
        case .add: "add"
        case .update(let update): update.adopts ? "adopt" : update.enables ? "enable" : "change"
        case .disable: "disable"
        }
    }

    private var changes: [(field: String, before: String?, after: String?)] {
        switch self {
        case .add(let record):
            [("email", nil, record.email), ("phone", nil, record.phone), ("policy", nil, record.policy)]
                .filter { $0.2 != nil }
        case .update(let update): update.changes
        case .disable: []
        }
    }

    fileprivate var detail: String {
        changes.map { "\($0.field): \($0.before.map { "\($0) → " } ?? "")\($0.after ?? "none")" }.joined(
            separator: ", ")
    }

    fileprivate var json: JSONValue {
        .object([
            "action": .string(word), "user": .string(username),
            "changes": .array(
                changes.map {
                    .object([
                        "field": .string($0.field), "before": .text($0.before), "after": .text($0.after),
                    ])
                }),
        ])
    }
}
