import Commands
import Daemon
import JSON
import Storage

extension Tool {
    static let migrate = Subcommand(
        command: Command(
            "migrate", "Creates the tables of the store, or updates them.",
            options: [
                .init(
                    "storage", .one("URL"),
                    "The same database with an account that may change tables (default: as in the settings).")
            ],
            notes: "It can be run again at any time, and continues where an interrupted run stopped.")
    ) { invocation throws(Failure) in
        var settings = try Settings.load(invocation)
        do throws(SettingsFault) {
            if let text = invocation.value("storage") { settings.storage = try StorageText(settingsText: text) }
        } catch {
            throw Failure(.usage, "--storage: \(error.message)", next: "Nothing was changed.")
        }
        let store = try settings.openStore(.migrate)
        defer { store.close() }
        try settings.recordIfAble("schema.migrated", note: "version \(store.schemaVersion)", in: store)
        return Report(
            "The tables in \(try settings.store()) have schema version \(store.schemaVersion).",
            json: .object([
                "storage": .string("\(try settings.store())"), "schema_version": .integer(store.schemaVersion),
            ]))
    }
}
