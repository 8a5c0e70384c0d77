import TestSupport
import Testing

@testable import Storage

/// Statements that a session may execute together. MariaDB gets them as one array of values.
@Suite(.mayBlock) struct JoinedStatementTests {
    private static let insert = Statement(
        """
        INSERT INTO kept (id, name, body, key_id, data, large, at, small)
        VALUES (:id, :name, :body, :key, :data, :large, :at, :small)
        """)
    private static let insertReturning = Statement("INSERT INTO kept (id, name) VALUES (:id, :name) RETURNING id, name")
    private static let rename = Statement("UPDATE kept SET name = :name WHERE id = :id")
    private static let delete = Statement("DELETE FROM kept WHERE id = :id")
    private static let readAll = Statement(
        "SELECT id, name, body, key_id, data, large, at, small FROM kept ORDER BY id")

    private static func joined(_ steps: [BoundStatement]) -> [BoundStatement] {
        steps.map { step in
            var step = step
            step.isJoined = true
            return step
        }
    }

    private func withSession(_ engine: Engine, _ body: (any Session) throws -> Void) throws {
        let database = try engine.database()
        defer { withExtendedLifetime(database) {} }
        try database.open().close()
        let session = try database.url.session(.writing)
        defer { session.close() }
        try body(session)
    }

    /// All types, NULL and empty values in any place, more rows than an execution takes, and more bytes than
    /// are sent ahead.
    private static let rows: [BoundStatement] = (1...300).map { number in
        let has = { (place: Int) in number % place != 0 }
        return insert(
            id: .integer(Int64(number)), name: has(3) ? .text("näme \(number)") : .null,
            body: has(4) ? .text(number == 7 ? "" : String(repeating: "ö", count: number * 7 % 900)) : .null,
            key: .blob([UInt8](repeating: UInt8(number % 256), count: 16)),
            data: has(5) ? .blob(number == 8 ? [] : [0, 1, 0, UInt8(number % 256)]) : .null,
            large: number == 9 ? .blob([UInt8](repeating: 7, count: 100_000)) : .null,
            at: has(7) ? .text("2026-11-27 12:00:00.\(100 + number % 900)") : .null,
            small: has(2) ? .integer(Int64(-number)) : .null)
    }

    @Test(arguments: [Engine.file, .mariadb]) func theyWriteTheSameRows(engine: Engine) throws {
        var stored: [[SQLValue]] = []
        for isJoined in [false, true] {
            try withSession(engine) { session in
                try session.begin(.writing)
                let results = try session.run(isJoined ? Self.joined(Self.rows) : Self.rows)
                #expect(results.count == Self.rows.count)
                #expect(results.reduce(0) { $0 + $1.changes } == Int64(Self.rows.count))
                try session.commit()
                stored.append(try session.run([Self.readAll()])[0].values)
            }
        }
        #expect(stored[0].count == 300 * 8)
        #expect(stored[0] == stored[1])
    }

    @Test(arguments: [Engine.file, .mariadb]) func theirFirstResultIsThatOfAll(engine: Engine) throws {
        try withSession(engine) { session in
            try session.begin(.writing)
            let inserts = (1...20).map { Self.insertReturning(id: .integer($0), name: .text("\($0)")) }
            let inserted = try session.run(Self.joined(inserts))
            #expect(inserted.count == 20)
            #expect(try inserted.flatMap { try $0.map { try $0.text("name") } } == (1...20).map { "\($0)" })
            // Rows 21 to 30 do not exist.
            let renames = (11...30).map { Self.rename(name: .text("new \($0)"), id: .integer($0)) }
            #expect(try session.run(Self.joined(renames)).reduce(0) { $0 + $1.changes } == 10)
            // Another statement between them, and a step that is not joined.
            let mixed =
                Self.joined([Self.delete(id: .integer(1)), Self.delete(id: .integer(2))]) + [Self.readAll()]
                + Self.joined([Self.delete(id: .integer(3))]) + [Self.delete(id: .integer(4))]
            let results = try session.run(mixed)
            #expect(results.count == 5)
            #expect(results[2].count == 18)
            #expect(results.reduce(0) { $0 + $1.changes } == 4)
            try session.commit()
        }
    }

    /// MariaDB stops at the row that fails. The connection can be used again.
    @Test(arguments: [Engine.file, .mariadb]) func failureOfOneFailsAll(engine: Engine) throws {
        try withSession(engine) { session in
            try session.begin(.writing)
            let inserts = [1, 2, 1, 3].map { Self.insertReturning(id: .integer($0), name: .null) }
            #expect(throws: SessionFailure.self) { try session.run(Self.joined(inserts) + [Self.readAll()]) }
            session.rollBack()
            try session.begin(.writing)
            #expect(try session.run([Self.readAll()])[0].isEmpty)
            _ = try session.run(Self.joined(Array(Self.rows.prefix(5))))
            #expect(try session.run([Self.readAll()])[0].count == 5)
            session.rollBack()
        }
    }

    /// A text beside bytes, or a number beside a text, needs another execution.
    @Test(arguments: [Engine.file, .mariadb]) func valuesOfDifferentKindsAreNotMixed(engine: Engine) throws {
        try withSession(engine) { session in
            try session.begin(.writing)
            let bodies: [SQLValue] = [.text("a"), .null, .integer(5), .null, .text("b"), .blob([0x63])]
            let inserts = bodies.enumerated().map { index, body in
                Self.insert(
                    id: .integer(Int64(index)), name: .null, body: body, key: .null, data: .null, large: .null,
                    at: .null, small: .null)
            }
            #expect(try session.run(Self.joined(inserts)).reduce(0) { $0 + $1.changes } == 6)
            let texts = try session.run([Self.readBodies()])[0].map { try $0.optionalText("body") }
            #expect(texts == ["a", nil, "5", nil, "b", "c"])
            session.rollBack()
        }
    }

    private static let readBodies = Statement("SELECT CAST(body AS char) AS body FROM kept ORDER BY id")
}
