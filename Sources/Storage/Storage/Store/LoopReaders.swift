import EventLoop
import Glibc
import Relay
import Synchronization
import World

/// Short reads of a SQLite file on the loops of their requests.
///
/// Purpose: a read of a few rows by their keys takes about as long as its way to another thread and
/// back. So each loop has its own connection, on which such reads need no queue, no timer and no
/// wake-up. Everything else runs in the lanes.
///
/// Invariant: a read holds up its loop for a short time only. It waits for no lock of another program.
/// SQLite interrupts it if it takes more than `hundreds` steps; the lane runs it then, and all its
/// statements for a while. SQLite also interrupts it when it has taken `limit`. If a read came from the
/// disk, and took longer than `patience`, the lane runs all reads for a while.
///
/// Failures: whatever goes wrong, the lane runs the script and reports the fault. The lane also runs a
/// script again that found a row which is not genuine.
///
/// `LoopReadersTests.swift` tests it.
final class LoopReaders: Sendable {
    /// The steps that a script may take on a loop, in hundreds. Those of a login take a few.
    static let hundreds: Int32 = 40
    /// The time that a script may take on a loop. It is long, because a thread also takes it while
    /// another one has its processor.
    static let limit = Duration.milliseconds(10)
    /// A read from memory takes less than a tenth of this.
    static let patience = Duration.milliseconds(2)
    /// The time for which the lane runs reads of a file that is not in memory.
    static let pause = Duration.seconds(1)
    /// The time for which the lane runs a statement that was interrupted.
    static let longPause = Duration.seconds(60)

    private let readers: [ObjectIdentifier: LoopReader]
    private let time: any TimeSource
    private let diskReads: @Sendable () -> Int

    /// - Parameters:
    ///   - limit: the time after which a script is interrupted.
    ///   - diskReads: counts what this thread has read from a disk.
    init(
        _ loops: [EventLoop], at path: String, time: any TimeSource, limit: Duration = LoopReaders.limit,
        diskReads: @escaping @Sendable () -> Int = LoopReaders.diskReads
    ) throws(SessionFailure) {
        var readers: [ObjectIdentifier: LoopReader] = [:]
        for loop in loops { readers[ObjectIdentifier(loop)] = try LoopReader(path, limit) }
        self.readers = readers
        self.time = time
        self.diskReads = diskReads
    }

    /// Returns the blocks that this thread has read from disks, and not from the kernel's cache. A
    /// thread that waits for the processor, or for another thread, reads none.
    private static func diskReads() -> Int {
        var usage = rusage()
        // RUSAGE_THREAD is a macro that Swift imports only with GNU's extensions.
        return getrusage(1, &usage) == 0 ? usage.ru_inblock : 0
    }

    /// Runs a script that only reads; returns nil if the lane must run it.
    func read(_ script: Script, on loop: EventLoop, _ authenticator: RowAuthenticator?) -> [Rows]? {
        readers[ObjectIdentifier(loop)]?.read(script, authenticator, time, diskReads)
    }

    /// The number of scripts that were read on loops.
    var count: Int { readers.values.reduce(0) { $0 + $1.count } }

    func close() { for reader in readers.values { reader.close() } }
}

/// The reader of one loop. The lock is free, except while the store closes.
private final class LoopReader: Sendable {
    fileprivate struct State {
        let session: SQLiteSession
        var count = 0
        /// The time before which the loop reads nothing.
        var notBefore: Instant?
        /// The statements that were interrupted, and the time before which they do not run again.
        var long: [Int: Instant] = [:]
    }

    private let state: Mutex<State>
    private let limit: Duration

    init(_ path: String, _ limit: Duration) throws(SessionFailure) {
        self.limit = limit
        let session = try SQLiteSession(path: path, mode: .readingOnly, timeout: .zero)
        session.limitStatements()
        state = Mutex(State(session: session))
    }

    var count: Int { state.withLock { $0.count } }

    func close() { state.withLock { $0.session.close() } }

    func read(
        _ script: Script, _ authenticator: RowAuthenticator?, _ time: any TimeSource, _ diskReads: () -> Int
    ) -> [Rows]? {
        state.withLock { state in
            let (begun, before) = (time.instant(), diskReads())
            guard state.session.isOpen, state.mayRead(script, at: begun) else { return nil }
            state.session.allow(hundreds: LoopReaders.hundreds, within: limit)
            let rows = try? state.session.read(script, authenticator)
            if state.session.hasTakenAllSteps { state.markLong(script, at: begun) }
            let now = time.instant()
            if now - begun > LoopReaders.patience, diskReads() != before {
                state.notBefore = now + LoopReaders.pause
            }
            if rows != nil { state.count += 1 }
            return rows
        }
    }
}

extension LoopReader.State {
    fileprivate mutating func mayRead(_ script: Script, at now: Instant) -> Bool {
        if let notBefore {
            guard now >= notBefore else { return false }
            self.notBefore = nil
        }
        guard !long.isEmpty else { return true }
        return script.reads.allSatisfy { long[$0.statement.index].map { now >= $0 } ?? true }
    }

    /// The scripts of the requests of a login have up to five reads. It is not known which of them was
    /// interrupted, so all of them are left to the lane.
    fileprivate mutating func markLong(_ script: Script, at now: Instant) {
        for read in script.reads { long[read.statement.index] = now + LoopReaders.longPause }
    }
}

extension SQLiteSession {
    /// Runs a script that only reads, in one state of the database. It returns nil if a row is not
    /// genuine.
    fileprivate func read(_ script: Script, _ authenticator: RowAuthenticator?) throws(SessionFailure) -> [Rows]? {
        var check: RowCheck?
        if let authenticator, !script.rows.isEmpty { check = RowCheck([script], .reading, authenticator) }
        let checks = check?.steps ?? []
        let rows = try inOneState(checks + script.reads)
        try check?.check(rows.prefix(checks.count))
        guard check?.forged.isEmpty ?? true else { return nil }
        let found = Array(rows.dropFirst(checks.count))
        guard let authenticator else { return found }
        for (step, rows) in zip(script.reads, found) {
            guard try step.forgedRow(in: rows, authenticator) == nil else { return nil }
        }
        return found
    }

    /// Runs statements in a transaction. One statement is its own transaction.
    private func inOneState(_ steps: [BoundStatement]) throws(SessionFailure) -> [Rows] {
        guard steps.count > 1 else { return try run(steps) }
        do throws(SessionFailure) {
            try begin(.reading)
            let rows = try run(steps)
            try commit()
            return rows
        } catch {
            rollBack()
            throw error
        }
    }
}
