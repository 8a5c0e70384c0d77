import Relay
import TestSupport
import Testing

@testable import Storage

/// The purposes of phones' keys, if two relays record one key at the same time.
@Suite(.mayBlock) struct UsedKeyTests {
    /// The guard of the second relay has seen no row. Its change must fail all the same.
    @Test(arguments: Engine.allCases) func keyGetsNoSecondPurpose(engine: Engine) throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        let key = [UInt8](repeating: 1, count: 32)
        let device = SQLValue.blob([UInt8](repeating: 2, count: 16))
        let operation = SQLValue.blob([UInt8](repeating: 3, count: 16))
        let audit = Statement(
            """
            INSERT INTO audit (operation, at, event, device_id)
            VALUES (:operation, '2026-01-01 00:00:00.000', 'device.certified', :device)
            """)
        _ = try store.runBlocking(Script("audit", writes: [audit(operation: operation, device: device)]))
        func record(_ purpose: String) throws {
            _ = try store.runBlocking(
                Script("key", writes: [UsedKeys.recorded(.blob(key), purpose, of: device, as: operation)]))
        }
        // A further certificate for the same key changes nothing.
        for _ in 0..<2 { try record("statement:contract") }
        #expect(throws: StoreFailure.self) { try record("raw:legacy") }
        let purposes = try store.runBlocking(
            Script("keys", reads: [Statement("SELECT purpose FROM used_key")()]))[0]
        #expect(try purposes.map { try $0.text("purpose") } == ["statement:contract"])
    }
}
