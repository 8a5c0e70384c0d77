import Bytes
import Relay
import World

/// A row that is older than its last change in the audit. It shows that somebody has restored a
/// former state of the row. A MAC cannot show this, because a relay once signed that state.
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

    /// The events of each table that are written together with the row, under the same operation.
    private static let searches = [
        search("website", "website_id", ["website.edited", "website.disabled", "website.enabled"]),
        search(
            "user", "user_id",
            [
                "user.changed", "user.expiry", "user.identity", "user.locked", "user.taken", "user.frozen",
                "user.unlocked",
                "user.disabled", "user.enabled",
            ]),
        search("device", "device_id", ["device.bound", "device.suspended", "device.resumed", "device.unbound"]),
        search("challenge", "challenge_id", ["challenge.answered", "challenge.ended"]),
    ]

    private static func search(
        _ table: String, _ column: String, _ events: [String]
    ) -> (table: String, statement: Statement) {
        let list = events.map { "'\($0)'" }.joined(separator: ", ")
        let statement = Statement(
            """
            SELECT r.id, written.at AS written_at, last.event, last.at AS changed_at FROM \(table) r
            JOIN audit written ON written.operation = r.operation
            JOIN (SELECT \(column) AS id, max(at) AS at FROM audit WHERE event IN (\(list)) GROUP BY \(column)) newest
            ON newest.id = r.id AND newest.at > written.at
            JOIN audit last ON last.\(column) = r.id AND last.at = newest.at AND last.event IN (\(list))
            ORDER BY r.id
            """)
        return (table, statement)
    }
}
