import Daemon
import JSON
import Storage
import World

extension Tool {
    static let listDirectories = Subcommand(
        command: Command("directory list", "Lists the sources of users, with their last syncs.")
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let last = try store.read(DirectoryRuns.all)
        let directories = settings.directories.all
        guard !directories.isEmpty else {
            return Report(
                "There are no directories. Add one under 'directories' in the settings.",
                json: .object(["directories": .array([])]))
        }
        let headings = ["NAME", "WEBSITE", "KIND", "EVERY", "USERS", "LAST SYNC", "STATE"]
        return Report(
            Table(headings, directories.map { $0.row(last[$0.name]) }).text,
            json: .object(["directories": .array(directories.map { $0.json(last[$0.name]) })]))
    }
}

extension Settings.DirectorySettings {
    fileprivate var kindName: String {
        switch kind {
        case .ldap: "ldap"
        case .csv: "csv"
        }
    }

    fileprivate func row(_ last: DirectoryRuns.Last?) -> [String] {
        [
            name, website, kindName, interval == 0 ? "by command" : "\(interval) s",
            last.map { String($0.counts.users) } ?? "", last?.succeededAt?.rfc3339 ?? "never",
            last?.state ?? "",
        ]
    }

    func json(_ last: DirectoryRuns.Last?) -> JSONValue {
        .object([
            "directory": .string(name), "website": .string(website), "kind": .string(kindName),
            "interval": interval == 0 ? .null : .integer(Int64(interval)),
            "started_at": .text(last?.startedAt.rfc3339), "ended_at": .text(last?.endedAt?.rfc3339),
            "succeeded_at": .text(last?.succeededAt?.rfc3339), "error": .text(last?.error),
            "users": .integer(Int64(last?.counts.users ?? 0)), "added": .integer(Int64(last?.counts.added ?? 0)),
            "changed": .integer(Int64(last?.counts.changed ?? 0)),
            "disabled": .integer(Int64(last?.counts.disabled ?? 0)),
            "conflicts": .integer(Int64(last?.counts.conflicts ?? 0)),
        ])
    }
}

extension DirectoryRuns.Last {
    /// The state of the newest sync, such as `ok` or its error.
    var state: String {
        guard endedAt != nil else { return "running since \(startedAt.rfc3339)" }
        if let error { return "failed: \(error)" }
        return counts.conflicts == 0 ? "ok" : "ok, conflicts: \(counts.conflicts)"
    }
}
