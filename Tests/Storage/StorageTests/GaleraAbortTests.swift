import Relay
import TestSupport
import Testing

@testable import Storage

/// A node ends a transaction for the sake of another node's. A session must notice it in every case,
/// or COMMIT stores a part of the transaction.
extension GaleraTests {
    private static let raise = Statement("UPDATE counter SET n = n + 1 WHERE id = :id")
    private static let keep = Statement("INSERT INTO kept (id, small) VALUES (:id, :node)")
    private static let kept = Statement("SELECT id FROM kept WHERE small = :node ORDER BY id")

    /// The end of a transaction without the session's knowledge. The server does it here on demand.
    @Test func transactionThatTheServerEndedIsNotCommitted() async throws {
        let bench = try Bench()
        let store = try bench.database(first: 0).open()
        defer { store.close() }
        for id in 1...2 { _ = try await store.run(TestScript.counter(Int64(id))) }
        let session = try bench.url(of: 0).session(.writing)
        defer { session.close() }
        try session.begin(.writing)
        _ = try session.run([Self.raise(id: 1)])
        _ = try session.run([Statement("ROLLBACK")()])
        _ = try session.run([Self.raise(id: 2)])
        let failure = #expect(throws: SessionFailure.self) { try session.commit() }
        guard case .conflict = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
        session.rollBack()
        #expect(try await store.run(TestScript.value(of: 2)).row(0).integer("n") == 0)
        // The next transaction of the session is a whole one.
        try session.begin(.writing)
        _ = try session.run([Self.raise(id: 2)])
        try session.commit()
        #expect(try await store.run(TestScript.value(of: 2)).row(0).integer("n") == 1)
    }

    /// Arrays of values at two nodes, in transactions that raise the same few counters. MariaDB 10.11
    /// answers some of the aborted arrays without an error.
    @Test func abortedArraysAreNotCommittedInPart() async throws {
        let bench = try Bench()
        let (hot, rounds, rows) = (Int64(100), Int64(1500), Int64(8))
        let store = try bench.database(first: 0).open()
        defer { store.close() }
        for id in 0..<hot { _ = try await store.run(TestScript.counter(id)) }
        let sessions: [(node: Int, number: Int64)] = (0..<4).map { ($0 % 2, Int64($0)) }
        let committed = try await withThrowingTaskGroup(of: [Int64].self) { group in
            for (node, number) in sessions {
                let url = try bench.url(of: node)
                group.addTask {
                    let session = try url.session(.writing)
                    defer { session.close() }
                    var committed: [Int64] = []
                    for round in 0..<rounds {
                        let first = (number * rounds + round) * rows
                        let counters = [first * 7 % hot, first * 13 % hot]
                        try session.begin(.writing)
                        do throws(SessionFailure) {
                            _ = try session.run([Self.raise(id: .integer(counters[0]))])
                            _ = try session.run(
                                (first..<first + rows).map { id in
                                    var step = Self.keep(id: .integer(id), node: .integer(number))
                                    step.isJoined = true
                                    return step
                                })
                            _ = try session.run([Self.raise(id: .integer(counters[1]))])
                            try session.commit()
                            committed += first..<first + rows
                        } catch {
                            session.rollBack()
                            if case .lost = error { throw error }
                        }
                    }
                    return committed
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        let reader = try bench.url(of: 1).session(.reading)
        defer { reader.close() }
        try reader.begin(.reading)
        var stored: Set<Int64> = []
        for (_, number) in sessions {
            stored.formUnion(
                try reader.run([Self.kept(node: .integer(number))])[0].map { try $0.integer("id") })
        }
        // Some were refused, which shows that transactions were aborted.
        #expect(committed.count > 0 && committed.count < sessions.count * Int(rounds * rows))
        #expect(Set(committed).subtracting(stored).count == 0)
        #expect(stored.subtracting(committed).count == 0)
    }
}
