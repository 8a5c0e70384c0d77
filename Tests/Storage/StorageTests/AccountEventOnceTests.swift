import Bytes
import Domain
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// Two equal requests at the same time are one change under one operation. The second script finds the change done,
/// and must not fail: otherwise all other scripts of its batch would fail with it.
struct AccountEventOnceTests {
    private static let setWebhookURL = Statement("UPDATE website SET webhook_url = 'https://shop.example/hook'")
    private static let countEvents = Statement(
        "SELECT count(*) AS count FROM outbox WHERE event IS NOT NULL AND event <> 'login.decided'")

    @Test(arguments: Engine.allCases) func repeatedOperationCreatesOneEvent(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try await Sample.fill(store, at: database.url)
        // The end of a recovery has an event of its own.
        let deleted = Statement("DELETE FROM recovery")()
        _ = try await store.run(Script("webhook URL", writes: [Self.setWebhookURL(), deleted]))
        let operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
        var expected: Int64 = 0
        func twice(_ what: String, _ change: (Domain.Operation) async throws -> Void) async throws {
            // An operation that the store does not look up before it runs the script.
            let operation = operations.new()
            for _ in 0..<2 { try await change(operation) }
            expected += 2
            let count = try await store.run(Script("count", reads: [Self.countEvents()]))
            #expect(try count.row(0).integer("count") == expected, "\(what)")
        }
        try await twice("bind") { try await Sample.bind(1, on: store, as: $0) }
        try await twice("unbind") { operation in
            var change = DeviceChange(Sample.id(2), of: Sample.id(2), by: .phone, at: Sample.now)
            change.state = .revoked
            _ = try await store.change(change, as: operation)
        }
        try await twice("lock") { operation in
            _ = try await store.run(Locks.lock(Sample.id(3), at: Sample.now, as: operation))
        }
    }
}
