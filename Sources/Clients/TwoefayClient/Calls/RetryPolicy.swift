import World

/// When a call is made again. A repetition changes nothing twice: every POST has its Idempotency-Key, and keeps it; what has
/// been deleted stays so; and a PATCH says how things are to be. One that gives a new address sends a code there, and one with
/// an approval uses it up: those are made again only where the relay has not done them for certain.
public struct RetryPolicy: Sendable {
    /// The first pause; each further one is twice as long, up to `longestPause`.
    public var firstPause: Duration
    /// A relay that asks for more patience than this is not asked again: it is a person that waits meanwhile.
    public var longestPause: Duration
    /// Of one call: no further try is made so long after the first.
    public var timeout: Duration

    public init(
        firstPause: Duration = .milliseconds(200), longestPause: Duration = .seconds(5),
        timeout: Duration = .seconds(15)
    ) {
        self.firstPause = firstPause
        self.longestPause = longestPause
        self.timeout = timeout
    }

    /// Nothing is tried again.
    public static let never = RetryPolicy(timeout: .zero)

    /// Whether another try may bring something else.
    func isWorthwhile(after fault: CallFault) -> Bool {
        switch fault {
        case .unreached, .unanswered: true
        case .refused(let problem):
            switch problem.status {
            case 429, 502, 503, 504: true
            // The same request still runs. Other conflicts name no time.
            case 409: problem.retryAfter != nil
            default: false
            }
        case .odd, .cancelled, .unable: false
        }
    }

    /// How long to pause before the next try; nil when there is none.
    func pause(
        after fault: CallFault, of call: RelayCall, failures: Int, spent: Duration, _ randomness: any Randomness
    ) -> Duration? {
        guard isWorthwhile(after: fault), call.isRepeatable || !fault.isPerhapsDone else { return nil }
        let wish = fault.problem?.retryAfter ?? .zero
        guard wish <= longestPause else { return nil }
        let base = min(firstPause * (1 << min(failures - 1, 20)), longestPause)
        // Up to half is added by chance: those who failed together do not come back together.
        let half = UInt64(max(0, base.wholeMilliseconds / 2))
        let pause = max(wish, base) + .milliseconds(Int64(randomness.number(below: half + 1)))
        return spent + pause <= timeout ? pause : nil
    }
}

extension CallFault {
    /// The relay may have done what was asked. A proxy that answers for it has waited in vain itself.
    var isPerhapsDone: Bool {
        switch self {
        case .unanswered: true
        case .refused(let problem): [502, 504].contains(problem.status)
        case .unreached, .odd, .cancelled, .unable: false
        }
    }
}
