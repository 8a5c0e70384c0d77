import Commands
import Daemon
import JSON
import Storage
import World

extension Tool {
    static let backup = Subcommand(
        command: Command(
            "backup", "Writes a verified copy of the store to a new file, while relays run.",
            operands: [.init("FILE", "The new file. It must not exist.")],
            options: [
                .init(
                    "storage", .one("URL"), "The same store by another account or host (default: as in the settings).")
            ],
            notes: """
                SQLite: the copy is a database. MariaDB: it is SQL, made by mariadb-dump, which must be installed.
                It has no keys and no settings: docs/operators/backup.md says what else to keep, and how to put it back.
                """)
    ) { invocation throws(Failure) in
        var settings = try Settings.load(invocation)
        do throws(SettingsFault) {
            if let text = invocation.value("storage") { settings.storage = try StorageText(settingsText: text) }
        } catch {
            throw Failure(
                .usage, "--storage: \(error.message)",
                next: "Nothing was written. Give a URL as in the setting 'storage': docs/operators/store.md.")
        }
        let url = try settings.store()
        // A store that is not one of this program, or has another version, is reported here.
        let store = try settings.openStore()
        let version = store.schemaVersion
        let file = try BackupFile(invocation.operand(0))
        let isRecorded = invocation.value("storage") == nil
        if isRecorded { record(file, settings, in: store) }
        store.close()
        let (began, progress) = (SystemTime().now(), invocation.progress())
        let outcome = Result { () throws(Failure) in try copy(url, version, to: file, progress) }
        if isRecorded { recordEnd(outcome, of: file, settings) }
        return report(file, url, try outcome.get(), version: version, began: began)
    }

    /// - Parameter version: the version of the store's tables.
    private static func copy(
        _ url: StorageURL, _ version: Int64, to file: BackupFile, _ progress: ProgressLines
    ) throws(Failure) -> StoreCopy {
        switch url {
        case .memory:
            throw Failure(
                .usage, "a store in memory has no backup",
                next: "Nothing was written. It ends with its relay: name a file or a database in 'storage'.")
        case .sqlite(let path):
            try file.fill { file throws(Failure) in try StoreCopy(of: path, in: file, progress) }
        case .mariadb(let server):
            try file.fill { file throws(Failure) in
                try MariaDBDump(server, version: version).copy(to: file, progress)
            }
        }
    }

    /// Records the backup before the copy, so that the copy has the row. A store that cannot be written,
    /// such as one on a full disk, is copied all the same.
    private static func record(_ file: BackupFile, _ settings: Settings, in store: Store) {
        do throws(Failure) {
            try settings.recordIfAble("backup.begun", note: file.path, in: store)
        } catch {
            Program.printError("twoefay: the audit has no row of this backup: \(error.message)")
        }
    }

    /// Records how the backup ended. The copy cannot have this row.
    private static func recordEnd(_ outcome: Result<StoreCopy, Failure>, of file: BackupFile, _ settings: Settings) {
        let (word, result) =
            switch outcome {
            case .success(let copied): ("ok", "\(copied.rows) rows, \(copied.bytes) bytes")
            case .failure(let failure): (failure.code.word, failure.message)
            }
        do throws(Failure) {
            let store = try settings.openStore()
            defer { store.close() }
            try settings.recordIfAble("backup.ended", outcome: word, note: "\(file.path): \(result)", in: store)
        } catch {
            Program.printError("twoefay: the audit has no row of the end of this backup: \(error.message)")
        }
    }

    private static func report(
        _ file: BackupFile, _ url: StorageURL, _ copied: StoreCopy, version: Int64, began: Timestamp
    ) -> Report {
        let milliseconds = (SystemTime().now() - began).wholeMilliseconds
        return Report(
            """
            \(file.path) is a copy of \(url), as it was at \(began.rfc3339) or a moment later: \(copied.rows) rows in \
            \(copied.counts.count) tables, \(copied.bytes) bytes. The copy was verified.
            It is of no use without the keys and settings. Keep those elsewhere; see docs/operators/backup.md.
            """,
            json: .object([
                "file": .string(file.path), "storage": .string("\(url)"), "format": .string(copied.format.rawValue),
                "schema_version": .integer(version), "began_at": .string(began.rfc3339),
                "milliseconds": .integer(milliseconds), "bytes": .integer(copied.bytes), "rows": .integer(copied.rows),
                "tables": .object(
                    copied.counts.sorted { $0.key < $1.key }.reduce(into: JSONObject()) {
                        $0.set($1.key, .integer($1.value))
                    }),
            ]))
    }
}

/// A verified copy of a store.
struct StoreCopy {
    enum Format: String { case sqlite, sql }

    let format: Format
    let bytes: Int64
    /// The number of rows of each table.
    let counts: [String: Int64]

    /// The number of rows of all tables.
    var rows: Int64 { counts.values.reduce(0, +) }

    init(format: Format, bytes: Int64, counts: [String: Int64]) {
        self.format = format
        self.bytes = bytes
        self.counts = counts
    }

    /// Copies a SQLite store into an empty file.
    init(of path: String, in file: String, _ progress: ProgressLines) throws(Failure) {
        do throws(SQLiteBackup.Fault) {
            counts = try SQLiteBackup.copy(path, to: file) { done, all in
                progress.show(Int64(done), of: Int64(all), percent: "copied")
            }
        } catch {
            throw Failure(
                .failed, error.reason, next: "The store was not changed, and the incomplete copy is deleted.")
        }
        format = .sqlite
        bytes = BackupFile.size(file)
    }
}
