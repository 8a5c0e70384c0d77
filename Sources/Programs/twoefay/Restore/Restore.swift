import Bytes
import Commands
import Daemon
import Glibc
import JSON
import Storage
import World

extension Tool {
    static let restore = Subcommand(
        command: Command(
            "restore", "Puts a copy of the store back, while no relay runs, and voids what it may have forgotten.",
            operands: [.init("FILE", "The copy, as 'twoefay backup' has written it.")],
            options: [
                .init(
                    "since", .one("EXPORT"),
                    "An export of the audit that is newer than the copy: losses of rights are replayed from it."),
                .init(
                    "storage", .one("URL"),
                    "The same database with an account that may create tables (default: as in the settings)."),
                Invocation.yes,
            ],
            notes: """
                A copy forgets what was revoked, locked and used since it was made. Without --since, all activations and recovery
                codes are void, hardware tokens have to be resynchronised, and phones are marked for verification by their website.
                With it, only what the export names. Open logins, recoveries and sent codes end in both cases.
                SQLite: the former store is kept beside the new one. MariaDB: the database must have no tables. The command can be
                run again if it was interrupted. docs/operators/backup.md has the whole procedure.
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
        // The keys are needed to sign what is voided, and must be those of the copy.
        _ = try settings.loadMasterKey()
        let url = try settings.store()
        let progress = invocation.progress()
        let file = try RestoredFile(invocation.operand(0), progress)
        let export = try invocation.value("since").map { path throws(Failure) in try AuditExportFile(path, progress) }
        let place = try RestorableStores.of(url, file, progress)
        try place.check(settings)
        try invocation.confirm(
            "\(file.path) takes the place of the store \(url). " + place.consequence
                + (export == nil ? " Without --since, much has to be verified by hand afterwards." : ""))
        var work = RestoreWork(settings: settings, file: file, export: export, progress: progress)
        let former = try place.restore(settings) { url throws(Failure) in try work.run(at: url) }
        return RestoreReport(work: work, url: url, former: former).report
    }
}

/// A store into which a copy can be put back.
protocol RestorePlace {
    /// The fate of the former store, as a sentence.
    var consequence: String { get }

    /// Checks what can be checked before anything is changed.
    func check(_ settings: Settings) throws(Failure)

    /// Puts the copy back.
    ///
    /// - Parameter void: voids what the copy may have forgotten, in the store at an address, before
    ///   a relay can start with it.
    /// - Returns: where the former store is; nil if there was none.
    func restore(_ settings: Settings, void: (StorageURL) throws(Failure) -> Void) throws(Failure) -> String?
}

enum RestorableStores {
    /// Returns the place for a copy, if the copy has the form of the store.
    static func of(
        _ url: StorageURL, _ file: RestoredFile, _ progress: ProgressLines
    ) throws(Failure) -> any RestorePlace {
        let next = "Nothing was changed. 'storage' in the settings names the store."
        switch url {
        case .memory: throw Failure(.usage, "a store in memory cannot be restored", next: next)
        case .sqlite(let path):
            guard file.isSQLite else {
                throw Failure(.usage, "\(file.path) is not a SQLite database, but the store is one", next: next)
            }
            return SQLiteRestore(path: path, file: file, progress: progress)
        case .mariadb(let server):
            guard !file.isSQLite else {
                throw Failure(.usage, "\(file.path) is a SQLite database, but the store is in MariaDB", next: next)
            }
            return MariaDBRestore(url: url, server: server, file: file, progress: progress)
        }
    }
}
