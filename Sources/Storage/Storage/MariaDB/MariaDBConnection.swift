import CMariaDB
import Glibc

/// A connection to one host, with its prepared statements. After a `.lost` error, the session
/// closes it and opens another.
final class MariaDBConnection {
    struct Timeouts {
        /// The time to connect, in whole seconds as libmariadb requires.
        var connect: UInt32 = 2
        /// The time for which a server may send nothing, in whole seconds. It is longer than the
        /// time in which Galera evicts a failed node, because all other nodes wait that long. It is
        /// shorter than the store's deadline, so that a lane can turn to another host in time.
        var silence: UInt32 = 7
    }

    private let connection: UnsafeMutablePointer<MYSQL>
    private var prepared: [MariaDBStatement?] = []
    private var isOpen = true
    /// Whether the server is a node of a cluster.
    private(set) var isInCluster = false

    /// Initializes libmariadb once, which is required before several threads use it.
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
            let provider = try value("SHOW VARIABLES LIKE 'wsrep_provider'")
            isInCluster = provider != nil && provider != "none"
        } catch {
            close()
            throw error
        }
    }

    deinit { close() }

    /// Whether the server has all that is committed in its cluster, or belongs to no cluster.
    func isSynced() throws(SessionFailure) -> Bool {
        guard let state = try value("SHOW STATUS LIKE 'wsrep_local_state'") else { return true }
        return state == Self.synced || state == Self.alone
    }

    private static let synced = "4"
    /// The state of a server that supports clusters but belongs to none.
    private static let alone = "0"

    /// Waits until the server has all transactions that the cluster has committed. A new connection
    /// often replaces one to a lost host, and must not answer before it has what was committed
    /// there. A connection for reading keeps this setting for every read.
    func waitForSync(for purpose: Purpose) throws(SessionFailure) {
        do throws(SessionFailure) {
            // Servers without cluster support do not have this variable.
            try query("SET SESSION wsrep_sync_wait = 1")
            try query("SELECT 1")
            if purpose != .reading { try query("SET SESSION wsrep_sync_wait = 0") }
        } catch {
            switch error {
            case .statement: break
            // The server waited in vain for the transactions of the others, so the host counts as
            // lost.
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
        // `localhost` means TCP, as every other name. Only `?socket=` selects a socket.
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

    /// Returns the password. It is read again for every connection, because the file may have
    /// changed.
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
            // Without autocommit, if an error ends the transaction, the statements sent after it
            // begin another transaction, which is rolled back. With autocommit they would be
            // committed one by one.
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
        // The connection closes first. A statement with an open connection would ask the server to
        // release it, and wait.
        mysql_close(connection)
        prepared = []
    }

    /// Whether the server, or what stands before it, executes arrays of values. Older ones and some
    /// proxies do not.
    private(set) lazy var takesArrays = cmariadb_takes_arrays(connection) != 0

    func statement(_ statement: Statement) throws(SessionFailure) -> MariaDBStatement {
        while prepared.count <= statement.index { prepared.append(nil) }
        if let ready = prepared[statement.index] { return ready }
        let fresh = try MariaDBStatement(statement, on: connection)
        prepared[statement.index] = fresh
        return fresh
    }

    /// Runs a text and waits for its result, which is discarded.
    func query(_ sql: String) throws(SessionFailure) {
        guard cmariadb_query(connection, sql, UInt(sql.utf8.count)) == 0 else { throw failure() }
        guard mysql_field_count(connection) > 0 else { return }
        guard let found = mysql_store_result(connection) else { throw failure() }
        mysql_free_result(found)
    }

    /// Returns the second column of the first row of the result.
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
