import World

/// The rules for when the client repeats a call.
///
/// Invariant: a repetition never has a second effect. A POST keeps its idempotency key for all
/// attempts; a deleted object stays deleted; and a PATCH states the wanted result. Two kinds of
/// PATCH are different: a new address causes a code to be sent, and an approval is used up. The
/// client repeats these only if the relay has certainly not processed them. Tested in
/// `RetryPolicyTests.swift`.
///
///     let impatient = RetryPolicy(longestPause: .seconds(1), timeout: .seconds(3))
public struct RetryPolicy: Sendable {
    /// The pause after the first failure. Each further pause is twice as long, up to
    /// `longestPause`.
    public var firstPause: Duration
    /// The longest pause. If the relay requests a longer one, the client does not retry, because a
    /// person is waiting.
    public var longestPause: Duration
    /// The time limit for the retries of one call. No attempt starts later than this after the
    /// first failure: a request that is held may be lost after a minute.
    public var timeout: Duration
    /// Whether a call is repeated after 429. The pause holds up the visitor's request.
    public var repeatsLimited: Bool

    /// Creates a policy.
    public init(
        firstPause: Duration = .milliseconds(200), longestPause: Duration = .seconds(5),
        timeout: Duration = .seconds(15), repeatsLimited: Bool = true
    ) {
        self.firstPause = firstPause
        self.longestPause = longestPause
        self.timeout = timeout
        self.repeatsLimited = repeatsLimited
    }

    /// The policy of `TwoefayRelay`: three seconds, and no pause for a limit.
    static let website = RetryPolicy(
        firstPause: .milliseconds(100), longestPause: .seconds(3), timeout: .seconds(3), repeatsLimited: false)

    /// A policy that never retries.
    public static let never = RetryPolicy(timeout: .zero)

    /// Whether another attempt may have a different result.
    func isWorthwhile(after fault: CallFault) -> Bool {
        switch fault {
        case .unreached, .unanswered: true
        case .refused(let problem):
            switch problem.status {
            case 429: repeatsLimited
            case 502, 503, 504: true
            // An earlier attempt is still being processed. Other conflicts have no `Retry-After`.
            case 409: problem.retryAfter != nil
            default: false
            }
        case .odd, .cancelled, .unable: false
        }
    }

    /// Returns the pause before the next attempt; nil if there is none.
    func pause(
        after fault: CallFault, of call: RelayCall, failures: Int, spent: Duration, _ randomness: any Randomness
    ) -> Duration? {
        guard isWorthwhile(after: fault), call.isRepeatable || !fault.isPerhapsDone else { return nil }
        let wish = fault.problem?.retryAfter ?? .zero
        guard wish <= longestPause else { return nil }
        let base = min(firstPause * (1 << min(failures - 1, 20)), longestPause)
        // Jitter of up to half of the pause: clients that failed together do not retry together.
        let half = UInt64(max(0, base.wholeMilliseconds / 2))
        let pause = max(wish, base) + .milliseconds(Int64(randomness.number(below: half + 1)))
        return spent + pause <= timeout ? pause : nil
    }
}

extension CallFault {
    /// Whether the relay may have processed the call. A proxy that answers 502 or 504 has itself
    /// received no answer from the relay.
    var isPerhapsDone: Bool {
        switch self {
        case .unanswered: true
        case .refused(let problem): [502, 504].contains(problem.status)
        case .unreached, .odd, .cancelled, .unable: false
        }
    }
}
