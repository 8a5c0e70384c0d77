import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// The guarantees on which the verbs rely, on every engine.
@Suite(.mayBlock) struct ContractTests {
    @Test(arguments: Engine.allCases)
    func scriptReadsItsOwnWrites(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            #expect(try await store.run(TestScript.counter(1)).isEmpty)
            let rows = try await store.run(TestScript.raise(1))
            #expect(rows.count == 2)
            #expect(try rows.row(0).integer("done") == 1)
            #expect(try rows.row(1).integer("n") == 1)
        }
    }

    @Test(arguments: Engine.allCases)
    func failedGuardChangesNothing(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            _ = try await store.run(TestScript.counter(1, 5))
            let rows = try await store.run(TestScript.raise(1, below: 5))
            #expect(try rows.row(0).integer("done") == 0)
            #expect(try rows.row(1).integer("n") == 5)
            #expect(try await store.run(TestScript.raise(9))[1].isEmpty)
        }
    }

    @Test(arguments: Engine.allCases)
    func concurrentScriptsNeverExceedTheLimit(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            _ = try await store.run(TestScript.counter(1))
            let admitted = try await withThrowingTaskGroup(of: Int64.self) { group in
                for _ in 0..<200 {
                    group.addTask { try await store.run(TestScript.raise(1, below: 30)).row(0).integer("done") }
                }
                return try await group.reduce(0, +)
            }
            #expect(admitted == 30)
            #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == 30)
        }
    }

    @Test(arguments: Engine.allCases)
    func failingScriptAffectsNoOther(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            _ = try await store.run(TestScript.counter(1))
            let failed = TestScript.fresh()
            let outcomes = await withTaskGroup(of: Bool.self) { group in
                for number in 0..<50 {
                    group.addTask {
                        let script = number == 25 ? TestScript.duplicate(1, operation: failed) : TestScript.raise(1)
                        return (try? await store.run(script)) != nil
                    }
                }
                return await group.reduce(into: [Bool]()) { $0.append($1) }
            }
            #expect(outcomes.filter { !$0 }.count == 1)
            #expect(try await store.run(TestScript.value(of: 1)).row(0).integer("n") == 49)
            // Its first write succeeded, and was rolled back with the second.
            #expect(try await store.run(TestScript.wasDone(failed)).row(0).integer("done") == 0)
            await #expect(throws: StoreFailure.self) { try await store.run(TestScript.duplicate(1)) }
        }
    }

    /// A repetition that overtook the first request has already done the work.
    @Test(arguments: Engine.allCases)
    func repeatedOperationIsNoError(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            _ = try await store.run(TestScript.counter(1))
            let operation = TestScript.fresh()
            for _ in 0..<2 {
                let rows = try await store.run(TestScript.raise(1, operation: operation))
                #expect(try rows.row(0).integer("done") == 1)
                #expect(try rows.row(1).integer("n") == 1)
            }
        }
    }

    @Test(arguments: Engine.allCases)
    func errorNamesTheScriptWithoutValues(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            let script = Script("test.names", writes: [KeptRow.insert(id: 1, name: "alice@example.com")])
            _ = try await store.run(script)
            let again = Script("test.names", writes: [KeptRow.insert(id: 2, name: "alice@example.com")])
            let failure = await #expect(throws: StoreFailure.self) { try await store.run(again) }
            guard case .internal(let message)? = failure else {
                Issue.record("\(String(describing: failure)) is not .internal")
                return
            }
            #expect(message.hasPrefix("test.names: "))
            #expect(message.contains("name"))
            #expect(!message.contains("alice"))
        }
    }

    @Test(arguments: Engine.allCases)
    func wrongValueCountIsRefused(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            await #expect(throws: StoreFailure.self) {
                try await store.run(Script("test", reads: [BoundStatement(Self.two, values: [1])]))
            }
            let rows = try await store.run(Script("test", reads: [Self.two(a: 1, b: 2)]))
            #expect(try rows.row(0).integer("b") == 2)
        }
    }

    private static let two = Statement("SELECT :a AS a, :b AS b")

    @Test(arguments: Engine.allCases)
    func readLaneRefusesWrites(_ engine: Engine) async throws {
        guard engine != .memory else { return }
        try await withStore(engine) { store in
            await #expect(throws: StoreFailure.self) {
                try await store.run(Script("test", reads: [KeptRow.insert(id: 1, name: "x")]))
            }
        }
    }

    @Test(arguments: Engine.allCases)
    func blockingRunWorksWithoutALoop(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            _ = try store.runBlocking(TestScript.counter(1))
            #expect(try store.runBlocking(TestScript.raise(1)).row(1).integer("n") == 1)
        }
    }

    @Test(arguments: Engine.allCases)
    func manyReadsOfManyRowsKeepTheirOrder(_ engine: Engine) async throws {
        try await withStore(engine) { store in
            let text = String(repeating: "ß", count: 1000)
            for start in stride(from: 0, to: 400, by: 100) {
                let rows = (start..<start + 100).map { KeptRow.insert(id: Int64($0), name: "\($0)", body: text) }
                _ = try await store.run(Script("test.fill", writes: rows))
            }
            let steps = (0..<300).map { number in
                number.isMultiple(of: 10)
                    ? KeptRow.all() : KeptRow.byID(id: .integer(Int64(number)))
            }
            let results = try await store.run(Script("test.read", reads: steps))
            for (number, rows) in results.enumerated() {
                if number.isMultiple(of: 10) {
                    #expect(rows.count == 400)
                    #expect(try rows[399].text("body") == text)
                } else {
                    #expect(try rows[0].integer("id") == Int64(number))
                }
            }
        }
    }
}

extension SQLValue: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: Int64) { self = .integer(value) }
}

/// Statements on the table with every type.
enum KeptRow {
    static let insertion = Statement("INSERT INTO kept (id, name, body) VALUES (:id, :name, :body)")
    static let all = Statement("SELECT id, body FROM kept ORDER BY id")
    static let byID = Statement("SELECT id, name, body, key_id, data, large, at, small FROM kept WHERE id = :id")

    static func insert(id: Int64, name: String, body: String? = nil) -> BoundStatement {
        insertion(id: .integer(id), name: .text(name), body: .text(body))
    }
}
