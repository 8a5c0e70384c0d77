import Domain
import Relay
import World

/// The questions of `twoefay doctor` to the store. None of them leaves a change.
public enum StoreExamination {
    /// A relay in the store.
    public struct ListedRelay: Sendable, Equatable {
        public let id: RelayID
        public let beat: Int64
        public let startedAt: Timestamp
    }

    /// Reads the relays and their heartbeats. A relay whose heartbeat moves between two reads is
    /// alive.
    public static let relays = Query(script: Script("doctor", reads: [allRelays()])) {
        rows throws(StoreFailure) in
        var relays: [ListedRelay] = []
        for row in rows[0] {
            relays.append(
                ListedRelay(
                    id: try row.id("id"), beat: try row.integer("beat"), startedAt: try row.timestamp("started_at")))
        }
        return relays
    }

    private static let allRelays = Statement("SELECT id, beat, started_at FROM relay ORDER BY started_at, id")

    /// Returns the notes of the starts of relays at that time, which name relay and version.
    public static func starts(at time: Timestamp) -> Query<[String]> {
        let read = notes(since: .timestamp(time - .seconds(2)), until: .timestamp(time + .seconds(20)))
        return Query(script: Script("doctor", reads: [read])) { rows throws(StoreFailure) in
            var notes: [String] = []
            for row in rows[0] { if let note = try row.shownWords().note { notes.append(note) } }
            return notes
        }
    }

    private static let notes = Statement(
        """
        SELECT d.operation, d.note, d.changes, d.reason
        FROM audit a LEFT JOIN audit_detail d ON d.operation = a.operation
        WHERE a.at >= :since AND a.at < :until AND a.event = 'daemon.started' LIMIT 100
        """)

    /// Commits a row that it inserts and deletes, to measure a commit. An update that leaves every
    /// value as it is would not do: MariaDB writes nothing for one.
    public static let commit = Query(script: Script("doctor", writes: [insertTask(), deleteTask()])) { _ in () }

    private static let insertTask = Statement(
        """
        INSERT INTO task_lease (name, holder) VALUES ('doctor', NULL)
        /*M! ON DUPLICATE KEY UPDATE name = task_lease.name */ /*S! ON CONFLICT DO NOTHING */
        """)

    private static let deleteTask = Statement("DELETE FROM task_lease WHERE name = 'doctor'")

    /// Returns the clock of the store's server; nil if the store has that of this machine.
    public static let clock = Query(script: Script("doctor", reads: [serverClock()])) {
        rows throws(StoreFailure) -> Timestamp? in
        guard let row = rows[0].first, let milliseconds = try row.optionalInteger("milliseconds") else { return nil }
        return Timestamp(milliseconds: milliseconds)
    }

    /// This one statement asks for the time: it is compared with that of this machine, and decides
    /// nothing.
    private static let serverClock = Statement(
        "SELECT /*M! CAST(@@timestamp * 1000 AS INTEGER) */ /*S! NULL */ AS milliseconds")
}
