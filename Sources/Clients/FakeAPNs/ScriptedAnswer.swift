import HTTP
import HTTP2
import World

/// What a request that is right in itself gets. Where a push is accepted and its sender does not hear of it, it cannot
/// know: that is what `Deliveries` calls unanswered.
public indirect enum ScriptedAnswer: Sendable {
    case accept
    /// With 410, `timestamp` says since when the token is dead.
    case refuse(AppleReason, timestamp: Timestamp? = nil, retryAfter: Duration? = nil)
    /// Something that Apple would not say.
    case respond(Response)
    /// Nothing at all; the stream stays open.
    case silence
    /// Accepted, and the answer is lost; the stream stays open.
    case lost
    /// RST_STREAM. With REFUSED_STREAM a sender may be sure that nothing was done with it.
    case reset(ErrorCode, accepts: Bool = false)
    /// GOAWAY. So many streams under way were not processed: this one, and before it those whose answers are still on their
    /// way, as far as they follow one another. The others are answered; with 0 all are.
    case goAway(replays: Int = 0)
    /// The connection is reset, without a word.
    case cut(accepts: Bool = false)
    /// The connection stands, and from here on nothing is read or written: not even a PING is answered.
    case freeze(accepts: Bool = false)
    /// Only then is anything done with the push, if its stream still stands.
    case after(Duration, ScriptedAnswer)
}
