import CMariaDB
import Glibc

/// One connection to one host, with what is prepared on it. After an error of `.lost` it is closed and made anew.
final class MariaDBConnection {
    struct Timeouts {
        /// In whole seconds, as libmariadb counts.
        var connect: UInt32 = 2
        /// How long a server may be silent: longer than Galera takes to put out a node, whom all others wait for so
        /// long; below the store's deadline, so that a lane finds out in time and asks another host.
        var silence: UInt32 = 7
    }

    private let connection: UnsafeMutablePointer<MYSQL>
    private var prepared: [MariaDBStatement?] = []
    private var isOpen = true

    /// libmariadb counts on somebody having begun it before threads use it.
    private static let library: Bool = mysql_server_init(0, nil, nil) == 0

    init(
        _ server: StorageURL.Server, host: StorageURL.Server.Host?, purpose: Purpose, timeouts: Timeouts
    ) throws(SessionFailure) {
        guard Self.library, let connection = mysql_init(nil) else { throw .refused("libmariadb cannot begin") }
        self.connection = connection
        do throws(SessionFailure) {
            Self.setOptions(connection, server, timeouts)
            let secret = try Self.password(of: server)
            let connected = mysql_real_connect(
                connection, host?.name, server.user, secret, server.database, UInt32(host?.port ?? 0), server.socket,
                UInt(CLIENT_FOUND_ROWS))
            guard connected != nil else { throw failure() }
            cmariadb_send_without_waiting(connection)
            for sql in Self.settings(purpose) { try query(sql) }
        } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    /// Whether it has all that is committed in its cluster, or is part of none.
    func isSynced() throws(SessionFailure) -> Bool {
        guard let state = try value("SHOW STATUS LIKE 'wsrep_local_state'") else { return true }
        return state == Self.synced || state == Self.alone
    }

    private static let synced = "4"
    /// Of a server that could be part of a cluster.
    private static let alone = "0"

    /// A connection often is new because a host was lost: this one must not answer before it has all that was committed
    /// there. One that reads asks for that each time.
    func waitForSync(for purpose: Purpose) throws(SessionFailure) {
        do throws(SessionFailure) {
            // Only a server that can be part of a cluster knows this one.
            try query("SET SESSION wsrep_sync_wait = 1")
            try query("SELECT 1")
            if purpose != .reading { try query("SET SESSION wsrep_sync_wait = 0") }
        } catch {
            switch error {
            case .statement: break
            // It waited in vain for what the others have: as good as gone.
            case .locked(let message), .conflict(let message): throw .lost(message)
            default: throw error
            }
        }
    }

    private static func setOptions(
        _ connection: UnsafeMutablePointer<MYSQL>, _ server: StorageURL.Server, _ timeouts: Timeouts
    ) {
        func set(_ option: mysql_option, _ number: UInt32) {
            withUnsafePointer(to: number) { _ = mysql_options(connection, option, $0) }
        }
        set(MYSQL_OPT_CONNECT_TIMEOUT, timeouts.connect)
        set(MYSQL_OPT_READ_TIMEOUT, timeouts.silence)
        set(MYSQL_OPT_WRITE_TIMEOUT, timeouts.silence)
        // `localhost` is a name like any other: a socket is what `?socket=` says.
        set(
            MYSQL_OPT_PROTOCOL,
            server.socket == nil ? MYSQL_PROTOCOL_TCP.rawValue : MYSQL_PROTOCOL_SOCKET.rawValue)
        set(MYSQL_OPT_LOCAL_INFILE, 0)
        mysql_options(connection, MYSQL_SET_CHARSET_NAME, "utf8mb4")
        if let authority = server.authority {
            var verify: my_bool = 1
            mysql_options(connection, MYSQL_OPT_SSL_CA, authority)
            mysql_options(connection, MYSQL_OPT_SSL_ENFORCE, &verify)
            mysql_options(connection, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify)
        }
    }

    /// Read anew for every connection: it may have been changed.
    private static func password(of server: StorageURL.Server) throws(SessionFailure) -> String? {
        guard let path = server.passwordFile else { return server.password }
        guard let file = fopen(path, "re") else {
            throw .refused("\(path): \(String(cString: strerror(errno)))")
        }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = fread(&bytes, 1, bytes.count, file)
        guard let line = bytes[..<count].split(separator: UInt8(ascii: "\n")).first else {
            throw .refused("\(path) is empty")
        }
        return String(decoding: line, as: UTF8.self)
    }

    private static func settings(_ purpose: Purpose) -> [String] {
        let access = purpose == .writing ? "READ WRITE" : "READ ONLY"
        let isolation = purpose == .reading ? "REPEATABLE READ" : "READ COMMITTED"
        return [
            "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin",
            // Without autocommit: if an error ends the transaction, what is in flight behind it begins another one, which
            // is rolled back, and is not committed statement by statement.
            """
            SET SESSION autocommit = \(purpose == .writing ? 0 : 1), time_zone = '+00:00',
                sql_mode = 'TRADITIONAL,PIPES_AS_CONCAT,ANSI_QUOTES,NO_BACKSLASH_ESCAPES',
                innodb_lock_wait_timeout = 1
            """,
            "SET SESSION TRANSACTION ISOLATION LEVEL \(isolation), \(access)",
        ]
    }

    func close() {
        guard isOpen else { return }
        isOpen = false
        // The connection first: a statement that still had one would ask the server to forget it, and wait.
        mysql_close(connection)
        prepared = []
    }

    func statement(_ statement: Statement) throws(SessionFailure) -> MariaDBStatement {
        while prepared.count <= statement.index { prepared.append(nil) }
        if let ready = prepared[statement.index] { return ready }
        let fresh = try MariaDBStatement(Dialect.mariadb.resolve(statement.sql), on: connection)
        prepared[statement.index] = fresh
        return fresh
    }

    /// Runs a text and waits. What it finds is thrown away.
    func query(_ sql: String) throws(SessionFailure) {
        guard cmariadb_query(connection, sql, UInt(sql.utf8.count)) == 0 else { throw failure() }
        guard mysql_field_count(connection) > 0 else { return }
        guard let found = mysql_store_result(connection) else { throw failure() }
        mysql_free_result(found)
    }

    /// The second column of the first row that a text finds.
    private func value(_ sql: String) throws(SessionFailure) -> String? {
        guard cmariadb_query(connection, sql, UInt(sql.utf8.count)) == 0 else { throw failure() }
        guard let found = mysql_store_result(connection) else { throw failure() }
        defer { mysql_free_result(found) }
        guard mysql_num_fields(found) == 2, let row = mysql_fetch_row(found), let word = row[1] else { return nil }
        return String(cString: word)
    }

    var code: UInt32 { mysql_errno(connection) }

    private func failure() -> SessionFailure {
        MariaDBFailure.of(code, String(cString: mysql_error(connection)))
    }
}
