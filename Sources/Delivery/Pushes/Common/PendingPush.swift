import DeliveryOutcomes
import EventLoop
import World

/// A push from `send` to its outcome, with the state of its attempts.
final class PendingPush {
    /// The number of times that a push is sent again after the service refused its stream
    /// unprocessed.
    static let refusalLimit = 3

    let push: any PushMessage
    let since: Instant
    let end: Instant
    /// Whether `end` is the push's own expiry rather than the sender's deadline.
    let expiresThen: Bool
    private var completion: ((DeliveryOutcome) -> Void)?
    var timer: TimerID?

    /// The pool in which it waits, or from which it was sent.
    var pool: PushPool?
    /// The connection that carries it now, and below the number of its stream.
    var connection: PushConnection?
    var stream: Int32 = 0
    var sentAt: Instant
    /// The SETTINGS generation of the connection when this push was sent.
    var settings = 0
    /// The token with which it was sent.
    var bearer: String?
    /// The identity whose circuit breaker admitted this push as its trial.
    var triedFor: PushIdentity?
    /// The number of times that the service refused it unprocessed.
    var refusals = 0
    /// The kinds of answer that have already caused a repetition.
    var repeatedFor: Set<AnswerMeaning> = []

    init(
        _ push: any PushMessage, since: Instant, end: Instant, expiresThen: Bool,
        completion: @escaping (DeliveryOutcome) -> Void
    ) {
        self.push = push
        self.since = since
        self.end = end
        self.expiresThen = expiresThen
        self.completion = completion
        sentAt = since
    }

    var isSettled: Bool { completion == nil }

    /// Reports the outcome. Only the first call has an effect.
    func settle(_ outcome: DeliveryOutcome, on loop: EventLoop) {
        guard let completion else { return }
        self.completion = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        pool = nil
        connection = nil
        completion(outcome)
    }
}
