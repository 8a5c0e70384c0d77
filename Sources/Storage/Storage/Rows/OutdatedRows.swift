import Bytes
import Relay
import World

/// A row that is older than its last change in the audit. It shows that somebody has restored a
/// former state of the row. A MAC cannot show this, because a relay once signed that state.
///
/// The order of changes is that of the numbers of their audit rows, and not of their times: a change
/// locks the row before it writes its audit row, and the clocks of two hosts differ. A cluster keeps
/// this order, too, because a node has the earlier audit row when it has the changed row.
public struct OutdatedRow: Sendable {
    public let table: String
    public let key: [UInt8]
    /// The time of the change that wrote the row's present state.
    public let writtenAt: Timestamp
    /// The event of the later change that is missing from the row.
    public let event: String
    public let changedAt: Timestamp

    /// Finds all outdated rows. A row names the operation that changed it last; a row whose
    /// operation is not in the audit is not reported.
    public static let all = Query(script: Script("outdated", reads: searches.map { $0.statement() })) {
        tables throws(StoreFailure) -> [OutdatedRow] in
        var found: [OutdatedRow] = []
        for (search, rows) in zip(searches, tables) {
            for row in rows {
                found.append(
                    OutdatedRow(
                        table: search.table, key: try row.blob("id"), writtenAt: try row.timestamp("written_at"),
                        event: try row.text("event"), changedAt: try row.timestamp("changed_at")))
            }
        }
        return found
    }

    /// The events of each table that are written together with the row.
    private static let searches = [
        search(
            "website", "website_id",
            [
                "website.edited", "website.disabled", "website.enabled", "website.renewed", "website.removed",
                "website.keys_ended",
            ]),
        search(
            "user", "user_id",
            [
                "user.changed", "user.expiry", "user.identity", "user.locked", "user.taken", "user.frozen",
                "user.unlocked",
                "user.disabled", "user.enabled",
            ]),
        search(
            "device", "device_id",
            [
                "device.bound", "device.suspended", "device.resumed", "device.unbound", "pin.set", "pin.changed",
                "pin.reset", "pin.unlocked", "pin.locked", "puk.locked", "unlock.issued", "unlock.withdrawn",
                "unlock.locked",
            ]),
        // A lock ends logins under its own operation, and audits each end afterwards, under the login's
        // id. Such an end is missing only from a login that is open.
        search(
            "challenge", "challenge_id", ["challenge.answered", "challenge.ended"],
            unless: "last.operation = r.id AND r.decided_at IS NOT NULL"),
        // A binding that stored an attestation has its verdict as the outcome. The end of a wait for
        // approval is `device.bound`, too, and has none.
        search(
            "attestation", key: "device_id", "device_id", ["device.bound", "device.waiting"], haveOutcome: true),
        (table: "tagged_certificate", statement: replacedCertificates),
    ]

    /// Finds tagged certificates that were replaced since. They do not name their operation, but were
    /// written at the time of their row in the audit.
    private static let replacedCertificates = Statement(
        """
        SELECT r.device_id AS id, r.created_at AS written_at, last.event, last.at AS changed_at
        FROM tagged_certificate r
        JOIN (SELECT e.device_id, e.outcome, max(e.id) AS last_id FROM audit e
            WHERE e.event IN ('device.certified', 'device.recertified') GROUP BY e.device_id, e.outcome) newest
        ON newest.device_id = r.device_id AND newest.outcome = r.tag
        JOIN audit last ON last.id = newest.last_id AND last.at <> r.created_at
        ORDER BY r.device_id, r.tag
        """)

    /// Searches for the rows whose operation is older than the newest of these events.
    ///
    /// - Parameters:
    ///   - key: the primary key of the table.
    ///   - column: the column of the audit that has the key.
    ///   - haveOutcome: whether only events with an outcome count.
    ///   - hasIt: the condition under which the row `r` has the change of the event `last` anyway.
    private static func search(
        _ table: String, key: String = "id", _ column: String, _ events: [String], haveOutcome: Bool = false,
        unless hasIt: String = "1 = 0"
    ) -> (table: String, statement: Statement) {
        let list = events.map { "'\($0)'" }.joined(separator: ", ")
        let counts = "e.event IN (\(list))" + (haveOutcome ? " AND e.outcome IS NOT NULL" : "")
        let statement = Statement(
            """
            SELECT r.\(key) AS id, written.at AS written_at, last.event, last.at AS changed_at FROM \(table) r
            JOIN audit written ON written.operation = r.operation
            JOIN (SELECT e.\(column) AS id, max(e.id) AS last_id FROM audit e WHERE \(counts) GROUP BY e.\(column)) newest
            ON newest.id = r.\(key) AND newest.last_id > written.id
            JOIN audit last ON last.id = newest.last_id AND NOT (\(hasIt))
            ORDER BY r.\(key)
            """)
        return (table, statement)
    }
}
