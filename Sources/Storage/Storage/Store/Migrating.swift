import Glibc
import Relay
import World

extension [Migration] {
    /// Plans the migration of a store. It changes nothing, and creates no file.
    func plan(_ url: StorageURL) throws -> MigrationPlan {
        if case .sqlite(let path) = url, access(path, F_OK) != 0, errno == ENOENT {
            return MigrationPlan(present: nil, target: known, steps: try creationSteps([], url.dialect, false))
        }
        let session = try url.session(.reading)
        defer { session.close() }
        try session.begin(.reading)
        let plan = try plan(session, url.dialect)
        try session.commit()
        return plan
    }

    /// Migrates a store over a session of its own.
    @discardableResult func migrate(
        _ url: StorageURL, at now: Timestamp, progress: (MigrationEvent) -> Void = { _ in }
    ) throws -> MigrationPlan {
        let session = try url.session(.migrating)
        defer { session.close() }
        return try migrate(session, url.dialect, now: now, progress: progress)
    }
}

extension [Migration] {
    private static let mostTries = 20

    /// Brings the tables up to date. It changes nothing if they are up to date or newer.
    ///
    /// Only a single program migrates a database at a time: SQLite's transaction, `GET_LOCK` on a
    /// MariaDB server, or `MigrationLock` in a Galera cluster keeps others out. `MigrationTests.swift`,
    /// `ResumedMigrationTests.swift`, `MigrationLockTests.swift` and `ClusterTests.swift` test it.
    ///
    /// - Returns: the plan, with the steps that this call has done.
    /// - Throws: `SchemaMismatch` if the tables cannot be brought up to date, or the failure of the
    ///   session. What was done stays, and the next call continues from there.
    @discardableResult func migrate(
        _ session: any Session, _ dialect: Dialect, now: Timestamp, progress: (MigrationEvent) -> Void = { _ in }
    ) throws -> MigrationPlan {
        var run = MigrationRun(session: session, dialect: dialect, now: now)
        var tries = 0
        while true {
            tries += 1
            do {
                return try run.migrate(self, progress)
            } catch let failure as SessionFailure {
                switch failure {
                case .conflict where tries < Self.mostTries, .locked where tries < Self.mostTries: continue
                default: throw failure
                }
            }
        }
    }
}

/// A call of `migrate`, with its repetitions after conflicts.
private struct MigrationRun {
    let session: any Session
    let dialect: Dialect
    let now: Timestamp
    /// The plan of the first try.
    private var first: MigrationPlan?
    private var done: [MigrationPlan.Step] = []

    init(session: any Session, dialect: Dialect, now: Timestamp) {
        self.session = session
        self.dialect = dialect
        self.now = now
    }

    mutating func migrate(
        _ migrations: [Migration], _ progress: (MigrationEvent) -> Void
    ) throws -> MigrationPlan {
        try session.begin(.writing)
        var clusterLock: MigrationLock?
        // Releases the locks last: the next program that gets them must find the new version. If
        // the release fails, the end of the connection releases the lock of MariaDB.
        defer {
            clusterLock?.release()
            if dialect == .mariadb { _ = try? session.run([Self.unlock()]) }
        }
        do {
            try lock(progress)
            var plan = try migrations.plan(session, dialect)
            if first == nil { first = plan }
            if !plan.steps.isEmpty, dialect == .mariadb, try MigrationLock.isNeeded(session) {
                clusterLock = try MigrationLock(session) { progress(.waits) }
                // Another node may have migrated meanwhile.
                plan = try migrations.plan(session, dialect)
            }
            for step in plan.steps { try run(step, of: migrations, clusterLock, progress) }
            try session.commit()
            return MigrationPlan(present: (first ?? plan).present, target: plan.target, steps: done)
        } catch {
            session.rollBack()
            throw error
        }
    }

    /// If two programs migrate at the same time, the second one waits and then finds nothing to do.
    /// In SQLite the transaction has this effect; between the nodes of a cluster `MigrationLock` has
    /// it.
    private func lock(_ progress: (MigrationEvent) -> Void) throws {
        guard dialect == .mariadb, try isLocked(seconds: 0) == false else { return }
        progress(.waits)
        guard try isLocked(seconds: 600) else {
            throw SchemaMismatch.busy
        }
    }

    private func isLocked(seconds: Int64) throws(SessionFailure) -> Bool {
        let row = try session.run([Self.lock(seconds: .integer(seconds))]).first?.first
        return row.flatMap { try? $0.integer("is_locked") } == 1
    }

    private static let lock = Statement("SELECT GET_LOCK(CONCAT(DATABASE(), '.migration'), :seconds) AS is_locked")

    private static let unlock = Statement("SELECT RELEASE_LOCK(CONCAT(DATABASE(), '.migration'))")

    private mutating func run(
        _ step: MigrationPlan.Step, of migrations: [Migration], _ clusterLock: MigrationLock?,
        _ progress: (MigrationEvent) -> Void
    ) throws(SessionFailure) {
        if step.kind == .creation {
            try clusterLock?.renew()
            try session.execute(dialect.resolve(MigrationTable.creation))
            _ = try session.run([MigrationTable.record(version: -migrations.known, least: migrations.known, at: now)])
        }
        for (index, statement) in step.statements.enumerated() {
            progress(.begins(step, statement: index + 1, sql: statement))
            do throws(SessionFailure) {
                try clusterLock?.renew()
                try session.execute(statement)
            } catch {
                throw error.named { "schema \(step.version): \($0) in: \(statement.prefix(200))" }
            }
        }
        let least = migrations.first { $0.version == step.version }?.least ?? step.version
        _ = try session.run([MigrationTable.record(version: step.version, least: least, at: now)])
        if step.version == migrations.known { _ = try session.run([MigrationTable.unmark()]) }
        done.append(step)
        progress(.done(step))
    }
}

extension SessionFailure {
    fileprivate func named(_ name: (String) -> String) -> SessionFailure {
        switch self {
        case .statement(let text): .statement(name(text))
        case .conflict(let text): .conflict(name(text))
        case .locked(let text): .locked(name(text))
        case .lost(let text): .lost(name(text))
        case .refused(let text): .refused(name(text))
        }
    }
}
