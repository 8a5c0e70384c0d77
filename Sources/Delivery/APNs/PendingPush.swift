import DeliveryOutcomes
import EventLoop
import World

/// One push on its way to its outcome.
final class PendingPush {
    /// A stream that the service has certainly not worked on is sent again so often.
    static let refusalLimit = 3

    let push: APNsNotification
    let since: Instant
    let end: Instant
    /// Whether `end` is the push's own, and not only as long as we are ready to wait.
    let expiresThen: Bool
    private var completion: ((PushOutcome) -> Void)?
    var timer: TimerID?

    /// Where it waits, or was sent from.
    var pool: APNsPool?
    /// That carries it now, and under which number.
    var connection: APNsConnection?
    var stream: Int32 = 0
    var sentAt: Instant
    /// How often the service had said by then what it allows.
    var settings = 0
    /// The provider token that it was sent with.
    var bearer: String?
    /// Whose circuit has let it in to try.
    var triedFor: APNsIdentity?
    /// How often the service has certainly not worked on it.
    var refusals = 0
    /// Answers that have already made us repeat it.
    var repeatedFor: Set<APNsAnswer.Meaning> = []

    init(
        _ push: APNsNotification, since: Instant, end: Instant, expiresThen: Bool,
        completion: @escaping (PushOutcome) -> Void
    ) {
        self.push = push
        self.since = since
        self.end = end
        self.expiresThen = expiresThen
        self.completion = completion
        sentAt = since
    }

    var isSettled: Bool { completion == nil }

    /// Once; there is nothing more to do for it then.
    func settle(_ outcome: PushOutcome, on loop: EventLoop) {
        guard let completion else { return }
        self.completion = nil
        if let timer { loop.cancel(timer) }
        timer = nil
        pool = nil
        connection = nil
        completion(outcome)
    }
}
