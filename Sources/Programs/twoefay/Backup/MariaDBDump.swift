import Daemon
import EventLoop
import Glibc
import Storage

/// A copy of a MariaDB store as SQL, made by `mariadb-dump` in one consistent snapshot
/// (`--single-transaction`): InnoDB keeps the old versions of rows, so relays go on writing.
///
/// The account needs SELECT only, because the views are left out: `twoefay migrate` makes them. The
/// password goes through a pipe, and so appears neither in the list of processes nor in a file.
struct MariaDBDump {
    static let program = "mariadb-dump"

    private let server: StorageURL.Server
    private let tables: [String]

    /// - Parameter version: the version of the tables.
    init(_ server: StorageURL.Server, version: Int64) {
        self.server = server
        tables = StoreTables.names(of: version)
    }

    /// Writes the SQL to an existing file, and verifies it. Takes the first host that can be reached, as
    /// the relay does.
    func copy(to path: String, _ progress: ProgressLines) throws(Failure) -> StoreCopy {
        let hosts: [StorageURL.Server.Host?] = server.socket == nil ? server.hosts : [nil]
        var complaints: [String] = []
        for host in hosts {
            guard let complaint = try dump(host, to: path, progress) else {
                let counts = try DumpedTables.counts(in: path, required: tables)
                return StoreCopy(format: .sql, bytes: BackupFile.size(path), counts: counts)
            }
            complaints.append((host.map { "\($0): " } ?? "") + complaint)
            guard complaint.contains("when trying to connect") else { break }
        }
        throw Self.failure(complaints.joined(separator: "; "))
    }

    /// Runs the program. Returns what it complains about; nil if it succeeds.
    private func dump(
        _ host: StorageURL.Server.Host?, to path: String, _ progress: ProgressLines
    ) throws(Failure) -> String? {
        let options = try MariaDBProgram.options(server, host)
        let output = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
        guard output >= 0 else { throw Self.failure("\(path): \(String(cString: strerror(errno)))") }
        defer { close(output) }
        return try MariaDBProgram(name: Self.program, arguments: arguments, output: .descriptor(output)).run(options) {
            progress.show("\(BackupFile.size(path) >> 20) MiB written")
        }
    }

    private static func failure(_ reason: String) -> Failure {
        Failure(
            .failed, "\(program): \(reason)", next: "The store was not changed, and the incomplete copy is deleted.")
    }

    private var arguments: [String] {
        [
            MariaDBProgram.optionsArgument, "--single-transaction", "--quick", "--hex-blob", "--no-autocommit",
            "--default-character-set=utf8mb4", "--no-tablespaces", "--skip-triggers", "--skip-add-drop-table",
            // In UTC, as the relay writes them; and each row in a line, so that rows can be counted.
            "--tz-utc", "--extended-insert", server.database,
        ] + tables
    }
}

/// The tables in a dump.
enum DumpedTables {
    /// Counts the rows of each table. Throws if a table is missing, or the end is.
    ///
    /// - Parameters:
    ///   - required: the tables that must be there. A copy of an earlier version has fewer.
    ///   - next: what to do then, for the message.
    static func counts(
        in path: String, required: [String],
        next: String = "The incomplete copy is deleted. Run the command again."
    ) throws(Failure) -> [String: Int64] {
        func incomplete(_ reason: String) -> Failure { Failure(.failed, reason, next: next) }
        guard let file = fopen(path, "re") else { throw incomplete("\(path): \(String(cString: strerror(errno)))") }
        defer { fclose(file) }
        var counts: [String: Int64] = [:]
        var (table, last) = ("", "")
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        while case let length = getline(&line, &capacity, file), length > 0, let line {
            // Only the beginning matters, and rows may be long.
            let start = String(
                decoding: UnsafeRawBufferPointer(start: line, count: min(length, 160)), as: UTF8.self)
            if start.hasPrefix("CREATE TABLE `") {
                counts[name(start), default: 0] += 0
            } else if start.hasPrefix("INSERT INTO `") {
                table = name(start)
                // Older versions write the first row into this line.
                if start.contains("VALUES (") { counts[table, default: 0] += 1 }
            } else if start.hasPrefix("(") {
                counts[table, default: 0] += 1
            }
            if start != "\n" { last = start }
        }
        let missing = required.filter { counts[$0] == nil }
        guard missing.isEmpty else { throw incomplete("the copy lacks the tables \(missing.joined(separator: ", "))") }
        guard last.hasPrefix("-- Dump completed") else { throw incomplete("the copy ends too early") }
        return counts
    }

    private static func name(_ line: String) -> String {
        let parts = line.split(separator: "`", maxSplits: 2)
        return parts.count > 1 ? String(parts[1]) : ""
    }
}
