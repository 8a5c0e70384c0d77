import Domain
import Relay

/// The statements of a script that begins a text message: they check the limits and count the
/// message. The message is counted when its outbox entry is written, not when it is sent. Therefore
/// even many relays cannot send more than the limits allow.
enum SMSBudget {
    /// Creates and locks the tallies, so that no other script counts until this one ends. It must
    /// precede the statement with `room`. It is a separate statement, because a statement that
    /// waits for the lock itself may count before it waits.
    static func hold(_ charge: SMSCharge) -> BoundStatement {
        BoundStatement(holdTallies, values: charge.tallies.flatMap { [.text($0.period), .text($0.scope)] })
    }

    /// The condition that no tally is full. `values` returns its values.
    static let room =
        "(NOT EXISTS (SELECT 1 FROM sms_usage WHERE "
        + Array(repeating: "(sms_usage.period = ? AND sms_usage.scope = ? AND sms_usage.messages >= ?)", count: 5)
        .joined(separator: " OR ") + "))"

    static func values(_ charge: SMSCharge) -> [SQLValue] {
        charge.tallies.flatMap { tally -> [SQLValue] in
            [.text(tally.period), .text(tally.scope), .integer(tally.limit.map(Int64.init) ?? .max)]
        }
    }

    /// The condition that no tally is full. `lists` returns its values.
    static let hasRoom =
        "NOT EXISTS (SELECT 1 FROM text_tally WHERE "
        + (1...5).map {
            "(text_tally.period = :period\($0) AND text_tally.scope = :scope\($0) AND text_tally.messages >= :limit\($0))"
        }.joined(separator: " OR ") + ")"

    static func lists(_ charge: SMSCharge) -> KeyValuePairs<SQLName, [SQLValue]> {
        [
            "period": charge.tallies.map { .text($0.period) }, "scope": charge.tallies.map { .text($0.scope) },
            "limit": charge.tallies.map { .integer($0.limit.map(Int64.init) ?? .max) },
        ]
    }

    /// Counts the message if its outbox entry was written.
    static func count(_ charge: SMSCharge, message: OutboxEntryID) -> BoundStatement {
        BoundStatement(
            addMessage, values: charge.tallies.flatMap { [.text($0.period), .text($0.scope)] } + [.id(message)])
    }
}

private let holdTallies = Statement(
    "INSERT INTO sms_usage (period, scope, messages, sent, segments, cost) VALUES "
        + Array(repeating: "(?, ?, 0, 0, 0, 0)", count: 5).joined(separator: ", ")
        + " /*M! ON DUPLICATE KEY UPDATE messages = sms_usage.messages */ /*S! ON CONFLICT DO NOTHING */")

private let addMessage = Statement(
    "UPDATE sms_usage SET messages = messages + 1 WHERE ("
        + Array(repeating: "(period = ? AND scope = ?)", count: 5).joined(separator: " OR ")
        + ") AND EXISTS (SELECT 1 FROM outbox o WHERE o.id = ?)")
