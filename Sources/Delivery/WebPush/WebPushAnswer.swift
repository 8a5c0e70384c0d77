import Curl
import DeliveryOutcomes
import HTTP
import World

/// What a push service said, or that it said nothing, in the words that all push services share.
enum WebPushAnswer {
    /// Of this status, and of what stands in the answer's fields.
    static func outcome(_ status: Int, _ fields: Fields, sentAt: Timestamp, now: Timestamp) -> PushOutcome {
        let text = "\(status)"
        switch status {
        case 200, 201, 202, 204: return .accepted
        case 404, 410: return .tokenDead(since: sentAt, reason: text)
        case 429, 500...: return .retryAfter(pause(status, fields, now), reason: text)
        case 300..<400: return .declined("\(status), and redirects are not followed")
        // Users write their services' answers, so none of them is an alarm: not even 401 and 403, which are also said of a
        // subscription that was made for another key.
        default: return .declined(text)
        }
    }

    /// As the answer asks, within what a challenge can bear.
    private static func pause(_ status: Int, _ fields: Fields, _ now: Timestamp) -> Duration {
        let usual = Duration.seconds(status == 429 ? 20 : 5)
        let asked = fields["retry-after"].flatMap { RetryAfter.wait($0, at: now) }
        return min(max(asked ?? usual, .seconds(1)), .seconds(600))
    }

    static func outcome(_ failure: TransferFailure, sentAt: Timestamp, now: Timestamp) -> PushOutcome {
        // What an answer begins with is enough, whatever became of the rest.
        if let status = failure.status { return outcome(status, failure.fields, sentAt: sentAt, now: now) }
        if failure.mayHaveArrived { return .ambiguous("no answer") }
        switch failure.cause {
        case .refusedAddress, .untrusted: return .declined(unreached)
        case .malformed, .insecure: return .badRequest(failure.reason)
        case .busy: return .retryAfter(.seconds(1), reason: "busy")
        case .unknownHost, .unreachable, .deadline, .cancelled, .tooLarge, .broken:
            return .retryAfter(.seconds(5), reason: unreached)
        }
    }

    /// The website reads this, and perhaps the user, who chose the address: neither is told what our network is like.
    private static let unreached = "not reached"
}
