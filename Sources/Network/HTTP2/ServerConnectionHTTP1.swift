import CNghttp2
import EventLoop
import HTTP
import HTTP1Wire
import World

/// The parts of a server's connection that HTTP/1.1 needs beside the events that it shares with
/// HTTP/2.
extension ServerConnection {
    func makeHTTP1Session(_ scratch: SessionScratch) -> HTTP1Session {
        HTTP1Session(
            limits: RequestParser.Limits(headBytes: limits.headerBytes, fields: limits.headerCount),
            origin: server.origin, scratch: scratch)
    }

    func noteHeads(of session: HTTP1Session, _ now: Instant) {
        inspector.noteHeads(began: session.takeHeadBegan(), incompleteSince: session.incompleteSince)
        if inspector.incompleteSince == now { check(by: requestLimit(now)) }
        link.isPaused = session.isFull
    }

    /// Begins the request that has waited for the end of the one before.
    /// - Parameter hasEnded: whether a request has ended just now.
    func goOn(_ session: HTTP1Session, hasEnded: Bool) {
        let now = loop.now
        // The answer was activity: the client has the whole idle time for its next request. Without
        // a request nothing is: each byte below HTTP, such as a part of a TLS record, leads here.
        if hasEnded { clock.active(now) }
        guard session.receiveWaiting(now) else { return }
        noteHeads(of: session, now)
        handleEvents(now)
        charge(session.takeHeaderCharges(), now)
    }

    /// Refuses a request for which nothing was done, so that the client may send it again. HTTP/1.1
    /// cannot say so with a reset.
    func refuseUnprocessed(_ stream: ServerStream) {
        guard case .http1(let session)? = session else {
            reset(stream, NGHTTP2_REFUSED_STREAM)
            return
        }
        // The answer is the last one.
        session.beginDrain()
        refuse(stream, .busy)
    }
}
