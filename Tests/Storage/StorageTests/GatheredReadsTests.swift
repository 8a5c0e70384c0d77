import TestSupport
import Testing

@testable import Storage

/// Reads of several requests in one execution.
@Suite(.mayBlock) struct GatheredReadsTests {
    private static let named = Statement(
        "SELECT id, body FROM kept WHERE {body = :name} AND small > :least ORDER BY id")
    private static let numbered = Statement(
        "SELECT (SELECT 1 FROM kept k WHERE k.id = kept.id) AS one FROM kept WHERE {id = :id}")
    private static let owned = Statement("SELECT id FROM kept WHERE small > 0 AND {name = :name AND key_id = :key}")
    private static let joined = Statement(
        "SELECT k.id FROM kept k JOIN counter c ON c.id = k.id WHERE {k.id = :id} AND c.n > :n")
    private static let plain = Statement("SELECT id FROM kept WHERE name = :name")

    @Test func bracesAreNoPartOfTheStatement() {
        #expect(Self.named.sql == "SELECT id, body FROM kept WHERE body = :name AND small > :least ORDER BY id")
        #expect(Self.plain.gathered == nil)
        let quoted = Statement("SELECT id FROM kept WHERE body = '{}' AND name IN ('{', '}')")
        #expect(quoted.gathered == nil && quoted.sql.contains("'{}'"))
    }

    @Test func aFormHasTheConditionOfEachRequest() throws {
        #expect(
            try #require(Self.owned.gathered).form(for: 2).statement.sql == """
                SELECT id, name AS gathered_0, key_id AS gathered_1 FROM kept WHERE small > 0 AND \
                ((name = :name_of0 AND key_id = :key_of0) OR (name = :name_of1 AND key_id = :key_of1))
                """)
        #expect(
            try #require(Self.numbered.gathered).form(for: 3).statement.sql == """
                SELECT (SELECT 1 FROM kept k WHERE k.id = kept.id) AS one, id AS gathered_0 FROM kept WHERE \
                (id IN (:id_of0, :id_of1, :id_of2, :id_of3))
                """)
        #expect(
            try #require(Self.joined.gathered).form(for: 2).statement.sql == """
                SELECT STRAIGHT_JOIN k.id, k.id AS gathered_0 FROM kept k JOIN counter c ON c.id = k.id WHERE \
                (k.id IN (:id_of0, :id_of1)) AND c.n > :n
                """)
    }

    /// Requests with other common values, or with the same key, do not share an execution.
    @Test func requestsOfOneKindAreGathered() {
        let reads = GatheredReads(
            [
                Self.named(name: .text("a"), least: .integer(0)), Self.plain(name: .text("a")),
                Self.named(name: .text("b"), least: .integer(0)), Self.named(name: .text("c"), least: .integer(1)),
                Self.plain(name: .text("b")),
            ], moveAll: true)
        #expect(reads.steps.count == 4)
        #expect(reads.steps.contains { $0.values == [.text("a"), .text("b"), .integer(0)] })
        let same =
            [1, 2].map { Self.owned(name: .text("a"), key: .integer($0)) } + [
                Self.owned(name: .text("a"), key: .integer(1))
            ]
        #expect(Set(GatheredReads(same, moveAll: true).steps.map(\.values.count)) == [2, 4])
        let many = (0..<40).map { Self.numbered(id: .integer($0)) }
        #expect(GatheredReads(many, moveAll: true).steps.map(\.values.count).sorted() == [8, 16, 16])
        #expect(GatheredReads([], moveAll: true).steps.isEmpty)
    }

    /// In a transaction that writes, the reads of short forms change places with each other, and with
    /// nothing else. What is read alone may count the rows that the others lock, so it comes later.
    @Test func onlyWhatMayMoveDoes() {
        let fixed = Self.numbered(id: .integer(9))
        let steps =
            [Self.numbered(id: .integer(1)), Self.plain(name: .null), Self.owned(name: .text("a"), key: .null)]
            + (2...20).map { Self.numbered(id: .integer($0)) }
        let moving = steps.map { step in
            var step = step
            step.mayMove = true
            return step
        }
        #expect(GatheredReads(steps, moveAll: false).steps.map(\.values) == steps.map(\.values))
        let values = GatheredReads([fixed] + moving + [fixed] + moving.prefix(2) + [fixed], moveAll: false).steps.map(
            \.values)
        #expect(values.map(\.count) == [1, 16, 4, 2, 1, 1, 1, 1, 1])
        #expect([0, 5, 8].allSatisfy { values[$0] == fixed.values })
        #expect(values[1].first == .integer(1) && values[2] == (17...20).map { .integer($0) })
        #expect(values[4] == [.null] && values[7] == [.null])
    }

    /// Each request has the answer that it has alone: none, one row or several, in their order.
    @Test func answersAreThoseOfSingleReads() throws {
        let database = try Engine.mariadb.database()
        defer { withExtendedLifetime(database) {} }
        try database.open().close()
        let writing = try database.url.session(.writing)
        defer { writing.close() }
        try writing.begin(.writing)
        _ = try writing.run(
            (1...60).map { Self.insert(id: .integer($0), name: .text("n \($0 % 11)"), small: .integer($0 % 4)) })
        // Names of equal characters, and of other bytes.
        _ = try writing.run([
            Self.insert(id: .integer(61), name: .text("\u{E9}"), small: .integer(1)),
            Self.insert(id: .integer(62), name: .text("e\u{301}"), small: .integer(1)),
            Self.insert(id: .integer(63), name: .text("n 1 "), small: .integer(1)),
            Self.insert(id: .integer(64), name: .text("N 1"), small: .integer(1)),
        ])
        try writing.commit()
        let names = (0...13).map { "n \($0)" } + ["\u{E9}", "e\u{301}", "n 1 ", "N 1", ""]
        let steps =
            names.flatMap { name in [0, 2].map { Self.named(name: .text(name), least: .integer($0)) } }
            + (0...70).map { Self.numbered(id: .integer($0)) } + [Self.plain(name: .text("n 3"))]
        let session = try database.url.session(.reading)
        defer { session.close() }
        try session.begin(.reading)
        let gathered = try session.run(steps)
        var counts: Set<Int> = []
        for (step, rows) in zip(steps, gathered) {
            let alone = try session.run([step])[0]
            let width = alone.columns.count
            #expect(rows.map { Array($0.members.prefix(width).map(\.value)) } == alone.map { $0.members.map(\.value) })
            counts.insert(rows.count)
        }
        #expect(counts.isSuperset(of: [0, 1, 5]))
        #expect(GatheredReads(steps, moveAll: true).steps.count < steps.count / 4)
    }

    private static let insert = Statement("INSERT INTO kept (id, body, small) VALUES (:id, :name, :small)")
}
