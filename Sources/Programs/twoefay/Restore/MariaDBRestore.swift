import Daemon
import EventLoop
import Glibc
import Relay
import Storage

/// Loads a copy into a MariaDB database without tables. The former store is another database, which
/// stays as it is.
struct MariaDBRestore: RestorePlace {
    static let program = "mariadb"

    let url: StorageURL
    let server: StorageURL.Server
    let file: RestoredFile
    let progress: ProgressLines

    var consequence: String { "Other databases stay as they are." }

    func check(_ settings: Settings) throws(Failure) {
        let next = "Nothing was changed. Give a file that 'twoefay backup' has written."
        _ = try DumpedTables.counts(in: file.path, required: ["website", "audit", "migration"], next: next)
        guard try state() == .store else { return }
        if try isInterrupted(settings.openStore(at: url)) { return }
        throw Failure(
            .conflict, "the database of \(url) has tables of a store",
            next: "Nothing was changed. Create an empty database, and name it in 'storage' of the settings: the former "
                + "one is then kept.")
    }

    private func state() throws(Failure) -> LoadedDatabase.State {
        do throws(StoreFailure) {
            return try LoadedDatabase(url).state()
        } catch {
            throw Failure(store: error)
        }
    }

    /// Whether a restore of the same copy was interrupted after the load.
    private func isInterrupted(_ store: Store) throws(Failure) -> Bool {
        defer { store.close() }
        do throws(StoreFailure) {
            guard let epoch = try store.runBlocking(InstallationEpoch.current) else { return false }
            return !epoch.isReady && epoch.source == file.hash
        } catch {
            throw Failure(store: error)
        }
    }

    func restore(
        _ settings: Settings, void: (StorageURL) throws(Failure) -> Void
    ) throws(Failure) -> String? {
        if try state() != .store { try load(settings) }
        try void(url)
        return nil
    }

    private func load(_ settings: Settings) throws(Failure) {
        let database = LoadedDatabase(url)
        do throws(StoreFailure) {
            try database.begin()
        } catch {
            throw Failure(store: error, next: "Give an account that may create tables: --storage URL")
        }
        let hosts: [StorageURL.Server.Host?] = server.socket == nil ? server.hosts : [nil]
        var complaints: [String] = []
        for host in hosts {
            guard let complaint = try run(host) else {
                complaints = []
                break
            }
            complaints.append((host.map { "\($0): " } ?? "") + complaint)
            guard complaint.contains("Can't connect") else { break }
        }
        guard complaints.isEmpty else {
            throw Failure(
                .failed, "\(Self.program): \(complaints.joined(separator: "; "))",
                next: "The copy is not loaded completely. Correct this, and run the command again: it begins anew.")
        }
        try requireNoPrograms(in: database)
        // Makes the views, which the copy does not have, and brings the tables up to date.
        try settings.openStore(.migrate, at: url).close()
        try RestoreWork.begin(file, in: try settings.openStore(at: url))
        do throws(StoreFailure) {
            try database.end()
        } catch {
            throw Failure(store: error, next: "Run the command again: it begins anew.")
        }
    }

    /// Refuses a copy that has brought triggers or other programs: they would act whenever a relay
    /// writes.
    private func requireNoPrograms(in database: LoadedDatabase) throws(Failure) {
        let names: [String]
        do throws(StoreFailure) {
            names = try database.programs()
        } catch {
            throw Failure(store: error)
        }
        guard names.isEmpty else {
            throw Failure(
                .failed, "the copy has made programs in the database: \(names.joined(separator: ", "))",
                next: "'twoefay backup' writes none, so somebody has changed the copy. Drop the database, and use "
                    + "another copy.")
        }
    }

    private func run(_ host: StorageURL.Server.Host?) throws(Failure) -> String? {
        // In the binary mode a line of the copy is SQL, and never a command of the client, such as one
        // that starts a shell.
        let arguments = [
            MariaDBProgram.optionsArgument, "--batch", "--binary-mode", "--default-character-set=utf8mb4",
            server.database,
        ]
        let copy = open(file.path, O_RDONLY | O_CLOEXEC)
        guard copy >= 0 else {
            throw Failure(
                .failed, "\(file.path): \(String(cString: strerror(errno)))",
                next: "The copy is not loaded. Correct this, and run the command again.")
        }
        defer { close(copy) }
        let size = BackupFile.size(file.path)
        return try MariaDBProgram(name: Self.program, arguments: arguments, content: copy, output: .nothing).run(
            try MariaDBProgram.options(server, host)
        ) {
            // The client reads from this descriptor, so its place is how far the client is.
            progress.show(Int64(lseek(copy, 0, SEEK_CUR)), of: size, percent: "of \(size >> 20) MiB loaded")
        }
    }
}
