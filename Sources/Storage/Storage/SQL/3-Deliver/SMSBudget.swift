import Domain
import Relay

/// The statements of a script that begins a text message: they check the limits and count the
/// message. The message is counted when its outbox entry is written, not when it is sent. Therefore
/// even many relays cannot send more than the limits allow.
///
/// Each statement has a place for every tally of a charge: the lists `period`, `scope` and `limit`.
/// The last two places are those of the website, which has a limit of segments. A message that is
/// begun counts as one segment until a gateway has accepted it.
enum SMSBudget {
    private static let places = 1...SMSCharge.common
    private static let websitePlaces = SMSCharge.common + 1...SMSCharge.common + 2
    private static let allPlaces = places.lowerBound...websitePlaces.upperBound

    /// Creates and locks the tallies, so that no other script counts until this one ends. It must
    /// precede the statement with `hasRoom`. It is a separate statement, because a statement that
    /// waits for the lock itself may count before it waits.
    static func hold(_ charge: SMSCharge) -> BoundStatement {
        (charge.tallies.count > SMSCharge.common ? holdAllTallies : holdTallies)
            .bound([:], lists: ["period": periods(charge), "scope": scopes(charge)])
    }

    private static let holdTallies = Statement(hold(places))
    private static let holdAllTallies = Statement(hold(allPlaces))

    private static func hold(_ places: ClosedRange<Int>) -> String {
        """
        INSERT INTO sms_usage (period, scope, messages, sent, segments, cost)
        VALUES \(places.map { "(:period\($0), :scope\($0), 0, 0, 0, 0)" }.joined(separator: ", "))
        /*M! ON DUPLICATE KEY UPDATE messages = sms_usage.messages */ /*S! ON CONFLICT DO NOTHING */
        """
    }

    /// The condition that no tally is full. `lists` returns its values.
    static let hasRoom =
        "NOT EXISTS (SELECT 1 FROM sms_usage WHERE "
        + places.map {
            "(sms_usage.period = :period\($0) AND sms_usage.scope = :scope\($0) AND sms_usage.messages >= :limit\($0))"
        }.joined(separator: " OR ") + " OR \(fullOfWebsite))"

    /// The condition that a tally of the website is full.
    static let isWebsiteFull = "EXISTS (SELECT 1 FROM sms_usage WHERE \(fullOfWebsite))"

    private static let fullOfWebsite =
        websitePlaces.map {
            "(sms_usage.period = :period\($0) AND sms_usage.scope = :scope\($0) "
                + "AND sms_usage.messages + sms_usage.segments - sms_usage.sent >= :limit\($0))"
        }.joined(separator: " OR ")

    static func lists(_ charge: SMSCharge) -> KeyValuePairs<SQLName, [SQLValue]> {
        [
            "period": periods(charge), "scope": scopes(charge),
            "limit": charge.tallies.map { .integer($0.limit.map(Int64.init) ?? .max) },
        ]
    }

    private static func periods(_ charge: SMSCharge) -> [SQLValue] { charge.tallies.map { .text($0.period) } }
    private static func scopes(_ charge: SMSCharge) -> [SQLValue] { charge.tallies.map { .text($0.scope) } }

    /// Counts the message if its outbox entry was written.
    static func count(_ charge: SMSCharge, message: OutboxEntryID) -> BoundStatement {
        addMessage.bound(
            ["message": .id(message)], lists: ["period": periods(charge), "scope": scopes(charge)])
    }

    private static let addMessage = Statement(
        """
        UPDATE sms_usage SET messages = messages + 1
        WHERE (\(allPlaces.map { "(period = :period\($0) AND scope = :scope\($0))" }.joined(separator: " OR ")))
        AND EXISTS (SELECT 1 FROM outbox o WHERE o.id = :message)
        """)
}
