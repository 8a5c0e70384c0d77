import Bytes
import CLinux
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

    init(_ server: StorageURL.Server) { self.server = server }

    /// Writes the SQL to an existing file, and verifies it. Takes the first host that can be reached, as
    /// the relay does.
    func copy(to path: String) throws(Failure) -> StoreCopy {
        let hosts: [StorageURL.Server.Host?] = server.socket == nil ? server.hosts : [nil]
        var complaints: [String] = []
        for host in hosts {
            guard let complaint = try dump(host, to: path) else {
                let counts = try DumpedTables.counts(in: path)
                return StoreCopy(format: .sql, bytes: BackupFile.size(path), counts: counts)
            }
            complaints.append((host.map { "\($0): " } ?? "") + complaint)
            guard complaint.contains("when trying to connect") else { break }
        }
        throw Self.failure(complaints.joined(separator: "; "))
    }

    /// Runs the program. Returns what it complains about; nil if it succeeds.
    private func dump(_ host: StorageURL.Server.Host?, to path: String) throws(Failure) -> String? {
        let settings = try optionFile(host)
        let output = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
        guard output >= 0 else { throw Self.failure("\(path): \(String(cString: strerror(errno)))") }
        defer { close(output) }
        var (input, errors): ([Int32], [Int32]) = ([0, 0], [0, 0])
        guard pipe2(&input, O_CLOEXEC) == 0 else { throw Self.failure(String(cString: strerror(errno))) }
        guard pipe2(&errors, O_CLOEXEC) == 0 else {
            for fd in input { close(fd) }
            throw Self.failure(String(cString: strerror(errno)))
        }
        let started = Result { () throws(SystemFailure) in
            try Spawning(
                program: Self.program, arguments: arguments, input: input[0], output: .descriptor(output),
                errors: errors[1], hasOwnGroup: false
            ).start()
        }
        close(input[0])
        close(errors[1])
        // The options are shorter than what a pipe holds, so this does not wait for the program.
        settings.withBytes { _ = write(input[1], $0.baseAddress, $0.count) }
        close(input[1])
        defer { close(errors[0]) }
        guard case .success(let pid) = started else {
            throw Failure(
                .failed, "\(Self.program) cannot be started",
                next: "Install MariaDB's client programs (mariadb-client), or run this where they are.")
        }
        let complaint = Self.text(of: errors[0], reportingSizeOf: path)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        guard status != 0 else { return nil }
        return complaint.isEmpty ? "it ended with status \(status)" : complaint
    }

    private static func failure(_ reason: String) -> Failure {
        Failure(
            .failed, "\(program): \(reason)", next: "The store was not changed, and the incomplete copy is deleted.")
    }

    /// Reads what the program complains about, until it ends. Shows the size of the copy meanwhile.
    private static func text(of errors: Int32, reportingSizeOf path: String) -> String {
        let isTerminal = isatty(STDERR_FILENO) == 1
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            var waiting = pollfd(fd: errors, events: Int16(POLLIN), revents: 0)
            let ready = poll(&waiting, 1, 2000)
            if ready == 0, isTerminal { Program.printProgress("\(BackupFile.size(path) >> 20) MiB written") }
            let count = ready > 0 ? read(errors, &chunk, chunk.count) : Int(ready)
            if count > 0 { bytes += chunk[..<count] }
            // The status of the program tells whether the copy is complete.
            if ready != 0, count == 0 || count < 0 && errno != EINTR { break }
        }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        return lines.joined(separator: "; ")
    }

    private var arguments: [String] {
        [
            // It must be the first one. It keeps the options of other files out.
            "--defaults-file=/dev/stdin", "--single-transaction", "--quick", "--hex-blob", "--no-autocommit",
            "--default-character-set=utf8mb4", "--no-tablespaces", "--skip-triggers", "--skip-add-drop-table",
            // In UTC, as the relay writes them; and each row in a line, so that rows can be counted.
            "--tz-utc", "--extended-insert", server.database,
        ] + StoreTables.names
    }

    /// The options in the form of an option file.
    private func optionFile(_ host: StorageURL.Server.Host?) throws(Failure) -> Secret {
        var lines = ["[client]", "user=\(Self.quoted(server.user))"]
        if let socket = server.socket {
            lines += ["protocol=socket", "socket=\(Self.quoted(socket))"]
        } else if let host {
            lines += ["protocol=tcp", "host=\(Self.quoted(host.name))", "port=\(host.port)"]
        }
        if let authority = server.authority {
            lines += ["ssl-ca=\(Self.quoted(authority))", "ssl-verify-server-cert"]
        }
        if let password = try password() { lines.append("password=\(Self.quoted(password))") }
        return Secret(Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    private func password() throws(Failure) -> String? {
        guard let path = server.passwordFile else { return server.password }
        do throws(Files.Problem) {
            let lines = String(decoding: try Files.read(path), as: UTF8.self).split(separator: "\n")
            return lines.first.map(String.init)
        } catch {
            throw Failure(.failed, error.text, next: "It is the password_file of the store.")
        }
    }

    private static func quoted(_ text: String) -> String {
        let escaped = text.flatMap { $0 == "\\" || $0 == "\"" ? ["\\", $0] : [$0] }
        return "\"\(String(escaped))\""
    }
}

/// The tables in a dump.
enum DumpedTables {
    /// Counts the rows of each table. Throws if a table is missing, or the end is.
    static func counts(in path: String) throws(Failure) -> [String: Int64] {
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
        let missing = StoreTables.names.filter { counts[$0] == nil }
        guard missing.isEmpty else { throw incomplete("the copy lacks the tables \(missing.joined(separator: ", "))") }
        guard last.hasPrefix("-- Dump completed") else { throw incomplete("the copy ends too early") }
        return counts
    }

    private static func name(_ line: String) -> String {
        let parts = line.split(separator: "`", maxSplits: 2)
        return parts.count > 1 ? String(parts[1]) : ""
    }

    private static func incomplete(_ reason: String) -> Failure {
        Failure(.failed, reason, next: "The incomplete copy is deleted. Run the command again.")
    }
}
