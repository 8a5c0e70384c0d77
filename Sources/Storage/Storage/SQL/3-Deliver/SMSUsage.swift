import Domain
import GSM
import Relay
import World

extension Store: SMSUsageStore {
    public func addUsage(_ sent: SMSUsage) async throws(StoreFailure) {
        let (day, month) = (UsageDay(sent.at).text, UsageDay(sent.at).month)
        var tallies = [(period: day, scope: ""), (day, sent.prefix.text)]
        if let website = sent.website {
            let scope = SMSCharge.scope(website)
            tallies += [(day, scope), (month, scope)]
        }
        // The operation is the message's own id. A message that is sent again counts again, with an
        // audit row that a retry finds.
        let script = Script(
            "note text", operation: sent.message.bytes,
            writes: [
                auditSent(
                    operation: .id(sent.message), now: .timestamp(sent.at), prefix: .text(sent.prefix.text))
            ]
                + tallies.map { period, scope in
                    addSent(
                        period: .text(period), scope: .text(scope), segments: .integer(Int64(sent.parts)),
                        cost: .integer(sent.cost))
                })
        try await run(Query(script: script) { _ in () })
    }
}

private let auditSent = Statement.audit(
    """
    INSERT INTO audit (operation, at, event, outcome) VALUES (:operation, :now, 'sms.accounted', :prefix)
    \(Audit.once)
    """)

private let addSent = Statement(
    """
    INSERT INTO sms_usage (period, scope, messages, sent, segments, cost) VALUES (:period, :scope, 0, 1, :segments, :cost)
    /*M! ON DUPLICATE KEY UPDATE sent = sms_usage.sent + 1, segments = sms_usage.segments + VALUES(segments),
    cost = sms_usage.cost + VALUES(cost) */
    /*S! ON CONFLICT DO UPDATE SET sent = sent + 1, segments = segments + excluded.segments, cost = cost + excluded.cost */
    """)

/// The text messages of one day, for operators.
public struct SMSUsageReport: Sendable, Equatable {
    public struct Line: Sendable, Equatable {
        public let prefix: String
        /// The messages that were begun. `sent` counts those that a gateway accepted.
        public let messages: Int64
        public let sent: Int64
        public let parts: Int64
        public let cost: Int64
    }

    public let total: Line
    /// The messages by number prefix, the most frequent first.
    public let prefixes: [Line]

    public static func query(of day: Timestamp) -> Query<SMSUsageReport> {
        Query(script: Script("texts", reads: [readDay(day: .text(UsageDay(day).text))])) {
            rows throws(StoreFailure) in
            var lines: [Line] = []
            for row in rows[0] {
                lines.append(
                    Line(
                        prefix: try row.text("scope"), messages: try row.integer("messages"),
                        sent: try row.integer("sent"), parts: try row.integer("segments"),
                        cost: try row.integer("cost")))
            }
            let total = lines.first { $0.prefix.isEmpty } ?? Line(prefix: "", messages: 0, sent: 0, parts: 0, cost: 0)
            return SMSUsageReport(total: total, prefixes: lines.filter { !$0.prefix.isEmpty })
        }
    }
}

/// Reads a day's tallies by number prefix. The condition on the length excludes tallies of users,
/// because a user's id is longer than a prefix.
private let readDay = Statement(
    """
    SELECT scope, messages, sent, segments, cost FROM sms_usage WHERE period = :day AND length(scope) < 9
    ORDER BY messages DESC, scope
    """)
