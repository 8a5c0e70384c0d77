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
        let words = try row.shownWords()
        (note, changes, reason) = (words.note, words.changes, words.reason)
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
///
/// Invariant: each page looks at a limited number of rows, and the next one begins behind the last of
/// them. So a row with any number and any time costs no more than another one.
public enum AuditTrail {
    /// The conditions of a search. A row fits if it fits all of them.
    public struct Filter: Sendable {
        public var website: WebsiteID?
        public var user: UserID?
        public var device: DeviceID?
        /// A login.
        public var challenge: ChallengeID?
        /// The id of a request, as the log has it.
        public var request: String?
        /// The beginning of the actor, such as `operator` or `operator alice`.
        public var actor: String?
        /// An event, or the beginning of events that ends with a dot.
        public var event: String?
        public var since: Timestamp?
        public var until: Timestamp?

        public init() {}
    }

    /// The last row that a page has looked at.
    public struct Position: Sendable, Equatable {
        let at: Timestamp
        let id: Int64
    }

    /// Some rows that fit.
    public struct Page: Sendable {
        public let events: [AuditEvent]
        /// The place at which the next page begins; nil if there are no further rows.
        public let next: Position?
    }

    /// The most rows that one page looks at.
    public static let pageSize = 2_000

    /// Returns the newest rows by their numbers, the oldest of them first.
    public static func newest(_ count: Int) -> Query<[AuditEvent]> {
        let read = last(count: .integer(Int64(count)), newest: .integer(.max))
        return Query(script: Script("audit", reads: [read])) { rows throws(StoreFailure) in
            try events(rows[0]).reversed()
        }
    }

    private static let last = Statement("\(select) WHERE a.id <= :newest ORDER BY a.id DESC LIMIT :count")

    /// Returns the next rows that fit: those of a user and those since a time in the order of their
    /// times, which the indexes have, and others in the order of their numbers.
    ///
    /// - Parameter position: the end of the page before; nil for the first page.
    public static func page(_ filter: Filter, after position: Position?) -> Query<Page> {
        let id = SQLValue.integer(position?.id ?? .min)
        let since = SQLValue.timestamp(position?.at ?? filter.since ?? Timestamp(seconds: 0))
        let until = filter.until.map { SQLValue.timestamp($0) } ?? .text(endOfTime)
        let (website, device) = (SQLValue.id(filter.website), SQLValue.id(filter.device))
        let (challenge, request) = (SQLValue.id(filter.challenge), SQLValue.text(filter.request))
        let (actor, event) = (SQLValue.text(filter.actor), SQLValue.text(filter.event))
        let reads =
            if let user = filter.user {
                [
                    endOfUser(user: .id(user), since: since, after: id, until: until),
                    ofUser(
                        user: .id(user), since: since, after: id, until: until, website: website, device: device,
                        challenge: challenge, request: request, actor: actor, event: event),
                ]
            } else if filter.since != nil {
                [
                    endByTime(since: since, after: id, until: until),
                    byTime(
                        since: since, after: id, until: until, website: website, device: device,
                        challenge: challenge, request: request, actor: actor, event: event),
                ]
            } else {
                [
                    endByNumber(after: id),
                    byNumber(
                        after: id, website: website, device: device, challenge: challenge, request: request,
                        actor: actor, event: event, until: until),
                ]
            }
        return Query(script: Script("audit", reads: reads)) { rows throws(StoreFailure) in
            var next: Position?
            if let row = rows[0].first, try row.integer("looked_at") == pageSize {
                next = Position(at: try row.timestamp("at"), id: try row.integer("id"))
            }
            return Page(events: try events(rows[1]), next: next)
        }
    }

    /// The end of the times that the store can have.
    private static let endOfTime = "9999-12-31 23:59:59.999"

    private static func events(_ rows: Rows) throws(StoreFailure) -> [AuditEvent] {
        var events: [AuditEvent] = []
        for row in rows { events.append(try AuditEvent(row)) }
        return events
    }

    // MARK: Statements

    private static let endByNumber = Statement(end(numbered, "id"))
    private static let byNumber = Statement(
        "\(among(numbered)) WHERE \(fits) AND a.at < :until ORDER BY a.id")
    private static let endByTime = Statement(end(timed, "at DESC, p.id"))
    private static let byTime = Statement("\(among(timed)) WHERE \(fits) ORDER BY a.at, a.id")
    private static let endOfUser = Statement(end(owned, "at DESC, p.id"))
    private static let ofUser = Statement("\(among(owned)) WHERE \(fits) ORDER BY a.at, a.id")

    /// The rows that a page looks at, each found by one index.
    private static let numbered = "SELECT id, at FROM audit WHERE id > :after ORDER BY id LIMIT \(pageSize)"
    private static let timed = """
        SELECT id, at FROM audit WHERE at >= :since AND at < :until AND (at > :since OR id > :after)
        ORDER BY at, id LIMIT \(pageSize)
        """
    private static let owned = """
        SELECT id, at FROM audit WHERE user_id = :user AND at >= :since AND at < :until
        AND (at > :since OR id > :after) ORDER BY at, id LIMIT \(pageSize)
        """

    /// Returns the statement for the last row of a page, and the number of its rows.
    private static func end(_ page: String, _ order: String) -> String {
        "SELECT p.id, p.at, count(*) OVER () AS looked_at FROM (\(page)) p ORDER BY p.\(order) DESC LIMIT 1"
    }

    private static func among(_ page: String) -> String {
        "SELECT \(columns) FROM (\(page)) p JOIN audit a ON a.id = p.id \(names)"
    }

    private static let select = "SELECT \(columns) FROM audit a \(names)"
    private static let columns = """
        a.id, a.at, a.event, a.actor, a.request, w.name AS website, a.user_id, u.username, a.device_id,
        a.challenge_id, a.outcome, a.proof, d.note, d.changes, d.reason, a.operation, a.writer, a.link
        """
    private static let names = """
        LEFT JOIN audit_detail d ON d.operation = a.operation LEFT JOIN website w ON w.id = a.website_id
        LEFT JOIN user u ON u.id = a.user_id
        """

    /// The conditions of a filter besides the user and the times.
    private static let fits = """
        (:website IS NULL OR a.website_id = :website) AND (:device IS NULL OR a.device_id = :device)
        AND (:challenge IS NULL OR a.challenge_id = :challenge) AND (:request IS NULL OR a.request = :request)
        AND (:actor IS NULL OR substr(a.actor, 1, \(length(":actor"))) = :actor)
        AND (:event IS NULL OR a.event = :event
            OR (substr(:event, \(length(":event")), 1) = '.' AND substr(a.event, 1, \(length(":event"))) = :event))
        """

    /// The number of characters: `length` counts bytes in MariaDB.
    private static func length(_ text: String) -> String { "/*M! char_length(\(text)) */ /*S! length(\(text)) */" }
}
