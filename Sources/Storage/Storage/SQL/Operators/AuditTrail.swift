import Bytes
import Domain
import JSON
import Relay
import World

/// A row of the audit with its words and names, for people.
public struct AuditEvent: Sendable {
    public let id: Int64
    public let at: Timestamp
    public let event: String
    public let actor: String?
    public let request: String?
    public let website: String?
    public let user: String?
    /// The user's name; nil if the user is deleted.
    public let username: String?
    public let device: String?
    public let challenge: String?
    public let outcome: String?
    public let proof: String?
    public let note: String?
    public let changes: String?
    public let reason: String?
    public let operation: String
    public let writer: String?
    public let link: Int64?

    init(_ row: Row) throws(StoreFailure) {
        func hex(_ column: SQLName) throws(StoreFailure) -> String? {
            try row.optionalBlob(column).map { Hex.encode($0) }
        }
        id = try row.integer("id")
        at = try row.timestamp("at")
        event = try row.text("event")
        actor = try row.optionalText("actor")
        request = try row.optionalText("request")
        website = try row.optionalText("website")
        user = try hex("user_id")
        username = try row.optionalText("username")
        device = try hex("device_id")
        challenge = try hex("challenge_id")
        outcome = try row.optionalText("outcome")
        proof = try row.optionalText("proof")
        note = try row.optionalText("note")
        changes = try row.optionalText("changes")
        reason = try row.optionalText("reason")
        operation = Hex.encode(try row.blob("operation"))
        writer = try hex("writer")
        link = try row.optionalInteger("link")
    }

    /// The row as an object of JSON. Members without a value are left out.
    public var json: JSONObject {
        var object: JSONObject = ["id": .integer(id), "at": .string(at.rfc3339), "event": .string(event)]
        let texts = [
            ("actor", actor), ("request", request), ("website", website), ("user", user), ("username", username),
            ("device", device), ("challenge", challenge), ("outcome", outcome), ("proof", proof), ("note", note),
            ("reason", reason), ("operation", operation), ("writer", writer),
        ]
        for (name, text) in texts { object.set(name, text.map { .string($0) }) }
        object.set("changes", changes.map { (try? JSONReader.read(Array($0.utf8))) ?? .string($0) })
        object.set("link", link.map { .integer($0) })
        return object
    }
}

/// The queries of `twoefay audit`.
public enum AuditTrail {
    /// The conditions of a search. A row fits if it fits all of them.
    public struct Filter: Sendable {
        public var website: WebsiteID?
        /// The user, by whom `page(of:_:after:)` finds the rows.
        public var user: UserID?
        public var device: DeviceID?
        /// The beginning of the actor, such as `operator` or `operator alice`.
        public var actor: String?
        /// An event, or the beginning of events that ends with a dot.
        public var event: String?
        public var since: Timestamp?
        public var until: Timestamp?

        public init() {}
    }

    /// The number of ids that one statement looks through.
    public static let span: Int64 = 2_000

    /// The numbers of the oldest and the newest row; nil if there is none.
    public static let bounds = Query(script: Script("audit", reads: [ends()])) {
        rows throws(StoreFailure) -> (first: Int64, last: Int64)? in
        guard let row = rows[0].first, let first = try row.optionalInteger("first"),
            let last = try row.optionalInteger("last")
        else { return nil }
        return (first, last)
    }

    private static let ends = Statement(
        "SELECT (SELECT min(id) FROM audit) AS first, (SELECT max(id) FROM audit) AS last")

    /// Returns the rows that fit, among the numbers from `first` to `last`, of all users.
    public static func page(_ filter: Filter, from first: Int64, to last: Int64) -> Query<[AuditEvent]> {
        let read = fitting(
            first: .integer(first), last: .integer(last), since: .timestamp(filter.since), website: .id(filter.website),
            device: .id(filter.device), actor: .text(filter.actor), event: .text(filter.event),
            until: .timestamp(filter.until))
        return Query(script: Script("audit", reads: [read])) { rows throws(StoreFailure) in
            var events: [AuditEvent] = []
            for row in rows[0] { events.append(try AuditEvent(row)) }
            return events
        }
    }

    private static let fitting = Statement(
        """
        \(select) WHERE a.id >= :first AND a.id <= :last AND (:since IS NULL OR a.at >= :since) AND \(fits) ORDER BY a.id
        """)

    /// The most rows of a user that one page has.
    public static let pageSize = 500

    /// Returns the next rows that fit, of the filter's user, by time and number. They are found by the
    /// index on the user.
    ///
    /// - Parameter last: the last row of the page before; nil for the first page.
    public static func page(of user: UserID, _ filter: Filter, after last: AuditEvent?) -> Query<[AuditEvent]> {
        let since = last?.at ?? filter.since ?? Timestamp(seconds: 0)
        let read = ofUser(
            user: .id(user), since: .timestamp(since), after: .integer(last?.id ?? .min), website: .id(filter.website),
            device: .id(filter.device), actor: .text(filter.actor), event: .text(filter.event),
            until: .timestamp(filter.until))
        return Query(script: Script("audit", reads: [read])) { rows throws(StoreFailure) in
            var events: [AuditEvent] = []
            for row in rows[0] { events.append(try AuditEvent(row)) }
            return events
        }
    }

    private static let ofUser = Statement(
        """
        \(select) WHERE a.user_id = :user AND a.at >= :since AND (a.at > :since OR a.id > :after) AND \(fits)
        ORDER BY a.at, a.id LIMIT \(pageSize)
        """)

    private static let select = """
        SELECT a.id, a.at, a.event, a.actor, a.request, w.name AS website, a.user_id, u.username, a.device_id,
        a.challenge_id, a.outcome, a.proof, d.note, d.changes, d.reason, a.operation, a.writer, a.link
        FROM audit a LEFT JOIN audit_detail d ON d.operation = a.operation
        LEFT JOIN website w ON w.id = a.website_id LEFT JOIN user u ON u.id = a.user_id
        """

    /// The conditions of a filter besides the user and the beginning.
    private static let fits = """
        (:website IS NULL OR a.website_id = :website) AND (:device IS NULL OR a.device_id = :device)
        AND (:actor IS NULL OR substr(a.actor, 1, \(length(":actor"))) = :actor)
        AND (:event IS NULL OR a.event = :event
            OR (substr(:event, \(length(":event")), 1) = '.' AND substr(a.event, 1, \(length(":event"))) = :event))
        AND (:until IS NULL OR a.at < :until)
        """

    /// The number of characters: `length` counts bytes in MariaDB.
    private static func length(_ text: String) -> String { "/*M! char_length(\(text)) */ /*S! length(\(text)) */" }
}
