import Glibc
import Log
import TestSupport
import Testing
import World

@testable import Storage

/// The views for people, and the questions of docs/operators/sql.md.
@Suite(.mayBlock) struct ViewTests {
    /// The names that the views give to the tables that grow with every login.
    private static let growing = ["c": "challenge", "a": "audit", "s": "step", "audit": "audit", "step": "step"]

    /// The questions of the page, each a statement.
    private static func questions() throws -> [String] {
        let page = try TextFile.read("\(root)/docs/operators/sql.md")
        return page.parts(between: "```sql\n", and: ";\n```")
    }

    private static var root: String {
        "\(#filePath)".split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
    }

    @Test(arguments: [Engine.file, .mariadb]) func everyQuestionOfThePageReadsAnIndex(engine: Engine) throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try Self.fill(store, engine)

        let questions = try Self.questions()
        #expect(questions.count >= 20)
        for question in questions {
            // The store knows no fractions, so the columns of an answer are not read.
            _ = try store.runBlocking(Script("question", reads: [Statement("SELECT count(*) FROM (\(question)) q")()]))
            for scanned in try Self.scanned(by: question, in: store, engine) {
                #expect(Self.growing[scanned] == nil, "\(scanned) is scanned by \(question)")
            }
        }
        // A question without a restriction does scan, so a scan would have been found.
        #expect(try Self.scanned(by: "SELECT count(*) FROM audit WHERE outcome = 'x'", in: store, engine) == ["audit"])
    }

    @Test(arguments: [Engine.file, .mariadb]) func viewsOfHoursCountEachLoginOnce(engine: Engine) throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try Self.fill(store, engine)

        // The logins are two seconds apart from midnight on: 1,800 of 2,000 in the first hour.
        let hours = try store.runBlocking(
            Script(
                "hours",
                reads: [Statement("SELECT hour, logins, approved, open FROM LoginsByHour ORDER BY hour")()]))[0]
        #expect(try hours.map { try $0.text("hour") } == ["2026-01-01 00", "2026-01-01 01"])
        #expect(try hours.map { try $0.integer("logins") } == [1800, 200])
        #expect(try hours.map { try $0.integer("approved") } == [1800, 190])
        #expect(try hours.map { try $0.integer("open") } == [0, 10])

        // Each answered login took a second and a half.
        let integer = "/*M! SIGNED */ /*S! INTEGER */"
        let times = try store.runBlocking(
            Script(
                "times",
                reads: [
                    Statement(
                        """
                        SELECT answers, CAST(average_seconds * 1000 AS \(integer)) AS average,
                        CAST(longest_seconds * 1000 AS \(integer)) AS longest FROM AnswerTimes ORDER BY hour
                        """)()
                ]))[0]
        #expect(try times.map { try $0.integer("answers") } == [1800, 190])
        #expect(try times.allSatisfy { try $0.integer("average") == 1500 && $0.integer("longest") == 1500 })
    }

    @Test func rolesReadViewsAndNoSecret() async throws {
        let server = try MariaDBServer.shared()
        let name = try server.freshDatabase()
        try TestDatabase(url: StorageURL(server.url(name)), migrations: Migration.all).open().close()
        // Tests that run beside this one use the same server, so the roles get names of their own.
        let roles = try TextFile.read("\(Self.root)/deploy/sql/roles.sql").replacing("twoefay_", with: "\(name)_")
        try server.sql("USE \(name); \(roles)")
        for role in ["\(name)_helpdesk", "\(name)_auditor"] {
            let account = "\(role)_account@127.0.0.1"
            try server.sql("CREATE USER \(account); GRANT \(role) TO \(account)")
            try server.sql("SET DEFAULT ROLE \(role) FOR \(account)")
            func refusal(_ sql: String) async throws -> String? {
                let ended = try await Child.run(
                    "mariadb",
                    [
                        "--no-defaults", "--host=127.0.0.1", "--port=\(server.port)", "--user=\(role)_account",
                        "--execute=\(sql)", name,
                    ])
                return ended.status == 0 ? nil : ended.errors
            }
            for view in ["LockedUsers", "Logins", "Phones", "AuditTrail"] {
                #expect(try await refusal("SELECT * FROM \(view)") == nil, "\(role): \(view)")
            }
            for secret in [
                "SELECT * FROM Users", "SELECT push_token FROM device", "SELECT token FROM user",
                "SELECT email FROM user", "SELECT secret FROM factor", "SELECT context FROM challenge",
                "SELECT mac FROM website", "SELECT address FROM outbox", "UPDATE user SET state = 'active'",
                "DELETE FROM audit",
            ] {
                let refusal = try #require(try await refusal(secret), "\(role): \(secret)")
                #expect(refusal.contains("denied"), "\(role): \(secret)")
            }
            try await Self.expectReadingAlone(role, server, name)
            guard role.hasSuffix("auditor") else { continue }
            for question in try Self.questions() { #expect(try await refusal(question) == nil, "\(question)") }
        }
    }
}

extension ViewTests {
    /// Expects that an account of the role can write to no table or view, and can give nobody a right.
    private static func expectReadingAlone(_ role: String, _ server: MariaDBServer, _ database: String) async throws {
        let directory = try TemporaryDirectory()
        func run(_ account: String, _ sql: String) async throws -> Child.Ended {
            let place = ["--no-defaults", "--host=127.0.0.1", "--port=\(server.port)", "--user=\(account)"]
            try TextFile.write(sql + ";\n", to: directory("sql"))
            let input = open(directory("sql"), O_RDONLY | O_CLOEXEC)
            defer { close(input) }
            // The client goes on after an error, if it reads from a file.
            let options = ["--batch", "--skip-column-names", "--force", database]
            return try await Child("mariadb", place + options, input: input).ended()
        }
        let listed = try await run(
            "root",
            """
            SELECT table_name, min(column_name) FROM information_schema.columns WHERE table_schema = '\(database)'
            GROUP BY table_name
            """)
        let columns = listed.output.split(separator: "\n").map { $0.split(separator: "\t").map(String.init) }
        let tables = Set(columns.compactMap(\.first))
        #expect(tables.isSuperset(of: StoreTables.names + ["LockedUsers", "AuditTrail", "WebsiteUsage"]))
        let own = "\(role)_account@127.0.0.1"
        let statements =
            columns.flatMap { row in
                let (table, column) = (row[0], row[1])
                return [
                    "UPDATE `\(table)` SET `\(column)` = NULL", "DELETE FROM `\(table)`", "TRUNCATE `\(table)`",
                    "INSERT INTO `\(table)` (`\(column)`) VALUES (NULL)", "GRANT SELECT ON `\(table)` TO \(own)",
                ]
            } + [
                "GRANT ALL ON `\(database)`.* TO \(own)", "GRANT \(database)_auditor TO \(own)",
                "CREATE USER x@localhost", "CREATE ROLE x", "SET PASSWORD FOR root@localhost = PASSWORD('x')",
                "DROP VIEW LockedUsers",
                "CREATE TABLE x (y int)", "CREATE VIEW x AS SELECT 1", "ALTER TABLE user ADD x int", "FLUSH TABLES",
                "DROP DATABASE `\(database)`",
            ]
        let ended = try await run("\(role)_account", statements.joined(separator: ";\n"))
        let lines = ended.errors.split(separator: "\n").filter { $0.hasPrefix("ERROR ") }
        #expect(lines.count == statements.count, "\(ended.errors)")
        for line in lines { #expect(line.contains("denied"), "\(line)") }
    }

    /// Fills the tables with 2,000 logins of 50 users. The last ten logins are open.
    private static func fill(_ store: Store, _ engine: Engine) throws {
        func id(_ prefix: String, _ number: String) -> String {
            """
            /*M! unhex(rpad(concat('\(prefix)', lpad(hex(\(number)), 8, '0')), 32, '0')) */
            /*S! CAST(substr('\(prefix)' || printf('%08X', \(number)) || '0000000000000000', 1, 16) AS BLOB) */
            """
        }
        func asked(_ number: String, _ fraction: String) -> String {
            let seconds = "\(number) * 2 + \(fraction == "500" ? 1 : 0)"
            return """
                /*M! timestampadd(SECOND, \(seconds), '2026-01-01 00:00:00.\(fraction)') */
                /*S! strftime('%Y-%m-%d %H:%M:%S', '2026-01-01 00:00:00', '+' || (\(seconds)) || ' seconds') || '.\(fraction)' */
                """
        }
        // MariaDB ends a recursion after a thousand rows, so the numbers are pairs.
        func numbers(_ fifties: Int) -> String {
            """
            WITH RECURSIVE m(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM m WHERE i < 49),
            n(i) AS (SELECT a.i * 50 + b.i FROM m a JOIN m b ON a.i < \(fifties))
            """
        }
        let isOpen = "i >= 1990"
        let writes = [
            """
            INSERT INTO website (id, name, display_name, state, policy, created_at, operation)
            VALUES (\(id("aa", "1")), 'shop', 'Shop', 'active', '{}', '2026-01-01 00:00:00.000', \(id("aa", "1")))
            """,
            """
            INSERT INTO user (id, website_id, username, token, state, created_at, operation)
            \(numbers(1)) SELECT \(id("bb", "i")), \(id("aa", "1")), /*M! concat('user', i) */ /*S! 'user' || i */,
            \(id("bc", "i")), 'active', '2026-01-01 00:00:00.000', \(id("bb", "i")) FROM n
            """,
            """
            INSERT INTO challenge (id, website_id, user_id, state, decision, policy, context, nonce, factor, asked_at,
            expires_at, decided_at, operation)
            \(numbers(40)) SELECT \(id("cc", "i")), \(id("aa", "1")), \(id("bb", "i % 50")),
            CASE WHEN \(isOpen) THEN 'sent' ELSE 'answered' END, CASE WHEN \(isOpen) THEN NULL ELSE 'approve' END,
            '{}', x'00', \(id("cc", "i")), 'push', \(asked("i", "000")), \(asked("i", "000")),
            CASE WHEN \(isOpen) THEN NULL ELSE \(asked("i", "500")) END, \(id("cc", "i")) FROM n
            """,
            """
            INSERT INTO step (challenge_id, ordinal, factor, state, at)
            \(numbers(40)) SELECT \(id("cc", "i")), 0, 'push',
            CASE i % 100 WHEN 0 THEN 'refused' ELSE 'answered' END, \(asked("i", "000")) FROM n
            """,
            """
            INSERT INTO audit (operation, at, event, website_id, user_id, challenge_id, outcome)
            \(numbers(40)) SELECT \(id("dd", "i")), \(asked("i", "000")), 'challenge.asked', \(id("aa", "1")),
            \(id("bb", "i % 50")), \(id("cc", "i")), 'asked' FROM n
            """,
        ]
        _ = try store.runBlocking(Script("fill", writes: writes.map { Statement($0)() }))
        let analysis = engine == .mariadb ? "ANALYZE TABLE website, user, challenge, step, audit" : "ANALYZE"
        _ = try store.runBlocking(Script("analyse", writes: [Statement(analysis)()]))
    }

    /// Returns the names of the tables that the engine reads whole, without those of which it only
    /// reads an index that holds all that is asked for.
    private static func scanned(by sql: String, in store: Store, _ engine: Engine) throws -> [String] {
        let isMariaDB = engine == .mariadb
        let explanation = Statement("\(isMariaDB ? "EXPLAIN" : "EXPLAIN QUERY PLAN") \(sql)")
        return try store.runBlocking(Script("explain", reads: [explanation()]))[0].compactMap { row in
            guard isMariaDB else {
                let detail = try row.text("detail")
                let words = detail.split(separator: " ")
                guard words.count >= 2, words[0] == "SCAN", !detail.contains("USING") else { return nil }
                return String(words[1])
            }
            let extra = try row.optionalText("Extra") ?? ""
            switch try row.optionalText("type") {
            case "ALL": return try row.text("table")
            case "index" where !extra.contains("Using index"): return try row.text("table")
            default: return nil
            }
        }
    }
}

extension String {
    /// The parts between each pair of these marks.
    fileprivate func parts(between start: String, and end: String) -> [String] {
        split(separator: start).dropFirst().compactMap { $0.split(separator: end).first.map(String.init) }
    }
}
