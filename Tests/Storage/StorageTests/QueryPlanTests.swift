import Bytes
import Synchronization
import TestSupport
import Testing

@testable import Relay
@testable import Storage

/// The query plans: no statement scans all rows of a table that grows. Each statement is explained
/// when its verb runs it, with the verb's values, on a database with some rows.
@Suite(.mayBlock) struct QueryPlanTests {
    /// The tables that grow. The others (relay, website, website_key, webhook_endpoint) have a
    /// handful of rows, one for each start of a program (audit_writer), or those that operators gave
    /// out in a day (temporary_code), and may be scanned.
    private static let growing = [
        "user", "activation", "device", "factor", "sent_code", "challenge", "step", "outbox", "audit", "idempotency",
        "notice", "certificate", "recovery", "device_report", "attestation", "audit_detail", "audit_link",
    ]

    /// Parts of statements that may scan a table, each with the reason.
    private static let exceptions = [
        "WHERE substr(answer, 1, :length)": "the same, of the answers of a day",
        "GROUP BY o.kind": "the operator's status; what is to be done is short work or open logins",
        "SELECT w.id, w.name, w.display_name, w.state": "the operator's list of websites counts their users",
        "LEFT JOIN user u ON u.id = coalesce": "the operator's list of what is to be done",
        "AS address_place": "twoefay user find looks for an address at all websites",
        "AS personal_count": "twoefay rekey counts what an old key has sealed",
        "holder = NULL, lease = NULL WHERE holder = :relay": "once for every relay that died",
    ]

    /// Parts of statements that may look users up by their website alone, each with the reason. Only
    /// MariaDB says so in its plans.
    private static let ofWebsites = [
        "AND u.username > :name ORDER BY u.username LIMIT": "a page of users; a later one begins at its name",
        "AND username > :last ORDER BY username LIMIT :most) u": "users are counted in parts",
        "UNION ALL\nSELECT c.serial, coalesce": "the certificates of a disabled website",
        "w.state = 'disabled' LIMIT :limit": "a website is removed in steps",
        "NOT EXISTS (SELECT 1 FROM user u WHERE u.website_id = website.id)": "the first user answers it",
    ]

    /// The indexes that no statement of these plans uses, each with the reason.
    private static let unusedIndexes = [
        "audit_challenge": "an operator asks by SQL what happened in a login (docs/operators/sql.md)",
        "user_expiry": "MariaDB finds the users by it who expire soon; SQLite takes the index of their website",
    ]

    @Test(arguments: [Engine.file, .mariadb]) func noGrowingTableIsScanned(engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let migrated = try database.open()
        try await Sample.fill(migrated, at: database.url)
        try await Sample.fillWebhooks(migrated, at: database.url)
        migrated.close()
        let explained = try Explained(database.url)
        defer { explained.store.close() }
        try await Sample.runEverything(on: explained.store)

        let plans = explained.plans
        let exceptions = Self.exceptions.keys + (engine == .mariadb ? Array(Self.ofWebsites.keys) : [])
        Self.expectNoScan(in: plans.filter { plan in !exceptions.contains(where: plan.sql.contains) })
        // The forms for several requests find their rows as the single statements do.
        Self.expectNoScan(in: explained.formPlans)
        #expect(engine != .mariadb || Set(explained.formPlans.map(\.index)).count > 10)
        // The tables of a checked read are merged into it.
        let unmerged = plans.filter { $0.isChecked && $0.scanned.contains { $0.hasPrefix("<derived") } }
        #expect(unmerged.map(\.sql) == [])
        #expect(plans.count(where: \.isChecked) > 5)
        // A statement that no verb here runs would not have been checked.
        #expect(Set(plans.map(\.index)).count == (try Self.statementsInSources()))
        let unused = try Self.namedIndexes().subtracting(plans.flatMap(\.indexes))
        #expect(
            unused.subtracting(Self.unusedIndexes.keys) == [], "an index that no statement uses makes writes slower")
        // The exceptions do scan, so an unwanted scan would have been found.
        for exception in exceptions {
            #expect(plans.contains { $0.sql.contains(exception) && !$0.scanned.isEmpty }, "\(exception)")
        }
    }

    private static func expectNoScan(in plans: [Plan]) {
        for plan in plans {
            for scanned in plan.scanned {
                let table = growing.first { plan.names($0, scanned) }
                #expect(table == nil, "\(scanned) is scanned by \(plan.sql)")
            }
        }
    }

    /// The names of the indexes that the schema creates for searches.
    private static func namedIndexes() throws -> Set<String> {
        let root = "\(#filePath)".split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        return Set(
            try TextFile.read("\(root)/schema.sql").matches(of: /CREATE INDEX IF NOT EXISTS (\w+) ON/).map {
                String($0.1)
            })
    }

    /// Short forms run only on a store with keys, and only in the usual case.
    @Test(arguments: [Engine.file, .mariadb]) func shortFormsScanNoGrowingTable(engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let keys = try RowAuthenticator(keys: [RowAuthenticator.Key(id: "1", secret: Secret(utf8: "secret"))])
        var options = StoreOptions.patient
        options.rows = keys
        let migrated = try database.open(options: options)
        try await Sample.fill(migrated, at: database.url)
        _ = try await migrated.run(Script("close", writes: [Self.denyAll()]))
        _ = try await migrated.run(Script("adopt", rows: SignedRows.everythingAdopted))
        migrated.close()
        let explained = try Explained(database.url, rows: keys)
        defer { explained.store.close() }
        try await Sample.logIn(7, on: explained.store)

        let plans = explained.plans
        Self.expectNoScan(in: plans)
        Self.expectNoScan(in: explained.formPlans)
        let locking = explained.formPlans.filter { $0.sql.contains("FOR UPDATE") }
        #expect(engine != .mariadb || Set(locking.map(\.index)).count > 2)
        #expect(locking.allSatisfy { $0.indexes == ["PRIMARY"] })
        // Two relays count the logins of a user one after the other: the count follows the lock.
        let counting = explained.orders.filter { $0.contains { $0.contains("AS login_count") } }
        #expect(!counting.isEmpty)
        for order in counting {
            let count = order.firstIndex { $0.contains("AS login_count") } ?? 0
            #expect(order[0].contains("FROM user") && order[..<count].contains { $0.contains("FROM website") })
            #expect(order[count...].allSatisfy { !$0.contains("FOR UPDATE") && !$0.contains("SHARE MODE") })
        }
        let short = plans.filter { $0.sql.contains("AND mac = :seen") }
        #expect(Set(short.map(\.index)).count == 2, "the short forms of ask and close ran")
    }

    private static let denyAll = Statement(
        "UPDATE challenge SET state = 'answered', decision = 'deny', decided_at = asked_at")

    /// Returns the number of the verbs' statements, counted in their sources, except those of short
    /// forms.
    private static func statementsInSources() throws -> Int {
        let root = "\(#filePath)".split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        let folder = "\(root)/Sources/Storage/Storage/SQL"
        let files = TemporaryDirectory.names(in: folder).flatMap { name in
            // Every other name is the folder of a verb.
            name.hasSuffix(".swift")
                ? ["\(folder)/\(name)"]
                : TemporaryDirectory.names(in: "\(folder)/\(name)").map { "\(folder)/\(name)/\($0)" }
        }
        // The words of each audit row; the other statements of its chain need keys.
        let words = "\(root)/Sources/Storage/Storage/Audit/AuditRow.swift"
        // Retention and the heads share these three reads with `audit verify`.
        let shared = ["newestRow", "writer", "checkpoint"].count
        let guarded = files.filter { !$0.contains("/Short") }
        return try (guarded + [words]).reduce(shared) { count, file in
            let text = try TextFile.read(file)
            return count
                + text.split(separator: "\n").filter { line in
                    [" = Statement(", " = Statement.audit("].contains { line.contains($0) }
                }.count
        }
    }
}

/// A statement, and the tables that it scans, by the names that the statement gives them.
private struct Plan: Sendable {
    let index: Int
    let sql: String
    let scanned: [String]
    /// The indexes that it uses.
    let indexes: [String]

    /// Whether it is a checked read (`CheckedTable`).
    var isChecked: Bool { sql.contains("_rights, ") && sql.hasPrefix("SELECT") }

    /// Whether the statement gives the table this name.
    func names(_ table: String, _ name: String) -> Bool {
        guard name != table else { return true }
        let words = sql.split { !$0.isLetter && !$0.isNumber && $0 != "_" }.filter { $0 != "AS" && $0 != "M" }
        return zip(words, words.dropFirst()).contains { $0 == table && $1 == name }
    }
}

/// A store that explains every statement before it runs it.
private final class Explained {
    private final class Seen: Sendable {
        let plans = Mutex<[Plan]>([])
        let formPlans = Mutex<[Plan]>([])
        let orders = Mutex<[[String]]>([])
    }

    let store: Store
    private let seen: Seen

    var plans: [Plan] { seen.plans.withLock { $0 } }
    /// The plans of reads for several requests, which only MariaDB gets.
    var formPlans: [Plan] { seen.formPlans.withLock { $0 } }

    /// The texts of each exchange with the database, in the order in which MariaDB gets them.
    var orders: [[String]] { seen.orders.withLock { $0 } }

    init(_ url: StorageURL, rows: RowAuthenticator? = nil) throws {
        let seen = Seen()
        self.seen = seen
        store = try Store.watched(at: url, rows: rows) { (steps, session) throws(SessionFailure) in
            let order = GatheredReads(steps, moveAll: false).steps.map(\.statement.sql)
            seen.orders.withLock { $0.append(order) }
            var results: [Rows] = []
            for step in steps {
                let plan = try Self.plan(of: step, on: session, url.dialect)
                seen.plans.withLock { $0.append(plan) }
                if url.dialect == .mariadb, let gathered = step.statement.gathered {
                    let requests = (0..<4).map { number in step.values.map { Self.other($0, number) } }
                    let plan = try Self.plan(of: gathered.form(for: 4).bound(requests), on: session, .mariadb)
                    seen.formPlans.withLock { $0.append(plan) }
                }
                results += try session.run([step])
            }
            return results
        }
    }

    private static func plan(
        of step: BoundStatement, on session: any Session, _ dialect: Dialect
    ) throws(SessionFailure) -> Plan {
        let how = dialect == .sqlite ? "EXPLAIN QUERY PLAN" : "EXPLAIN"
        let explained = Statement(
            "\(how) \(step.statement.sql)", written: nil, insertsAudit: step.statement.insertsAudit)
        let rows = try session.run([
            BoundStatement(explained, values: step.values)
        ])[0]
        return Plan(
            index: step.statement.index, sql: step.statement.sql,
            scanned: dialect == .sqlite ? scannedBySQLite(rows) : scannedByMariaDB(rows),
            indexes: dialect == .sqlite ? indexesOfSQLite(rows) : indexesOfMariaDB(rows))
    }

    /// Returns another value for each request, as different requests have.
    private static func other(_ value: SQLValue, _ number: Int) -> SQLValue {
        switch value {
        case .blob(let bytes): .blob(bytes.dropLast() + [UInt8(number)])
        case .text(let text): .text("\(text)\(number == 0 ? "" : "\(number)")")
        case .integer, .null, .personal: value
        }
    }

    /// Returns the words after INDEX.
    private static func indexesOfSQLite(_ rows: Rows) -> [String] {
        rows.flatMap { row in
            let words = ((try? row.text("detail")) ?? "").split(separator: " ").map(String.init)
            return zip(words, words.dropFirst()).filter { $0.0 == "INDEX" }.map(\.1)
        }
    }

    private static func indexesOfMariaDB(_ rows: Rows) -> [String] {
        rows.flatMap { row in ((try? row.optionalText("key")) ?? "").split(separator: ",").map(String.init) }
    }

    private static func scannedBySQLite(_ rows: Rows) -> [String] {
        rows.compactMap { row in
            let words = ((try? row.text("detail")) ?? "").split(separator: " ")
            guard words.count >= 2, words[0] == "SCAN", words[1] != "CONSTANT" else { return nil }
            return String(words[1])
        }
    }

    /// Returns the tables that MariaDB scans. The table of an INSERT is listed too. A look-up by the
    /// website's id alone in a key of users reads all of its users, so it is a scan as well.
    private static func scannedByMariaDB(_ rows: Rows) -> [String] {
        rows.compactMap { row in
            guard let type = try? row.optionalText("type") else { return nil }
            let key = (try? row.optionalText("key")) ?? ""
            let readsWebsite = key.hasPrefix("website_id") && (try? row.optionalText("key_len")) == "16"
            guard ["ALL", "index"].contains(type) || readsWebsite else { return nil }
            guard (try? row.optionalText("select_type")) != "INSERT" else { return nil }
            return try? row.text("table")
        }
    }
}
