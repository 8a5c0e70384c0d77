import Relay
import World

/// The steps of `twoefay migrate` for the tables of a store.
public struct MigrationPlan: Sendable, Equatable {
    /// A part of the plan that is recorded, or can be repeated, as a whole.
    public struct Step: Sendable, Equatable {
        /// The version of the tables afterwards.
        public let version: Int64
        /// The effect of the step, as a part of a sentence.
        public let summary: String
        /// The SQL statements in the dialect of the store.
        let statements: [String]
        let kind: Kind

        enum Kind: Sendable { case creation, change, views }

        public var statementCount: Int { statements.count }
    }

    /// The version of the tables before; nil if there are none.
    public let present: Int64?
    /// The version afterwards.
    public let target: Int64
    public internal(set) var steps: [Step]

    public var isCreation: Bool { steps.contains { $0.kind == .creation } }
    /// Whether relays have to be restarted, because the tables get another version.
    public var changesVersion: Bool { present != nil && steps.contains { $0.kind == .change } }
}

/// The work of a migration at a moment, for its operator.
public enum MigrationEvent: Sendable, Equatable {
    /// Another program migrates the same database.
    case waits
    /// A statement begins. Its number counts from 1.
    case begins(MigrationPlan.Step, statement: Int, sql: String)
    /// The statements of a step have run, and its version is recorded.
    case done(MigrationPlan.Step)
}

extension [Migration] {
    /// Plans what brings the tables of a database up to date. It changes nothing.
    ///
    /// - Throws: `SchemaMismatch` if nothing can, or the failure of the session.
    func plan(_ session: any Session, _ dialect: Dialect) throws -> MigrationPlan {
        let names = try MigrationTable.names(session)
        let found = try MigrationTable.newest(session)
        let isContinued = found.map { $0.version == -known } ?? false
        guard let found, !isContinued else {
            return MigrationPlan(present: nil, target: known, steps: try creationSteps(names, dialect, isContinued))
        }
        if let mismatch = mismatch(found) { throw mismatch }
        guard found.version <= known else {
            return MigrationPlan(present: found.version, target: found.version, steps: [])
        }
        var steps = changes(after: found.version, dialect)
        if let views = missingViews(names, dialect) { steps.append(views) }
        return MigrationPlan(present: found.version, target: known, steps: steps)
    }

    /// The steps for a database without a version. Tables that nobody marked are those of a program
    /// that did not mark them yet.
    func creationSteps(
        _ names: Set<String>, _ dialect: Dialect, _ isContinued: Bool
    ) throws -> [MigrationPlan.Step] {
        guard let creation else { return [] }
        let tables = Migration.tables(in: creation.creationText)
        guard isContinued || !tables.contains(where: names.contains) else {
            throw SchemaMismatch.incomplete(nil, known: known)
        }
        let statements = dialect.statements(of: creation.creationText)
        let first = MigrationPlan.Step(
            version: creation.version,
            summary: isContinued ? "continues to create all tables and views" : "creates all tables and views",
            statements: statements, kind: .creation)
        return [first] + changes(after: creation.version, dialect)
    }

    private func changes(after version: Int64, _ dialect: Dialect) -> [MigrationPlan.Step] {
        filter { $0.version > version }.map {
            MigrationPlan.Step(
                version: $0.version, summary: $0.summary, statements: dialect.statements(of: $0.file), kind: .change)
        }
    }

    /// Creates the views that are missing, such as those of a copy, which has tables only.
    private func missingViews(_ names: Set<String>, _ dialect: Dialect) -> MigrationPlan.Step? {
        guard let last, let whole = last.whole else { return nil }
        let missing = Migration.views(in: whole).filter { !names.contains($0) }
        guard !missing.isEmpty else { return nil }
        let statements = dialect.statements(of: whole).filter { statement in
            missing.contains { statement.hasPrefix("CREATE VIEW IF NOT EXISTS \($0) ") }
        }
        return MigrationPlan.Step(
            version: last.version, summary: "creates the missing views \(missing.joined(separator: ", "))",
            statements: statements, kind: .views)
    }
}
