import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// Values are read as they were written, with the same type, on every engine.
@Suite(.mayBlock) struct ValueTests {
    private static let insert = Statement(
        """
        INSERT INTO kept (id, name, body, key_id, data, large, at, small)
        VALUES (:id, :name, :body, :key, :data, :large, :at, :small)
        """)
    private static let byID = Statement(
        "SELECT id, name, body, key_id, data, large, at, small FROM kept WHERE id = :id")
    private static let byName = Statement("SELECT id FROM kept WHERE name = :name")
    private static let before = Statement("SELECT id FROM kept WHERE at < :at ORDER BY id")

    /// Stores a row. Values that are not given are NULL.
    private func keep(
        _ store: Store, id: SQLValue, name: SQLValue = .null, body: SQLValue = .null, key: SQLValue = .null,
        data: SQLValue = .null, large: SQLValue = .null, at: SQLValue = .null, small: SQLValue = .null
    ) async throws {
        let row = Self.insert(
            id: id, name: name, body: body, key: key, data: data, large: large, at: at, small: small)
        _ = try await store.run(Script("test.keep", writes: [row]))
    }

    private func kept(_ store: Store, _ id: Int64) async throws -> Row {
        try #require(
            try await store.run(Script("test.kept", reads: [Self.byID(id: .integer(id))]))[0].first)
    }

    @Test(arguments: Engine.allCases)
    func everyTypeRoundTrips(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            let id = [UInt8](repeating: 0, count: 15) + [7]
            let bytes = (0...255).map { UInt8($0) }
            try await keep(
                store, id: .integer(.min), name: .text("naïve 🙈 \u{1F469}\u{200D}\u{1F4BB}"),
                body: .text("it's a \\ and a \" and a %"), key: .blob(id), data: .blob(bytes),
                large: .blob(Array(repeating: 0xFF, count: 100_000)),
                at: .timestamp(Timestamp(milliseconds: 1_763_713_354_007)), small: .integer(-2_147_483_648))
            let row = try await kept(store, .min)
            #expect(try row.integer("id") == .min)
            #expect(try row.text("name") == "naïve 🙈 \u{1F469}\u{200D}\u{1F4BB}")
            #expect(try row.text("body") == "it's a \\ and a \" and a %")
            #expect(try row.blob("key_id") == id)
            #expect(try row.blob("data") == bytes)
            #expect(try row.blob("large") == Array(repeating: 0xFF, count: 100_000))
            #expect(try row.text("at") == "2025-11-21 08:22:34.007")
            #expect(try row.timestamp("at").milliseconds == 1_763_713_354_007)
            #expect(try row.integer("small") == -2_147_483_648)
        }
    }

    @Test(arguments: Engine.allCases)
    func nullAndEmptyAreDistinct(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            try await keep(store, id: .integer(.max))
            try await keep(
                store, id: 2, name: .text(""), body: .text(""), data: .blob([]), large: .blob([]), small: 0)
            let nothing = try await kept(store, .max)
            let others: [SQLName] = ["name", "body", "key_id", "data", "large", "at", "small"]
            for column in others { #expect(try nothing.isNull(column)) }
            #expect(try nothing.optionalTimestamp("at") == nil)
            let empty = try await kept(store, 2)
            #expect(try empty.text("name") == "")
            #expect(try empty.optionalText("body") == "")
            #expect(try empty.blob("data") == [])
            #expect(try empty.optionalBlob("large") == [])
            #expect(try empty.bool("small") == false)
        }
    }

    @Test(arguments: Engine.allCases)
    func namesCompareByteForByte(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            let names = ["bob", "Bob", "bob ", " bob", "bób", "bo\u{0301}b", "ｂｏｂ", "🙈", "🙉", "ß", "ss", ""]
            for (id, name) in names.enumerated() {
                try await keep(store, id: .integer(Int64(id)), name: .text(name))
            }
            for (id, name) in names.enumerated() {
                let rows = try await store.run(Script("test.name", reads: [Self.byName(name: .text(name))]))[0]
                #expect(try rows.map { row throws in try row.integer("id") } == [Int64(id)], "\(name)")
            }
        }
    }

    @Test(arguments: Engine.allCases)
    func timestampsCompareChronologically(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            for id in 0..<5 {
                try await keep(
                    store, id: .integer(Int64(id)),
                    at: .timestamp(Timestamp(milliseconds: 1_763_713_354_998 + Int64(id))))
            }
            let bound = SQLValue.timestamp(Timestamp(milliseconds: 1_763_713_355_001))
            let rows = try await store.run(Script("test.before", reads: [Self.before(at: bound)]))[0]
            #expect(try rows.map { row throws in try row.integer("id") } == [0, 1, 2])
        }
    }

    @Test(arguments: Engine.allCases)
    func wrongColumnTypeThrows(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            try await keep(store, id: 1, name: .text("x"), key: .blob(Array(repeating: 1, count: 16)), small: 7)
            let row = try await kept(store, 1)
            #expect(throws: StoreFailure.internal("column name should hold an integer and holds text")) {
                try row.integer("name")
            }
            #expect(throws: StoreFailure.internal("column key_id should hold text and holds bytes")) {
                try row.text("key_id")
            }
            #expect(throws: StoreFailure.internal("column name should hold bytes and holds text")) {
                try row.blob("name")
            }
            #expect(throws: StoreFailure.internal("column body should hold text and holds NULL")) {
                try row.text("body")
            }
            #expect(throws: StoreFailure.internal("column small should hold 0 or 1 and holds an integer")) {
                try row.bool("small")
            }
            #expect(throws: StoreFailure.self) { try row.timestamp("name") }
            #expect(throws: StoreFailure.internal("a row has no column 8")) { try row.value(at: 8) }
            #expect(throws: StoreFailure.internal("a row has no column -1")) { try row.value(at: -1) }
        }
    }

    @Test(arguments: Engine.allCases)
    func sumsAndLiteralsReadAsIntegers(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            try await keep(store, id: 1, name: .text("x"), small: 40)
            try await keep(store, id: 2, name: .text("y"), small: 2)
            let row = try await store.run(Script("test.literals", reads: [Self.literals(start: .text("a"))]))
                .row(0)
            #expect(try row.integer("sum") == 42)
            #expect(try row.integer("count") == 2)
            #expect(try row.text("text") == "a-b")
            #expect(try row.text("literal") == "x\\n")
            #expect(try row.isNull("missing"))
            #expect(try row.bool("large"))
            #expect(try row.text("own") == "own")
            await #expect(throws: StoreFailure.self) {
                try await store.run(Script("test", reads: [Self.floating()])).row(0).integer("number")
            }
        }
    }

    private static let literals = Statement(
        """
        SELECT SUM(small) AS sum, COUNT(*) AS count, :start || '-b' AS text, 'x\\n' AS literal, NULL AS missing,
        MAX(small) > 39 AS large, /*S! 'own' *//*M! 'own' */ AS own
        FROM kept AS "table"
        """)
    private static let floating = Statement("SELECT 1.5e0 AS number")
}
