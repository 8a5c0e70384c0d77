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
            throw Failure(.usage, error.description, next: "docs/operators/settings.md describes storage.")
        }
    }

    /// The warning about a password in `storage` that other users of this machine can read; nil if
    /// there is none.
    ///
    /// - Parameter file: the path of the settings file.
    func passwordWarning(_ file: String) -> String? {
        guard case .mariadb(let server)? = try? storageURL(), server.password != nil, Files.isReadableByOthers(file)
        else { return nil }
        return "\(file): others can read the password in storage; chmod 600 it, or name a password_file"
    }

    /// Opens the store of an installation, for a command of `twoefay`.
    ///
    /// - Parameter place: the store; nil for that of the settings.
    public func openStore(
        _ schema: SchemaRequirement = .require, at place: StorageURL? = nil, time: any TimeSource = SystemTime()
    ) throws(Failure) -> Store {
        let url = if let place { place } else { try store() }
        if case .sqlite(let path) = url, schema == .require, !Files.exists(path) {
            throw Failure(
                .notFound, "\(url) does not exist",
                next: "If it was never created, 'twoefay --config FILE migrate' creates it.")
        }
        var options = StoreOptions()
        options.author = AuditAuthor(
            program: "tool", host: HostName.current, actor: "operator \(Account.current)", reason: reason)
        // A user of `twoefay` who may not read the master key can still run commands that only
        // read. Every change needs the key for its operation. A key that can be read but is wrong
        // is reported, because rows would go unchecked without it.
        if Files.isReadable(path(of: masterKey)) {
            let keys = try loadMasterKey()
            options.rows = try keys.usableRowAuthenticator()
            options.personal = personalSealer(try keys.usableSealer())
        }
        // Another store is a copy that is being restored. It may be given up, and its head would remain.
        if place == nil { options.onClose = { head in writeHead(head) } }
        do throws(StoreFailure) {
            return try Store.open(url, schema: schema, time: time, log: Log(minimum: .warning), options: options)
        } catch {
            throw schema == .migrate ? Failure(migration: error, at: url) : Failure(store: error)
        }
    }

    /// Plans the migration of the store of the settings. It changes nothing.
    public func migrationPlan() throws(Failure) -> MigrationPlan {
        let url = try store()
        do throws(StoreFailure) {
            return try Store.migrationPlan(url)
        } catch {
            throw Failure(store: error)
        }
    }

    /// Migrates the store of the settings.
    public func migrate(progress: (MigrationEvent) -> Void) throws(Failure) -> MigrationPlan {
        let url = try store()
        do throws(StoreFailure) {
            return try Store.migrate(url, at: SystemTime().now(), progress: progress)
        } catch {
            throw Failure(migration: error, at: url)
        }
    }
}

extension Failure {
    /// A failure of the store that has left something behind.
    ///
    /// - Parameter next: how the operator finds out what was done, and what to do then.
    public init(store failure: StoreFailure, next: String) {
        let known = Failure(store: failure)
        self.init(known.code, known.message, next: next)
    }

    /// A failure of a migration. What it has done stays.
    fileprivate init(migration failure: StoreFailure, at url: StorageURL) {
        guard case .internal(let reason) = failure else {
            self.init(store: failure)
            return
        }
        // The server's words may contain values, so the store gives its number alone.
        if ["MariaDB 1142", "MariaDB 1227", "MariaDB 1370"].contains(where: reason.contains) {
            self.init(
                .failed, "the account may not change tables: \(reason)",
                next: "It needs the rights CREATE, ALTER, DROP, INDEX and CREATE VIEW besides those to rows: "
                    + "GRANT ALL ON \(Self.database(of: url)).* TO an account, and give its URL with --storage. "
                    + "See 'Accounts in MariaDB' in docs/operators/store.md.")
            return
        }
        self.init(
            .failed, "the tables cannot be created or migrated: \(reason)",
            next: "No data was lost. Completed steps stay, and relays can work with them; "
                + "the next attempt continues from there.")
    }

    private static func database(of url: StorageURL) -> String {
        if case .mariadb(let server) = url { server.database } else { "DATABASE" }
    }

    public init(store failure: StoreFailure) {
        switch failure {
        case .unavailable(let reason):
            self.init(
                .unavailable, "the store cannot be used: \(reason)",
                next: "If it is down, start it. If it refuses this program, correct what the reason names: host, "
                    + "account or password.")
        case .mismatched(let reason, let remedy):
            self.init(.unavailable, "the store cannot be used: \(reason)", next: remedy)
        case .internal(let reason):
            self.init(
                .failed, "the store gave an unexpected answer: \(reason)",
                next: "It may have another version: 'twoefay --config FILE migrate' updates it.")
        case .forged(let row):
            self.init(
                .failed, "the MAC of this row is not valid, so no relay wrote it like this: \(row)",
                next: "If you changed it: twoefay rows adopt \(row) --reason TEXT. If not, treat it as a break-in.")
        }
    }
}
