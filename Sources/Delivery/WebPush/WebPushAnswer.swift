import Curl
import DeliveryOutcomes
import HTTP
import World

/// The translation of a push service's answer, or of its absence, into the common delivery
/// outcomes.
enum WebPushAnswer {
    /// Returns the outcome for a status and the header fields of the answer.
    static func outcome(_ status: Int, _ fields: Fields, sentAt: Timestamp, now: Timestamp) -> DeliveryOutcome {
        let text = "\(status)"
        switch status {
        case 200, 201, 202, 204: return .accepted(by: nil)
        case 404, 410: return .unregistered(since: sentAt, reason: text)
        case 429: return .retry(after: pause(status, fields, now), reason: text)
        case 500...: return .unavailable(after: pause(status, fields, now), reason: text)
        case 300..<400: return .declined("\(status): redirects are not followed")
        // Users choose the services and thus control the answers, so none causes an alarm. This
        // includes 401 and 403, which also mean that the subscription was made for another key.
        default: return .declined(text)
        }
    }

    /// Returns the pause that the answer asks for, or the usual one, between 1 and 600 seconds.
    private static func pause(_ status: Int, _ fields: Fields, _ now: Timestamp) -> Duration {
        let usual = Duration.seconds(status == 429 ? 20 : 5)
        let asked = fields["retry-after"].flatMap { RetryAfter.wait($0, at: now) }
        return min(max(asked ?? usual, .seconds(1)), .seconds(600))
    }

    static func outcome(_ failure: TransferFailure, sentAt: Timestamp, now: Timestamp) -> DeliveryOutcome {
        // The head of the answer is enough, even if the rest did not arrive.
        if let status = failure.status { return outcome(status, failure.fields, sentAt: sentAt, now: now) }
        if failure.mayHaveArrived { return .ambiguous("no answer") }
        switch failure.cause {
        case .refusedAddress, .untrusted: return .declined(unreached)
        case .malformed, .insecure: return .misconfigured(.message, reason: failure.reason)
        case .busy: return .retry(after: .seconds(1), reason: "busy")
        case .unknownHost, .unreachable, .deadline, .cancelled, .tooLarge, .broken:
            return .unavailable(after: .seconds(5), reason: unreached)
        }
    }

    /// The reason for an unreached service. The website reads it, and perhaps the user, who chose
    /// the address. It must therefore reveal nothing about the relay's network.
    private static let unreached = "not reached"
}
