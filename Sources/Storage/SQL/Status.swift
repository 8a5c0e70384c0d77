import Relay
import World

/// What an operator wants to see at a glance. Only small tables are counted: it costs the same with ten million users.
public struct StoreStatus: Sendable, Equatable {
    /// What is still to be done of one kind.
    public struct Waiting: Sendable, Equatable {
        public let kind: String
        public let count: Int64
        /// Long past, it is a sign that no relay works.
        public let oldestDue: Timestamp
    }

    public let websites: Int64
    /// Those that moved their beat when they were last looked at; one that died counts until another relay notices.
    public let relays: Int64
    public let waiting: [Waiting]
    /// What nobody tries any more.
    public let dead: Int64

    public static let query = Query(
        script: Script("status", reads: [Step(countWebsites), Step(countRelays), Step(countErrands)])
    ) { rows throws(StoreFailure) in
        var waiting: [Waiting] = []
        // What only a later version delivers is not due at any time.
        var dead: Int64 = 0
        for row in rows[2] {
            dead += try row.integer(3)
            guard let oldestDue = try row.optionalMoment(2) else { continue }
            waiting.append(Waiting(kind: try row.text(0), count: try row.integer(1), oldestDue: oldestDue))
        }
        return StoreStatus(
            websites: try rows[0].first?.integer(0) ?? 0, relays: try rows[1].first?.integer(0) ?? 0, waiting: waiting,
            dead: dead)
    }

    static let countRelays = Statement("SELECT count(*) FROM relay")
}

private let countWebsites = Statement("SELECT count(*) FROM website WHERE state = 'active'")
private let countErrands = Statement(
    "SELECT kind, count(due_at), min(due_at), count(dead_at) FROM outbox GROUP BY kind ORDER BY kind")
