import EventLoop
import HTTP
import TLS

/// What becomes of a connection that has just been accepted.
public enum Admission: Sendable {
    /// Served as the server serves them all.
    case serve
    /// Served with this TLS in place of the server's.
    case serveWith(TLSServerContext)
    /// It stands, and nothing is ever read from it or written to it.
    case ignore
    /// Reset at once.
    case cut
}

/// Stands at the door of a server that is to be had in hand, connection by connection: one that shows its clients what
/// a server can do to them. A server without it does what HTTP/2 wants, and asks only for its requests' answers. Used on the
/// server's loop.
public protocol ServerController: AnyObject {
    /// `number` counts the server's connections from 1, and is the connection's own from then on.
    func admit(_ number: Int) -> Admission

    /// TLS stands, and nothing has been said: what is submitted here goes out ahead of the server's SETTINGS.
    func opened(_ connection: ServerConnection) -> any ConnectionController
}

/// Has one connection in hand. What it submits from within a call leaves with that turn's bytes.
public protocol ConnectionController: AnyObject {
    /// In the handler's place. Nil: the stream stays open until `answer` or `reset` is called for it.
    func handle(_ request: Request, stream: Int32) -> Reply?

    /// The stream is no more, however it ended.
    func closed(stream: Int32)

    /// The connection is no more, and its streams with it.
    func ended()
}

/// RFC 9113 §7, those that are of use here.
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
