import CMariaDB
import Glibc

/// A session with the host that all sessions of the store use. It reconnects when its connection is
/// lost, and moves if another session moved to another host.
final class MariaDBSession: Session {
    private let server: StorageURL.Server
    private let hosts: MariaDBHosts
    private let purpose: Purpose
    private let timeouts: MariaDBConnection.Timeouts
    private var connection: MariaDBConnection?
    private var isClosed = false
    /// The index of its current or last host in `hosts`.
    private var host = 0
    /// The number of consecutive failed attempts to connect, each over all hosts.
    private var failures = 0
    private(set) var changes: Int64 = 0
    private(set) var place: SessionHost?

    /// The maximum number of statements sent ahead of their answers. The server stops reading while
    /// nobody reads its answers. What is in flight must therefore fit into the socket buffers,
    /// where a small packet uses about a kilobyte.
    private static let statementsAhead = 128
    private static let bytesAhead = 32 * 1024

    /// Whether the transaction has a savepoint at its beginning (`mark`).
    private var isMarked = false

    /// The longest pause before a new attempt to connect, in microseconds.
    private static let longestPause: UInt32 = 250_000

    init(
        _ server: StorageURL.Server, hosts: MariaDBHosts, purpose: Purpose, timeouts: MariaDBConnection.Timeouts
    ) throws(SessionFailure) {
        self.server = server
        self.hosts = hosts
        self.purpose = purpose
        self.timeouts = timeouts
        try connect()
    }

    deinit { close() }

    func begin(_ purpose: Purpose) throws(SessionFailure) {
        guard !isClosed else { throw .refused("the database is closed") }
        // Between transactions, closing the connection loses nothing.
        if connection != nil, host != hosts.current { drop() }
        if connection == nil {
            // The pause prevents a loop of attempts while the server is down. It may block, because
            // it runs on the lane's own thread. Waiting scripts wait for it.
            if failures > 0 { usleep(min(Self.longestPause, 25_000 << UInt32(min(failures, 6)))) }
            try connect()
        }
        // No BEGIN is sent: without autocommit, the first statement begins the transaction.
        isMarked = false
    }

    /// Marks the beginning of a transaction at a node of a cluster, for `releaseMark`.
    private func mark(_ connection: MariaDBConnection) throws(SessionFailure) {
        guard purpose == .writing, connection.isInCluster, !isMarked else { return }
        try connection.query("SAVEPOINT batch")
        isMarked = true
    }

    /// Checks that the transaction is still the one that was begun. A node of a cluster may roll one
    /// back for the sake of another node's. If that happens while the node executes an array of
    /// values, it may answer without an error. The next statement then begins another transaction,
    /// and COMMIT would store a part of the first one as if it were all.
    ///
    /// A script has no statement that commits by itself, such as a change of the schema: that would
    /// look the same.
    private func releaseMark(_ connection: MariaDBConnection) throws(SessionFailure) {
        guard isMarked else { return }
        isMarked = false
        do throws(SessionFailure) {
            try connection.query("RELEASE SAVEPOINT batch")
        } catch {
            if case .lost = error { throw error }
            throw .conflict("the server has rolled the transaction back: \(error.message)")
        }
    }

    func run(_ steps: [BoundStatement]) throws(SessionFailure) -> [Rows] {
        guard let connection else { throw .lost("not connected") }
        do throws(SessionFailure) {
            let gathered = GatheredReads(steps, moveAll: purpose == .reading)
            guard purpose == .reading else {
                try mark(connection)
                return try gathered.answers(run(gathered.steps, on: connection)[...])
            }
            return try gathered.answers(
                run([Self.snapshot] + gathered.steps + [Self.end], on: connection).dropFirst().dropLast())
        } catch {
            recordFailure(error)
            throw error
        }
    }

    /// Opens a snapshot, so that all reads of a transaction see the same moment. The rows that one
    /// read checks are therefore the rows that another one returns. The COMMIT at the end lets the
    /// server delete old versions of rows.
    private static let snapshot = Statement("START TRANSACTION READ ONLY")()
    private static let end = Statement("COMMIT")()

    /// An execution of a statement: with the values of one step, or of several that are joined.
    private struct Execution {
        let statement: MariaDBStatement
        let steps: Range<Int>
        /// The size of the packet, roughly.
        let bytes: Int
    }

    /// Divides steps into executions.
    private func executions(
        of steps: [BoundStatement], on connection: MariaDBConnection
    ) throws(SessionFailure) -> [Execution] {
        let takesArrays = connection.takesArrays
        var executions: [Execution] = []
        executions.reserveCapacity(steps.count)
        var start = 0
        while start < steps.count {
            let statement = try connection.statement(steps[start].statement)
            var row = MariaDBArray(statement.slots)
            var end = start
            repeat {
                try statement.check(steps[end].values)
                guard row.append(steps[end].values) else { break }
                end += 1
            } while takesArrays && end < steps.count && steps[end].isJoined
                && steps[end].statement === steps[start].statement
                && steps[start].isJoined && end - start < Self.statementsAhead && row.bytes < Self.bytesAhead
            executions.append(Execution(statement: statement, steps: start..<end, bytes: row.bytes))
            start = end
        }
        return executions
    }

    /// Sends statements ahead of their answers and reads the answers in the same order. After a
    /// failure it sends nothing more, and reads the remaining answers.
    private func run(_ steps: [BoundStatement], on connection: MariaDBConnection) throws(SessionFailure) -> [Rows] {
        let executions = try executions(of: steps, on: connection)
        var results: [Rows] = []
        results.reserveCapacity(steps.count)
        var (sent, received, bytes) = (0, 0, 0)
        var failure: SessionFailure?
        while received < sent || (failure == nil && sent < executions.count) {
            let isRoom = sent - received < Self.statementsAhead && bytes < Self.bytesAhead
            if failure == nil, sent < executions.count, isRoom || sent == received {
                let next = executions[sent]
                try next.statement.send(steps[next.steps])
                bytes += next.bytes
                sent += 1
                continue
            }
            let next = executions[received]
            bytes -= next.bytes
            do throws(SessionFailure) {
                let rows = try next.statement.receive()
                results.append(rows)
                for _ in next.steps.dropFirst() { results.append(.none) }
                // The server counts no changed rows for an INSERT with RETURNING.
                let statement = steps[next.steps.lowerBound].statement
                let returnsRows = statement.written != nil || statement.insertsAudit
                changes += rows.changes + (returnsRows ? Int64(rows.count) : 0)
            } catch {
                if case .lost = error { throw error }
                failure = failure ?? error
            }
            received += 1
        }
        if let failure { throw failure }
        return results
    }

    func commit() throws(SessionFailure) {
        guard purpose == .writing else { return }
        guard let connection else { throw .lost("not connected") }
        do throws(SessionFailure) {
            try releaseMark(connection)
            try connection.query("COMMIT")
        } catch {
            recordFailure(error)
            switch error {
            case .conflict, .locked: throw error
            default:
                // No other error proves that nothing was committed.
                drop()
                throw .lost(error.message)
            }
        }
    }

    func rollBack() {
        guard purpose == .writing, let connection else { return }
        isMarked = false
        do throws(SessionFailure) {
            try connection.query("ROLLBACK")
        } catch {
            drop()
        }
    }

    func execute(_ sql: String) throws(SessionFailure) {
        guard let connection else { throw .lost("not connected") }
        // A change of the schema commits what was before it.
        isMarked = false
        do throws(SessionFailure) {
            try connection.query(sql)
        } catch {
            recordFailure(error)
            throw error
        }
    }

    func close() {
        isClosed = true
        drop()
    }

    private func drop() {
        isMarked = false
        connection?.close()
        connection = nil
    }

    private func recordFailure(_ failure: SessionFailure) {
        guard case .lost = failure, let connection else { return }
        if MariaDBFailure.isOfTheHost(connection.code) { hosts.passOver(host) }
        drop()
    }

    private func connect() throws(SessionFailure) {
        do throws(SessionFailure) {
            try server.socket == nil ? connectToAHost() : connectToTheSocket()
            failures = 0
        } catch {
            failures += 1
            throw error
        }
    }

    private func connectToTheSocket() throws(SessionFailure) {
        try take(try MariaDBConnection(server, host: nil, purpose: purpose, timeouts: timeouts), at: nil)
    }

    /// Tries every host once, the current one first. A cluster node may not have all transactions,
    /// because it is joining or is the donor of a copy. The session uses such a node only if no
    /// other host is available.
    private func connectToAHost() throws(SessionFailure) {
        var failure = SessionFailure.lost("no host is named")
        var second: (connection: MariaDBConnection, index: Int)?
        for index in hosts.order {
            do throws(SessionFailure) {
                let found = try MariaDBConnection(
                    server, host: hosts.hosts[index], purpose: purpose, timeouts: timeouts)
                if try found.isSynced() { return try take(found, at: index) }
                if second == nil { second = (found, index) }
            } catch {
                failure = error
                hosts.passOver(index)
            }
        }
        guard let second else { throw failure }
        do throws(SessionFailure) {
            try take(second.connection, at: second.index)
        } catch {
            hosts.passOver(second.index)
            throw error
        }
    }

    private func take(_ found: MariaDBConnection, at index: Int?) throws(SessionFailure) {
        try found.waitForSync(for: purpose)
        connection = found
        if let index {
            host = index
            hosts.chose(index)
        }
        let name = index.map { hosts.hosts[$0].description } ?? server.socket ?? ""
        place = SessionHost(host: name, number: (place?.number ?? 0) + 1)
    }
}
