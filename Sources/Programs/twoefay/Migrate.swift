import Daemon
import JSON
import Storage

extension Tool {
    static let migrate = Subcommand(
        command: Command(
            "migrate", "Makes the tables of the store, or brings them up to date.",
            options: [
                .init(
                    "storage", .one("URL"),
                    "The same database by another account, which may change tables; as in the settings if left out.")
            ],
            notes: "It may be run again at any time, and goes on where a run that was cut off had come to.")
    ) { invocation throws(Failure) in
        var settings = try Settings.load(invocation)
        do throws(SettingsFault) {
            if let text = invocation.value("storage") { settings.storage = try StorageText(settingsText: text) }
        } catch {
            throw Failure(.usage, "--storage: \(error.message)", next: "Nothing was changed.")
        }
        let store = try settings.openStore(.migrate)
        defer { store.close() }
        return Report(
            "\(try settings.store()) has the tables of version \(store.schemaVersion).",
            json: .object([
                "storage": .string("\(try settings.store())"), "schema_version": .integer(store.schemaVersion),
            ]))
    }
}
