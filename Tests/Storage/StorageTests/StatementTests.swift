import Relay
import TestSupport
import Testing

@testable import Storage

/// The parsing of a declared statement, and the binding of values to its parameters.
struct StatementTests {
    private struct Sample {
        let sql: String
        let names: [String]
        let mariadb: String
        let sqlite: String
        var mariadbSlots: [Int]
        var sqliteSlots: [Int]

        init(
            _ sql: String, _ names: [String], _ mariadb: String, _ mariadbSlots: [Int], _ sqlite: String,
            _ sqliteSlots: [Int]
        ) {
            (self.sql, self.names) = (sql, names)
            (self.mariadb, self.mariadbSlots) = (mariadb, mariadbSlots)
            (self.sqlite, self.sqliteSlots) = (sqlite, sqliteSlots)
        }
    }

    private static let samples = [
        Sample("SELECT 1", [], "SELECT 1", [], "SELECT 1", []),
        Sample("a = :a AND b=:b", ["a", "b"], "a = ? AND b=?", [0, 1], "a = ?1 AND b=?2", [0, 1]),
        // A repeated name has the same value.
        Sample("(:b, :a, :b)", ["b", "a"], "(?, ?, ?)", [0, 1, 0], "(?1, ?2, ?1)", [0, 1]),
        // A name may be the beginning of another name.
        Sample(
            ":user :userName :use :user", ["user", "userName", "use"], "? ? ? ?", [0, 1, 2, 0], "?1 ?2 ?3 ?1",
            [0, 1, 2]),
        Sample(":a1_B:c,", ["a1_B", "c"], "??,", [0, 1], "?1?2,", [0, 1]),
        // Quoted text and comments have no parameters.
        Sample("':x' \":y\" `:z` :w", ["w"], "':x' \":y\" `:z` ?", [0], "':x' \":y\" `:z` ?1", [0]),
        Sample("'it''s :x' :y", ["y"], "'it''s :x' ?", [0], "'it''s :x' ?1", [0]),
        Sample("a -- :x\n:y", ["y"], "a -- :x\n?", [0], "a -- :x\n?1", [0]),
        Sample("a /* :x */ :y", ["y"], "a /* :x */ ?", [0], "a /* :x */ ?1", [0]),
        // A colon without a name.
        Sample("a::text :1 : b", [], "a::text :1 : b", [], "a::text :1 : b", []),
        // Parts for one engine.
        Sample(
            "/*M! :m */ :both /*S! :s :both */", ["m", "both", "s"], "  ?   ?  ", [0, 1], "  ?1   ?2 ?1  ", [1, 2]),
        Sample("/*M! 'it''s :x */' :m */ :a", ["m", "a"], "  'it''s :x */' ?   ?", [0, 1], "  ?1", [1]),
        // A question mark in quoted text is no parameter.
        Sample("a = :a AND b = '?'", ["a"], "a = ? AND b = '?'", [0], "a = ?1 AND b = '?'", [0]),
    ]

    @Test(arguments: samples.indices) func textIsParsedForBothEngines(_ index: Int) {
        let sample = Self.samples[index]
        let text = Statement(sample.sql).text
        #expect((0..<text.names.count).map { text.names[$0] } == sample.names)
        #expect(Self.words(text.mariadb.sql) == Self.words(sample.mariadb))
        #expect(text.mariadb.slots == sample.mariadbSlots)
        #expect(Self.words(text.sqlite.sql) == Self.words(sample.sqlite))
        #expect(text.sqlite.slots == sample.sqliteSlots)
    }

    @Test(arguments: ["a = ?", "a = :a AND b = ?", "a = ? /*M! AND b = :b */", "/*S! ? */", "/*M! ? */"])
    func unnamedParameterIsRefused(_ sql: String) { #expect(throws: UnnamedParameter.self) { try StatementText(sql) } }

    /// Splits a text into words. The number of blanks does not matter.
    private static func words(_ text: String) -> [Substring] { text.split(separator: " ") }

    private static let three = Statement("UPDATE t SET a = :first, b = :second WHERE c = :first AND d = :third")

    @Test func valuesAreBoundByName() {
        let inOrder = Self.three(first: 1, second: 2, third: 3)
        let inOtherOrder = Self.three(third: 3, first: 1, second: 2)
        #expect(inOrder.values == [1, 2, 3])
        #expect(inOtherOrder.values == [1, 2, 3])
        #expect(Statement("SELECT 1")().values == [])
    }

    @Test func wrongNameIsNamed() {
        #expect(throws: BindingFailure("there is no parameter :fourth")) {
            try Self.three.ordered(["first": 1, "second": 2, "fourth": 4])
        }
        #expect(throws: BindingFailure("there is no parameter :fir")) {
            try Self.three.ordered(["fir": 1, "second": 2, "third": 3])
        }
        #expect(throws: BindingFailure("there is no parameter :fourth")) {
            try Self.three.ordered(["first": 1, "second": 2, "third": 3, "fourth": 4])
        }
        #expect(throws: BindingFailure("the parameter :third has no value")) {
            try Self.three.ordered(["first": 1, "second": 2])
        }
        #expect(throws: BindingFailure("the parameter :first is given twice")) {
            try Self.three.ordered(["first": 1, "first": 2, "third": 3])
        }
        #expect(throws: BindingFailure("there is no parameter :user")) {
            try Statement("SELECT 1").ordered(["user": 1])
        }
    }

    private static let listed = Statement("DELETE FROM t WHERE a = :a AND id IN (:id1, :id2, :id3) AND id <> :id")

    @Test func listFillsNumberedParameters() throws {
        #expect(try Self.listed.sorted(["a": 1, "id": 9], ["id": [4, 5]]) == [1, 4, 5, .null, 9])
        #expect(try Self.listed.sorted(["id": 9, "a": 1], ["id": []]) == [1, .null, .null, .null, 9])
        #expect(Self.listed.bound(["a": 1, "id": 9], lists: ["id": [4, 5, 6]]).values == [1, 4, 5, 6, 9])
        #expect(throws: BindingFailure("the list id has 4 values for 3 parameters")) {
            try Self.listed.sorted(["a": 1, "id": 9], ["id": [4, 5, 6, 7]])
        }
        #expect(throws: BindingFailure("the list key has 1 values for 0 parameters")) {
            try Self.listed.sorted(["a": 1, "id": 9], ["id": [4], "key": [1]])
        }
        #expect(throws: BindingFailure("the parameter :id1 has no value")) {
            try Self.listed.sorted(["a": 1, "id": 9])
        }
    }
}

/// Named statements as the engines run them.
@Suite(.mayBlock) struct NamedStatementTests {
    private static let insert = Statement("INSERT INTO kept (id, name, body) VALUES (:id, :name, :name)")
    private static let find = Statement(
        """
        SELECT k.id, k.name AS label, (SELECT count(*) FROM kept) AS amount, k.name = :name AS "isNamed"
        FROM kept k WHERE :name = k.name AND k.body = :name AND k.id > :least /*M! AND :most >= k.id */
        /*S! AND k.id <= :most AND ':name' <> k.name */
        """)
    private static let ofOneEngine = Statement(
        "SELECT /*M! :mariadb */ /*S! :sqlite */ AS engine, :last AS last, /*S! :sqlite */ /*M! :mariadb */ AS again")
    private static let twice = Statement("SELECT a.id, b.id, a.name FROM kept a JOIN kept b ON b.id = a.id")

    @Test(arguments: Engine.allCases)
    func valuesAreSentToTheirParameters(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            let writes = [Self.insert(id: 1, name: .text("one")), Self.insert(name: .text("two"), id: 2)]
            let reads = [
                Self.find(least: 0, name: .text("two"), most: 2), Self.find(name: .text("two"), least: 2, most: 3),
                Self.ofOneEngine(last: .text("end"), mariadb: .text("M"), sqlite: .text("S")),
            ]
            let rows = try await store.run(Script("test.named", writes: writes, reads: reads))
            let row = try rows.row(0)
            #expect(try row.integer("id") == 2)
            #expect(try row.text("label") == "two")
            #expect(try row.integer("amount") == 2)
            #expect(try row.bool("isNamed"))
            #expect(rows[1].isEmpty)
            let own = try rows.row(2)
            #expect(try own.text("engine") == (engine == .mariadb ? "M" : "S"))
            #expect(try own.text("again") == (engine == .mariadb ? "M" : "S"))
            #expect(try own.text("last") == "end")
        }
    }

    @Test(arguments: Engine.allCases)
    func unknownColumnIsNamed(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            let writes = [Self.insert(id: 1, name: .text("one"))]
            let rows = try await store.run(Script("test.columns", writes: writes, reads: [Self.twice()]))
            let row = try rows.row(0)
            #expect(try row.text("name") == "one")
            let sql = Self.twice.sql
            #expect(throws: StoreFailure.internal("there is no column nam in the result of: \(sql)")) {
                try row.text("nam")
            }
            #expect(throws: StoreFailure.internal("there is no column names in the result of: \(sql)")) {
                try row.isNull("names")
            }
            #expect(throws: StoreFailure.internal("there are several columns id in the result of: \(sql)")) {
                try row.integer("id")
            }
        }
    }

    @Test(arguments: Engine.allCases)
    func numberOfValuesMustFit(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            let short = BoundStatement(Self.insert, values: [1])
            await #expect(throws: StoreFailure.self) { try await store.run(Script("test.short", reads: [short])) }
        }
    }
}
