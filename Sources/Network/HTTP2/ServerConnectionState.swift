import World

/// The progress of a drain.
enum DrainState: Equatable {
    /// Requests are still served. Either the client has open streams, or a PING has to show whether
    /// it has sent one.
    case serving
    /// The shutdown notice and a PING were sent. Streams that were on their way are still served.
    case noticed
    /// The last GOAWAY was sent. The open streams may end, and then the connection ends.
    case final
}

/// The state machine of a server's connection, from accept to close. It does no I/O and has no
/// timer and no clock: a function is called for each event, changes the state, and returns the
/// action that `ServerConnection` must take.
///
/// The usual sequence is:
///
///     accepted → awaitingProxyHeader → awaitingFirstByte → handshakeQueued → handshake
///              → opening → open → draining → lingering → ended
///
/// Only connections of a balancer wait for a PROXY header. A connection without TLS, which exists
/// only in tests, goes from `awaitingFirstByte` to `opening`. An error of the client, its abuse
/// budget or an overdue client leads from `opening`, `open` or `draining` to `closing`, and from
/// there to `lingering`. A controller can freeze a connection in every state before `lingering`.
/// Every state can lead to `ended`.
///
/// Invariants: a session of libnghttp2 exists from `opening` to `closing`, and in no other state.
/// The bound on the streams that are handled never rises. A drain goes only forward, and begins
/// only once. After `lingering`, `frozen` or `ended` nothing is read or written.
///
/// Risk: a timer or a callback may report an event late, for example a drain step of a connection
/// that is closing by now. So an event that does not fit the state changes nothing, and returns no
/// action. Tests: `ServerConnectionStateTests`; with real
/// connections `ServerTests`, `DrainTests`, `RevokedConnectionTests`, `ConnectionControllerTests`.
///
/// The session is a type parameter, so that the transitions are tested without libnghttp2.
enum ServerConnectionState<HTTPSession> {
    /// Accepted, and not yet started.
    case accepted
    case awaitingProxyHeader
    /// No byte of the handshake has come.
    case awaitingFirstByte
    /// The handshake waits for its turn among the handshakes of the loop.
    case handshakeQueued(since: Instant)
    case handshake
    /// TLS is complete. A controller may submit frames that leave before our SETTINGS.
    case opening(HTTPSession, lastStream: Int32)
    /// Our SETTINGS were submitted. Streams up to `lastStream` are handled. It is `Int32.max` until
    /// a GOAWAY refuses streams.
    case open(HTTPSession, lastStream: Int32)
    /// The connection ends without losing a request (`ServerConnectionDrain.swift`).
    case draining(HTTPSession, DrainState, lastStream: Int32)
    /// A GOAWAY with an error code was submitted. Received bytes are ignored.
    case closing(HTTPSession)
    /// Everything was sent. The transport waits until the peer has read it.
    case lingering
    /// The socket stays open, but is neither read nor written.
    case frozen
    case ended

    /// The action that an event of a drain requires.
    enum DrainAction {
        case none
        /// End the connection at once, because it cannot carry a request.
        case end
        /// Complete the held requests. If `ping` is set, no stream is open: send a PING, which
        /// shows whether the client has sent a request.
        case serve(HTTPSession, ping: Bool)
        /// Send the shutdown notice and a PING.
        case sendNotice(HTTPSession)
        /// Send a GOAWAY that refuses the streams above `lastStream`.
        case sendGoAway(HTTPSession, lastStream: Int32)
    }

    // MARK: Queries

    /// The session; nil before TLS is complete, and after everything was sent.
    var session: HTTPSession? {
        switch self {
        case .opening(let session, _), .open(let session, _), .draining(let session, _, _), .closing(let session):
            session
        case .accepted, .awaitingProxyHeader, .awaitingFirstByte, .handshakeQueued, .handshake, .lingering, .frozen,
            .ended:
            nil
        }
    }

    var hasSession: Bool {
        switch self {
        case .opening, .open, .draining, .closing: true
        default: false
        }
    }

    /// The session while received bytes are processed.
    var receivingSession: HTTPSession? {
        switch self {
        case .opening(let session, _), .open(let session, _), .draining(let session, _, _): session
        default: nil
        }
    }

    /// Whether the transport may still read or write.
    var isLive: Bool {
        switch self {
        case .lingering, .frozen, .ended: false
        default: true
        }
    }

    /// Whether the client is on its way to a session.
    var isConnecting: Bool {
        switch self {
        case .awaitingProxyHeader, .awaitingFirstByte, .handshakeQueued, .handshake: true
        default: false
        }
    }

    var isAwaitingProxyHeader: Bool { if case .awaitingProxyHeader = self { true } else { false } }

    var isDraining: Bool { if case .draining = self { true } else { false } }

    /// Whether a request on this stream is handled.
    func handles(_ stream: Int32) -> Bool {
        switch self {
        case .opening(_, let last), .open(_, let last), .draining(_, _, let last): stream <= last
        default: false
        }
    }

    /// Whether the client may send frames on streams that are not open, because we ignore or reset
    /// streams that it has opened.
    var ignoresStreams: Bool {
        switch self {
        case .opening(_, let last), .open(_, let last): last < .max
        case .draining: true
        default: false
        }
    }

    /// Whether the connection may end when its session has nothing to send. Before our SETTINGS are
    /// submitted it may not.
    var mayLinger: Bool {
        switch self {
        case .open, .draining, .closing: true
        default: false
        }
    }

    // MARK: Until the connection is open

    mutating func start(awaitsProxyHeader: Bool) {
        guard case .accepted = self else { return }
        self = awaitsProxyHeader ? .awaitingProxyHeader : .awaitingFirstByte
    }

    mutating func proxyHeaderRead() {
        guard case .awaitingProxyHeader = self else { return }
        self = .awaitingFirstByte
    }

    mutating func firstByteArrived(at now: Instant) {
        guard case .awaitingFirstByte = self else { return }
        self = .handshakeQueued(since: now)
    }

    /// Records that the turn of the handshake has come.
    /// - Returns: how long the handshake waited for its turn; nil if it was not waiting.
    mutating func handshakeBegan(at now: Instant) -> Duration? {
        guard case .handshakeQueued(let since) = self else { return nil }
        self = .handshake
        return now - since
    }

    /// Records that TLS is complete. The state keeps the session until everything was sent.
    mutating func handshakeCompleted(with session: HTTPSession) {
        switch self {
        case .awaitingFirstByte, .handshake: self = .opening(session, lastStream: .max)
        default: break
        }
    }

    /// Records that the controller has seen the connection.
    /// - Returns: whether to submit our SETTINGS; false if the controller has ended the connection.
    mutating func finishOpening() -> Bool {
        guard case .opening(let session, let lastStream) = self else { return false }
        self = .open(session, lastStream: lastStream)
        return true
    }

    // MARK: GOAWAY and drain

    /// Lowers the bound on the streams that are handled.
    /// - Returns: the session, and the bound for its GOAWAY; nil if no GOAWAY can be sent.
    mutating func goAway(lastStream: Int32) -> (session: HTTPSession, lastStream: Int32)? {
        switch self {
        case .opening(let session, let before):
            self = .opening(session, lastStream: min(before, lastStream))
            return (session, min(before, lastStream))
        case .open(let session, let before):
            self = .open(session, lastStream: min(before, lastStream))
            return (session, min(before, lastStream))
        case .draining(let session, let drain, let before):
            self = .draining(session, drain, lastStream: min(before, lastStream))
            return (session, min(before, lastStream))
        default: return nil
        }
    }

    /// Begins the drain.
    mutating func beginDrain(hasStreams: Bool) -> DrainAction {
        switch self {
        case .accepted, .awaitingProxyHeader, .awaitingFirstByte, .handshakeQueued, .handshake, .opening, .frozen:
            return .end
        case .open(let session, let lastStream):
            self = .draining(session, .serving, lastStream: lastStream)
            return .serve(session, ping: !hasStreams)
        case .draining, .closing, .lingering, .ended: return .none
        }
    }

    /// Continues the drain when the last open stream has ended.
    mutating func lastStreamEnded() -> DrainAction {
        guard case .draining(let session, .serving, let lastStream) = self else { return .none }
        self = .draining(session, .noticed, lastStream: lastStream)
        return .sendNotice(session)
    }

    /// Continues the drain when the client has acknowledged its PING.
    /// - Parameter lastProcessed: the last stream that was processed or is being processed.
    mutating func drainPingAcknowledged(hasStreams: Bool, lastProcessed: Int32) -> DrainAction {
        switch self {
        case .draining(_, .serving, _): hasStreams ? .none : lastStreamEnded()
        case .draining(_, .noticed, _): refuseStreams(above: lastProcessed)
        default: .none
        }
    }

    /// Continues the drain when the time for `step` is over.
    mutating func drainStepElapsed(_ step: DrainState, hasStreams: Bool, lastProcessed: Int32) -> DrainAction {
        guard case .draining(_, step, _) = self else { return .none }
        switch step {
        case .serving: return hasStreams ? lastStreamEnded() : refuseStreams(above: lastProcessed)
        case .noticed: return refuseStreams(above: lastProcessed)
        case .final: return .none
        }
    }

    /// Begins the last part of the drain, without a notice. A revoked connection begins here.
    mutating func refuseStreams(above lastProcessed: Int32) -> DrainAction {
        switch self {
        case .open(let session, let before), .draining(let session, .serving, let before),
            .draining(let session, .noticed, let before):
            let lastStream = min(before, lastProcessed)
            self = .draining(session, .final, lastStream: lastStream)
            return .sendGoAway(session, lastStream: lastStream)
        default: return .none
        }
    }

    // MARK: The end

    /// Begins the end after an error of the client, or because the client is overdue.
    /// - Returns: the session, which must send a GOAWAY with an error code; nil if the connection
    ///   has no session or is closing already.
    mutating func close() -> HTTPSession? {
        guard let session = receivingSession else { return nil }
        self = .closing(session)
        return session
    }

    /// Records that everything was sent.
    mutating func linger() {
        guard mayLinger else { return }
        self = .lingering
    }

    /// Stops reading and writing, and drops the session.
    /// - Returns: whether the transport must be frozen.
    mutating func freeze() -> Bool {
        guard isLive else { return false }
        self = .frozen
        return true
    }

    mutating func end() { self = .ended }
}

extension ServerConnectionState: Equatable where HTTPSession: Equatable {}
extension ServerConnectionState.DrainAction: Equatable where HTTPSession: Equatable {}
