import Log
import Relay
import Storage
import World

extension Settings {
    /// Returns the address of the store.
    public func store() throws(Failure) -> StorageURL {
        do {
            return try storageURL()
        } catch {
            throw Failure(.usage, error.description, next: "docs/operators/settings.md shows what storage may be.")
        }
    }

    /// Opens the store of an installation, for a command of `twoefay`.
    public func openStore(
        _ schema: SchemaRequirement = .require, time: any TimeSource = SystemTime()
    ) throws(Failure) -> Store {
        let url = try store()
        if case .sqlite(let path) = url, schema == .require, !Files.exists(path) {
            throw Failure(
                .notFound, "\(url) is not there",
                next: "If it was never made, 'twoefay --config FILE migrate' makes it.")
        }
        var options = StoreOptions()
        // A user of `twoefay` who may not read the master key can still run commands that only
        // read. Every change needs the key for its operation. A key that can be read but is wrong
        // is reported, because rows would go unchecked without it.
        if Files.isReadable(path(of: masterKey)) { options.rows = try loadMasterKey().usableRowAuthenticator() }
        do throws(StoreFailure) {
            return try Store.open(url, schema: schema, time: time, log: Log(minimum: .warning), options: options)
        } catch {
            guard schema == .migrate, case .internal(let reason) = error else { throw Failure(store: error) }
            throw Failure(
                .failed, "the tables cannot be made or brought up to date: \(reason)",
                next: "Nothing that was in them is lost. What was done stays, and relays go on with it; "
                    + "a further try goes on from there.")
        }
    }
}

extension Failure {
    public init(store failure: StoreFailure) {
        switch failure {
        case .unavailable(let reason):
            self.init(
                .unavailable, "the store does not answer: \(reason)",
                next: "See that it runs and can be reached as the settings say; then try again.")
        case .internal(let reason):
            self.init(
                .failed, "the store answers what it should not: \(reason)",
                next: "Is it of another version? 'twoefay --config FILE migrate' brings it up to date.")
        case .forged(let row):
            self.init(
                .failed, "this row was not written by a relay, or was changed since: \(row)",
                next: "If you changed it yourself: twoefay rows adopt \(row) --reason TEXT. If not, somebody else did.")
        }
    }
}
