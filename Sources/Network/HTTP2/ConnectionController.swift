import EventLoop
import HTTP
import TLS

/// The treatment of a connection that has just been accepted.
public enum Admission: Sendable {
    /// Served normally.
    case serve
    /// Served with this TLS context instead of the server's.
    case serveWith(TLSServerContext)
    /// Kept open, but nothing is ever read from it or written to it.
    case ignore
    /// Reset immediately.
    case cut
}

/// Controls each connection of a server by code, for a mock server that shows clients how a server
/// can behave. A server without a controller follows HTTP/2, and calls only its handler. Used on
/// the server's loop.
public protocol ServerController: AnyObject {
    /// Decides about a new connection. `number` counts the server's connections from 1, and
    /// identifies the connection from then on.
    func admit(_ number: Int) -> Admission

    /// Called when TLS is complete and before any frame is sent. Frames that are submitted here
    /// leave before the server's SETTINGS.
    func opened(_ connection: ServerConnection) -> any ConnectionController
}

/// Controls one connection. Frames that it submits within a call leave with the bytes of that turn.
public protocol ConnectionController: AnyObject {
    /// Handles a request instead of the server's handler. If it returns nil, the stream stays open
    /// until `answer` or `reset` is called for it.
    func handle(_ request: Request, stream: Int32) -> Reply?

    /// Called when the stream is closed, for any reason.
    func closed(stream: Int32)

    /// Called when the connection has ended, and its streams with it.
    func ended()
}

/// An error code of RFC 9113 §7; only those that are used here have names.
public struct ErrorCode: Sendable, Equatable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let noError = ErrorCode(rawValue: 0)
    public static let protocolError = ErrorCode(rawValue: 1)
    public static let internalError = ErrorCode(rawValue: 2)
    public static let refusedStream = ErrorCode(rawValue: 7)
    public static let cancel = ErrorCode(rawValue: 8)
    public static let enhanceYourCalm = ErrorCode(rawValue: 11)
}
