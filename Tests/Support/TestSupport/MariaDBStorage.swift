import Log
import Storage
import World

extension MariaDBServer {
    /// Makes a database with its tables, and has the settings name it.
    public func store(for settings: inout String) throws {
        let url = url(try freshDatabase())
        try Store.open(
            try StorageURL(url), schema: .migrate, time: SystemTime(), log: Log(minimum: .error, sink: MemorySink())
        ).close()
        try settings.set("storage", to: url)
    }
}
