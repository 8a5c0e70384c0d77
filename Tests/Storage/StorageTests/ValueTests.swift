import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// What goes in comes out, and comes out as the same kind of value, on every engine.
@Suite(.mayBlock) struct ValueTests {
    private static let insert = Statement(
        "INSERT INTO kept (id, name, body, key_id, data, large, at, small) VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
    private static let byName = Statement("SELECT id FROM kept WHERE name = ?")
    private static let before = Statement("SELECT id FROM kept WHERE at < ? ORDER BY id")

    private func keep(_ store: Store, _ values: SQLValue...) async throws {
        _ = try await store.run(Script("test.keep", writes: [BoundStatement(Self.insert, values: values)]))
    }

    private func kept(_ store: Store, _ id: Int64) async throws -> Row {
        try #require(
            try await store.run(Script("test.kept", reads: [BoundStatement(KeptRow.byID, .integer(id))]))[0].first)
    }

    @Test(arguments: Engine.allCases)
    func everyTypeRoundTrips(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            let id = [UInt8](repeating: 0, count: 15) + [7]
            let bytes = (0...255).map { UInt8($0) }
            try await keep(
                store, .integer(.min), .text("naïve 🙈 \u{1F469}\u{200D}\u{1F4BB}"), .text("it's a \\ and a \" and a %"),
                .blob(id), .blob(bytes), .blob(Array(repeating: 0xFF, count: 100_000)),
                .timestamp(Timestamp(milliseconds: 1_763_713_354_007)), .integer(-2_147_483_648))
            let row = try await kept(store, .min)
            #expect(try row.integer(0) == .min)
            #expect(try row.text(1) == "naïve 🙈 \u{1F469}\u{200D}\u{1F4BB}")
            #expect(try row.text(2) == "it's a \\ and a \" and a %")
            #expect(try row.blob(3) == id)
            #expect(try row.blob(4) == bytes)
            #expect(try row.blob(5) == Array(repeating: 0xFF, count: 100_000))
            #expect(try row.text(6) == "2025-11-21 08:22:34.007")
            #expect(try row.timestamp(6).milliseconds == 1_763_713_354_007)
            #expect(try row.integer(7) == -2_147_483_648)
        }
    }

    @Test(arguments: Engine.allCases)
    func nullAndEmptyAreDistinct(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            try await keep(store, .integer(.max), .null, .null, .null, .null, .null, .null, .null)
            try await keep(store, 2, .text(""), .text(""), .null, .blob([]), .blob([]), .null, 0)
            let nothing = try await kept(store, .max)
            for column in 1..<8 { #expect(try nothing.isNull(column)) }
            #expect(try nothing.optionalMoment(6) == nil)
            let empty = try await kept(store, 2)
            #expect(try empty.text(1) == "")
            #expect(try empty.optionalText(2) == "")
            #expect(try empty.blob(4) == [])
            #expect(try empty.optionalBlob(5) == [])
            #expect(try empty.bool(7) == false)
        }
    }

    @Test(arguments: Engine.allCases)
    func namesCompareByteForByte(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            let names = ["bob", "Bob", "bob ", " bob", "bób", "bo\u{0301}b", "ｂｏｂ", "🙈", "🙉", "ß", "ss", ""]
            for (id, name) in names.enumerated() {
                try await keep(
                    store, .integer(Int64(id)), .text(name), .null, .null, .null, .null, .null, .null)
            }
            for (id, name) in names.enumerated() {
                let rows = try await store.run(Script("test.name", reads: [BoundStatement(Self.byName, .text(name))]))[
                    0]
                #expect(try rows.map { row throws in try row.integer(0) } == [Int64(id)], "\(name)")
            }
        }
    }

    @Test(arguments: Engine.allCases)
    func timestampsCompareChronologically(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            for id in 0..<5 {
                try await keep(
                    store, .integer(Int64(id)), .null, .null, .null, .null, .null,
                    .timestamp(Timestamp(milliseconds: 1_763_713_354_998 + Int64(id))), .null)
            }
            let bound = SQLValue.timestamp(Timestamp(milliseconds: 1_763_713_355_001))
            let rows = try await store.run(Script("test.before", reads: [BoundStatement(Self.before, bound)]))[0]
            #expect(try rows.map { row throws in try row.integer(0) } == [0, 1, 2])
        }
    }

    @Test(arguments: Engine.allCases)
    func wrongColumnTypeThrows(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            try await keep(store, 1, .text("x"), .null, .blob(Array(repeating: 1, count: 16)), .null, .null, .null, 7)
            let row = try await kept(store, 1)
            #expect(throws: StoreFailure.internal("column 1 should hold an integer and holds text")) {
                try row.integer(1)
            }
            #expect(throws: StoreFailure.internal("column 3 should hold text and holds bytes")) { try row.text(3) }
            #expect(throws: StoreFailure.internal("column 1 should hold bytes and holds text")) { try row.blob(1) }
            #expect(throws: StoreFailure.internal("column 2 should hold text and holds NULL")) { try row.text(2) }
            #expect(throws: StoreFailure.internal("column 7 should hold 0 or 1 and holds an integer")) {
                try row.bool(7)
            }
            #expect(throws: StoreFailure.self) { try row.timestamp(1) }
            #expect(throws: StoreFailure.internal("a row has no column 8")) { try row.integer(8) }
            #expect(throws: StoreFailure.internal("a row has no column -1")) { try row.integer(-1) }
        }
    }

    @Test(arguments: Engine.allCases)
    func sumsAndLiteralsReadAsIntegers(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            try await keep(store, 1, .text("x"), .null, .null, .null, .null, .null, 40)
            try await keep(store, 2, .text("y"), .null, .null, .null, .null, .null, 2)
            let row = try await store.run(Script("test.literals", reads: [BoundStatement(Self.literals, .text("a"))]))
                .row(0)
            #expect(try row.integer(0) == 42)
            #expect(try row.integer(1) == 2)
            #expect(try row.text(2) == "a-b")
            #expect(try row.text(3) == "x\\n")
            #expect(try row.isNull(4))
            #expect(try row.bool(5))
            #expect(try row.text(6) == "own")
            await #expect(throws: StoreFailure.self) {
                try await store.run(Script("test", reads: [BoundStatement(Self.floating)])).row(0).integer(0)
            }
        }
    }

    private static let literals = Statement(
        """
        SELECT SUM(small), COUNT(*), ? || '-b', 'x\\n', NULL, MAX(small) > 39, /*S! 'own' *//*M! 'own' */
        FROM kept AS "table"
        """)
    private static let floating = Statement("SELECT 1.5e0")
}
