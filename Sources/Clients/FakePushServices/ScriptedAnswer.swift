import HTTP
import HTTP2
import World

/// The answer to a valid request.
///
/// Some answers accept the push but send no confirmation. Its sender cannot know the outcome;
/// `Deliveries` counts the push as unanswered.
public indirect enum ScriptedAnswer: Sendable {
    case accept
    /// Refuses the push. With status 410, `timestamp` is the time since when the token is invalid.
    case refuse(RefusalReason, timestamp: Timestamp? = nil, retryAfter: Duration? = nil)
    /// Sends a response that Apple would not send.
    case respond(Response)
    /// Sends nothing; the stream stays open.
    case silence
    /// Accepts the push, but sends no answer; the stream stays open.
    case lost
    /// Sends RST_STREAM. The code REFUSED_STREAM assures the sender that the push was not
    /// processed.
    case reset(ErrorCode, accepts: Bool = false)
    /// Sends GOAWAY that declares `replays` streams unprocessed: this one, and unanswered streams
    /// directly before it. All other streams are answered. With 0, this push is accepted too.
    case goAway(replays: Int = 0)
    /// Resets the TCP connection.
    case cut(accepts: Bool = false)
    /// Freezes the connection: it stays open, but nothing is read or written, not even a PING
    /// answer.
    case freeze(accepts: Bool = false)
    /// Processes the push with the other answer after a delay, unless its stream was closed before.
    case after(Duration, ScriptedAnswer)
}
