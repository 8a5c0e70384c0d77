import EventLoop
import TLS

/// The reason why a connection ended.
enum TransportEnd: Sendable {
    /// We ended it.
    case finished
    /// The peer closed it.
    case closed
    case failed(TransportFailure)
}

/// The failure that ended a connection, by the layer that found it.
enum TransportFailure: Sendable, Equatable, CustomStringConvertible {
    /// A system call on a connection without TLS, or before TLS.
    case socket(SystemFailure)
    /// The TLS session. A reset that a read through TLS finds is reported here.
    case tls(TLSFailure)
    /// The protocol of the owner: the frames of the peer, or their cost.
    case http2(String)

    var description: String {
        switch self {
        case .socket(let failure): failure.description
        case .tls(let failure): "TLS: \(failure)"
        case .http2(let reason): "HTTP/2: \(reason)"
        }
    }
}

/// The protocol above a transport.
protocol TransportOwner: AnyObject {
    /// The first byte of a client's handshake has come. The owner must call `beginHandshake`; until
    /// then the connection has no TLS session.
    func transportHasFirstByte()
    /// TLS is complete (or the plain connection is up).
    func transportIsUp()
    /// The bytes are valid only during the call.
    func transportReceived(_ bytes: UnsafeRawBufferPointer)
    /// The peer has changed its TLS keys `count` times since the last call.
    func transportUpdatedKeys(_ count: Int)
    /// Appends bytes to send, about `enough` of them.
    func transportOutput(_ output: inout [UInt8], enough: Int)
    /// All bytes from `transportOutput` were written to the socket. Returns true if the transport
    /// can close.
    func transportIsDrained() -> Bool
    /// The socket accepts no more bytes at the moment.
    func transportIsBlocked()
    /// The last call. The descriptor is closed.
    func transportEnded(_ end: TransportEnd)
}

extension TransportOwner {
    /// Does nothing: a client's transport begins its handshake itself.
    func transportHasFirstByte() {}
    func transportUpdatedKeys(_ count: Int) {}
}

/// The buffers that the connections of one loop share. A connection uses them within one turn only.
final class SharedBuffers {
    let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 32_768, alignment: 16)
    var output: [UInt8] = []
    let session = SessionScratch()

    init() { output.reserveCapacity(40_960) }
    deinit { input.deallocate() }
}
