import Domain
import Metrics
import Storage
import World

/// The metrics of the sources of users. The label `directory` has the names from the settings.
struct DirectoryMetrics {
    private struct Attempt: Hashable {
        let directory: String
        let outcome: String
    }

    private let syncs: GrowingCounters<Attempt>

    init(_ registry: Registry) {
        syncs = registry.growingCounters(
            "twoefay_directory_syncs_total", "Syncs by this relay, by outcome: ok, failed, overtaken.",
            by: ["directory", "outcome"]
        ) { [$0.directory, $0.outcome] }
    }

    /// Creates the series of these directories.
    func show(_ directories: [String]) {
        syncs.know(
            directories.flatMap { name in
                ["ok", "failed", "overtaken"].map { Attempt(directory: name, outcome: $0) }
            })
    }

    func succeeded(_ directory: String) { syncs.add(Attempt(directory: directory, outcome: "ok")) }
    func failed(_ directory: String) { syncs.add(Attempt(directory: directory, outcome: "failed")) }
    func overtaken(_ directory: String) { syncs.add(Attempt(directory: directory, outcome: "overtaken")) }

    /// Declares the gauges of the last syncs, by whichever relay made them.
    static func show(
        in registry: Registry, time: any TimeSource, _ last: @escaping @Sendable () -> [String: DirectoryRuns.Last]
    ) {
        registry.growingGauges(
            "twoefay_directory_last_success_age_seconds",
            "Seconds since the last sync that did not fail, by any relay.", by: "directory"
        ) {
            let now = time.now()
            return last().compactMapValues { last in last.succeededAt.map { max(0, (now - $0).components.seconds) } }
        }
        registry.growingGauges(
            "twoefay_directory_users", "Enabled users of the directory after its last sync.", by: "directory"
        ) { last().mapValues { Int64($0.counts.users) } }
        registry.growingGauges(
            "twoefay_directory_conflicts", "Entries and users that the last sync left as they are.", by: "directory"
        ) { last().mapValues { Int64($0.counts.conflicts) } }
    }
}
