import Domain
import Relay

/// The part of a script that begins a text message: whether there is room for one more, and its count. The message is
/// counted when it is written down, not when it leaves, so that no number of relays can send more than there is room for.
enum SMSBudget {
    /// Before the statement that asks for `room`: the tallies are there, and nobody else counts until this script ends. A
    /// statement of its own: one that waited for the lock itself may have counted before it waited.
    static func hold(_ charge: SMSCharge) -> BoundStatement {
        BoundStatement(holdTallies, values: charge.tallies.flatMap { [.text($0.period), .text($0.scope)] })
    }

    /// A condition: none of the tallies is full. Its values are those of `values`.
    static let room =
        "(NOT EXISTS (SELECT 1 FROM text_tally WHERE "
        + Array(repeating: "(text_tally.period = ? AND text_tally.scope = ? AND text_tally.messages >= ?)", count: 5)
        .joined(separator: " OR ") + "))"

    static func values(_ charge: SMSCharge) -> [SQLValue] {
        charge.tallies.flatMap { tally -> [SQLValue] in
            [.text(tally.period), .text(tally.scope), .integer(tally.limit.map(Int64.init) ?? .max)]
        }
    }

    /// After the message's row was written, if it was.
    static func count(_ charge: SMSCharge, message: OutboxEntryID) -> BoundStatement {
        BoundStatement(
            addMessage, values: charge.tallies.flatMap { [.text($0.period), .text($0.scope)] } + [.id(message)])
    }
}

private let holdTallies = Statement(
    "INSERT INTO text_tally (period, scope, messages, sent, parts, cost) VALUES "
        + Array(repeating: "(?, ?, 0, 0, 0, 0)", count: 5).joined(separator: ", ")
        + " /*M! ON DUPLICATE KEY UPDATE messages = text_tally.messages */ /*S! ON CONFLICT DO NOTHING */")

private let addMessage = Statement(
    "UPDATE text_tally SET messages = messages + 1 WHERE ("
        + Array(repeating: "(period = ? AND scope = ?)", count: 5).joined(separator: " OR ")
        + ") AND EXISTS (SELECT 1 FROM outbox o WHERE o.id = ?)")
