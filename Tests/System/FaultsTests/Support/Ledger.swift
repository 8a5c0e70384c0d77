import Daemon
import Log
import Relay
import Storage
import TestSupport
import Testing
import World

/// Queries on the store of a relay, as an operator would make them.
struct Ledger: Sendable {
    private let store: Store

    /// Reads the store over a separate connection, while the relay runs or afterwards.
    static func read<Value>(_ relay: RunningRelay, _ body: (Ledger) throws -> Value) throws -> Value {
        try read(relay.settings, body)
    }

    /// Reads the store of the relay with these settings.
    static func read<Value>(_ path: String, _ body: (Ledger) throws -> Value) throws -> Value {
        let settings = try SettingsReader.read(try TextFile.bytes(path), file: path)
        let store = try Store.open(
            try settings.storageURL(), time: SystemTime(), log: Log(minimum: .error, sink: MemorySink()),
            options: .patient)
        defer { store.close() }
        return try body(Ledger(store: store))
    }

    func number(_ sql: String) throws -> Int64 {
        try store.runBlocking(Script("test", reads: [.value(of: sql)])).row(0).integer("value")
    }

    func texts(_ sql: String) throws -> [String] {
        var texts: [String] = []
        for row in try store.runBlocking(Script("test", reads: [.value(of: sql)]))[0] {
            texts.append(try row.text("value"))
        }
        return texts
    }

    /// Checks the invariants that hold whenever nothing is in progress.
    func check(_ location: SourceLocation = #_sourceLocation) throws {
        func none(_ what: Comment, _ sql: String) throws {
            #expect(try number("SELECT count(*) FROM \(sql)") == 0, what, sourceLocation: location)
        }
        let ends = "(SELECT count(*) FROM audit a WHERE a.challenge_id = c.id AND a.event IN (\(Self.ends)))"
        try none(
            "ended, and not by exactly one event",
            """
            challenge c WHERE c.decided_at IS NOT NULL AND coalesce(c.reason, '') <> 'superseded'
            AND c.state <> 'failed' AND \(ends) <> 1
            """)
        try none("ended in the audit alone", "challenge c WHERE c.decided_at IS NULL AND \(ends) <> 0")
        try none(
            "asked, and not by exactly one event",
            """
            challenge c WHERE (SELECT count(*) FROM audit a
            WHERE a.challenge_id = c.id AND a.event = 'challenge.asked') <> 1
            """)
        try none(
            "two challenges of one user at once",
            """
            challenge c JOIN challenge d ON d.user_id = c.user_id AND d.id <> c.id
            WHERE c.decided_at IS NULL AND d.decided_at IS NULL
            """)
        try none(
            "something left to do for what has ended",
            "outbox o JOIN challenge c ON c.id = o.challenge_id WHERE c.decided_at IS NOT NULL")
        try none(
            "a challenge that would never end",
            """
            challenge c WHERE c.decided_at IS NULL AND NOT EXISTS
            (SELECT 1 FROM outbox o WHERE o.challenge_id = c.id AND o.kind = 'expiry')
            """)
        try none(
            "a bound phone without its event",
            """
            device d WHERE (SELECT count(*) FROM audit a WHERE a.device_id = d.id AND a.event = 'device.bound') < 1
            """)
    }

    private static let ends = "'challenge.answered', 'challenge.cancelled', 'challenge.expired'"
}
