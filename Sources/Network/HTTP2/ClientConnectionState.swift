/// The state machine of a client's connection, from `connect` to its end. It does no I/O: a
/// function is called for each event, changes the state, and returns the action that `HTTP2Client`
/// must take.
///
/// The usual sequence is:
///
///     idle → connecting → handshake → awaitingSettings → open → goingAway → closed
///
/// If an address fails before the server's SETTINGS, `handshake` and `awaitingSettings` lead back
/// to `connecting`, and another address is tried. `close` leads from every state to `closed`; if
/// there is a transport, through `closing`, in which the last GOAWAY is written.
///
/// Invariants: a transport exists from `handshake` to `closing`, and in no other state. A session
/// exists only with a transport that is up. An attempt exists until the server has sent its
/// SETTINGS, and is completed exactly once. A closed connection never opens again.
///
/// Risk: the program closes the client while the kernel connects. The socket then belongs to no
/// state, so `beginHandshake` refuses it and the caller closes it. Tests:
/// `ClientConnectionStateTests`; with real connections `ClientTests`.
///
/// Transport, session and attempt are type parameters, so that the transitions are tested without
/// sockets.
enum ClientConnectionState<Link, HTTPSession, Attempt> {
    /// `connect` was not called yet.
    case idle
    /// The name is resolved, or the kernel connects to an address.
    case connecting
    /// TCP is connected, and TLS is not complete.
    case handshake(Link, Attempt)
    /// TLS is complete. The server may still refuse our certificate.
    case awaitingSettings(Link, HTTPSession, Attempt)
    case open(Link, HTTPSession)
    /// The server sent GOAWAY, or `retire` was called. Sent requests may still be answered.
    case goingAway(Link, HTTPSession)
    /// `close` was called. The last frames are written; without a session there are none.
    case closing(Link, HTTPSession?)
    case closed

    /// The action when the transport has ended.
    enum EndAction {
        case none
        /// Report the failure to the attempt. Another address may be tried.
        case fail(Attempt)
        /// Fail all requests.
        case tearDown
    }

    /// The action when a GOAWAY has arrived.
    enum GoAwayAction {
        case none
        /// End the transport: this connection will not carry any request.
        case end(Link)
        /// Fail the waiting requests. The sent ones may still be answered.
        case failWaiting
    }

    /// The action when no further requests shall be sent.
    enum RetireAction {
        case none
        /// Close the connection, because it carries no request yet.
        case close
        case failWaiting
    }

    /// The action that closes the connection.
    enum CloseAction {
        case none
        /// Fail all requests; there is no transport.
        case tearDown
        /// Send the last frames if there is a session, and end the transport. Then report the
        /// failure to the attempt.
        case end(Link, HTTPSession?, Attempt?)
    }

    // MARK: Queries

    /// The state that the program sees.
    var reported: ClientState {
        switch self {
        case .idle, .connecting, .handshake, .awaitingSettings: .connecting
        case .open: .open
        case .goingAway: .goingAway
        case .closing, .closed: .closed
        }
    }

    var link: Link? {
        switch self {
        case .handshake(let link, _), .awaitingSettings(let link, _, _), .open(let link, _),
            .goingAway(let link, _), .closing(let link, _):
            link
        case .idle, .connecting, .closed: nil
        }
    }

    var session: HTTPSession? {
        switch self {
        case .awaitingSettings(_, let session, _), .open(_, let session), .goingAway(_, let session): session
        case .closing(_, let session): session
        case .idle, .connecting, .handshake, .closed: nil
        }
    }

    /// The session after the server has sent its SETTINGS.
    var establishedSession: HTTPSession? {
        switch self {
        case .open(_, let session), .goingAway(_, let session): session
        default: nil
        }
    }

    // MARK: Until the connection is open

    /// Records that `connect` was called.
    /// - Returns: false if it was called before.
    mutating func connect() -> Bool {
        switch self {
        case .idle: self = .connecting
        // The program closed the client before it connected.
        case .closed: break
        default: return false
        }
        return true
    }

    /// Records that TCP is connected.
    /// - Returns: false if the connection was closed while the kernel connected.
    mutating func beginHandshake(_ link: Link, _ attempt: Attempt) -> Bool {
        guard case .connecting = self else { return false }
        self = .handshake(link, attempt)
        return true
    }

    mutating func handshakeCompleted(with session: HTTPSession) {
        guard case .handshake(let link, let attempt) = self else { return }
        self = .awaitingSettings(link, session, attempt)
    }

    /// Records that SETTINGS of the server have arrived.
    /// - Returns: the attempt that has succeeded; nil if these are not the first SETTINGS.
    mutating func settingsArrived() -> Attempt? {
        guard case .awaitingSettings(let link, let session, let attempt) = self else { return nil }
        self = .open(link, session)
        return attempt
    }

    // MARK: The end

    mutating func goAwayArrived() -> GoAwayAction {
        switch self {
        case .awaitingSettings(let link, _, _): return .end(link)
        case .open(let link, let session):
            self = .goingAway(link, session)
            return .failWaiting
        default: return .none
        }
    }

    mutating func retire() -> RetireAction {
        switch self {
        case .idle, .connecting, .handshake, .awaitingSettings: return .close
        case .open(let link, let session):
            self = .goingAway(link, session)
            return .failWaiting
        case .goingAway, .closing, .closed: return .none
        }
    }

    mutating func close() -> CloseAction {
        switch self {
        case .idle, .connecting:
            self = .closed
            return .tearDown
        case .handshake(let link, let attempt):
            self = .closing(link, nil)
            return .end(link, nil, attempt)
        case .awaitingSettings(let link, let session, let attempt):
            self = .closing(link, session)
            return .end(link, session, attempt)
        case .open(let link, let session), .goingAway(let link, let session):
            self = .closing(link, session)
            return .end(link, session, nil)
        case .closing, .closed: return .none
        }
    }

    mutating func transportEnded() -> EndAction {
        switch self {
        case .handshake(_, let attempt), .awaitingSettings(_, _, let attempt):
            self = .connecting
            return .fail(attempt)
        case .open, .goingAway, .closing:
            self = .closed
            return .tearDown
        case .idle, .connecting, .closed: return .none
        }
    }
}

extension ClientConnectionState: Equatable where Link: Equatable, HTTPSession: Equatable, Attempt: Equatable {}
extension ClientConnectionState.EndAction: Equatable where Attempt: Equatable {}
extension ClientConnectionState.GoAwayAction: Equatable where Link: Equatable {}
extension ClientConnectionState.CloseAction: Equatable
where Link: Equatable, HTTPSession: Equatable, Attempt: Equatable {}
