import CMariaDB
import Glibc

/// A session on the first of several hosts that answers. It connects anew when its connection is lost.
final class MariaDBSession: Session {
    private let server: StorageURL.Server
    private let purpose: Purpose
    private let timeouts: MariaDBConnection.Timeouts
    private var connection: MariaDBConnection?
    private var isClosed = false
    /// Which host to try first.
    private var host = 0
    /// Rounds over all hosts, one after the other, that came to nothing.
    private var failures = 0
    private(set) var changes: Int64 = 0

    /// How much is sent ahead of its answers. The server stops reading while nobody reads its answers, so what is in
    /// flight must fit into the buffers of a socket: small packets take up about a kilobyte each there.
    private static let statementsAhead = 128
    private static let bytesAhead = 32 * 1024

    init(_ server: StorageURL.Server, purpose: Purpose, timeouts: MariaDBConnection.Timeouts) throws(SessionFailure) {
        self.server = server
        self.purpose = purpose
        self.timeouts = timeouts
        try connect()
    }

    deinit { close() }

    func begin(_ purpose: Purpose) throws(SessionFailure) {
        guard !isClosed else { throw .refused("the database is closed") }
        if connection == nil {
            // On the engine's own thread, which has nothing else to do: a server that is gone is not asked in a circle.
            if failures > 0 { usleep(min(1_000_000, 25_000 << UInt32(min(failures, 6)))) }
            try connect()
        }
        // Nothing is sent: without autocommit the first statement begins a transaction.
    }

    func run(_ steps: [Step]) throws(SessionFailure) -> [Rows] {
        guard let connection else { throw .lost("not connected") }
        do throws(SessionFailure) {
            return try run(steps, on: connection)
        } catch {
            noteFailure(error)
            throw error
        }
    }

    /// Sends ahead and reads what comes back, in the same order. After a failure nothing more is sent, and what was sent
    /// is read to its end.
    private func run(_ steps: [Step], on connection: MariaDBConnection) throws(SessionFailure) -> [Rows] {
        var statements: [MariaDBStatement] = []
        statements.reserveCapacity(steps.count)
        for step in steps {
            let statement = try connection.statement(step.statement)
            try statement.check(step.values)
            statements.append(statement)
        }
        var results: [Rows] = []
        results.reserveCapacity(steps.count)
        var sizes: [Int] = []
        sizes.reserveCapacity(steps.count)
        var bytes = 0
        var received = 0
        var failure: SessionFailure?
        while received < sizes.count || (failure == nil && sizes.count < steps.count) {
            let isRoom = sizes.count - received < Self.statementsAhead && bytes < Self.bytesAhead
            if failure == nil, sizes.count < steps.count, isRoom || sizes.count == received {
                let size = try statements[sizes.count].send(steps[sizes.count].values)
                sizes.append(size)
                bytes += size
                continue
            }
            bytes -= sizes[received]
            do throws(SessionFailure) {
                results.append(try statements[received].receive())
                changes += statements[received].changes
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
            try connection.query("COMMIT")
        } catch {
            noteFailure(error)
            switch error {
            case .conflict, .locked: throw error
            default:
                // Whatever it says, it does not say that nothing was committed.
                drop()
                throw .lost(error.message)
            }
        }
    }

    func rollBack() {
        guard purpose == .writing, let connection else { return }
        do throws(SessionFailure) {
            try connection.query("ROLLBACK")
        } catch {
            drop()
        }
    }

    func execute(_ sql: String) throws(SessionFailure) {
        guard let connection else { throw .lost("not connected") }
        do throws(SessionFailure) {
            try connection.query(sql)
        } catch {
            noteFailure(error)
            throw error
        }
    }

    func close() {
        isClosed = true
        drop()
    }

    private func drop() {
        connection?.close()
        connection = nil
    }

    private func noteFailure(_ failure: SessionFailure) {
        guard case .lost = failure, let connection else { return }
        if MariaDBFailure.isOfThisHostOnly(connection.code) { host += 1 }
        drop()
    }

    /// Tries every host once, the last good one first.
    private func connect() throws(SessionFailure) {
        let hosts = server.socket == nil ? server.hosts : []
        var failure = SessionFailure.lost("no host is named")
        for _ in 0..<max(1, hosts.count) {
            do throws(SessionFailure) {
                let chosen = hosts.isEmpty ? nil : hosts[host % hosts.count]
                connection = try MariaDBConnection(server, host: chosen, purpose: purpose, timeouts: timeouts)
                failures = 0
                return
            } catch {
                failure = error
                host += 1
            }
        }
        failures += 1
        throw failure
    }
}
