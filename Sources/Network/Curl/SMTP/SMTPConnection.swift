import EventLoop
import Glibc
import Synchronization

/// A connection to a mail server, and the thread that it blocks.
final class SMTPConnection: Sendable {
    private let worker: WorkerThread
    private let sockets = OpenSockets()
    /// The session, used on the worker only. The compiler requires the lock; no thread ever waits
    /// for it.
    private let session: Mutex<SMTPSession?>

    init(_ server: SMTPServer) throws(SystemFailure) {
        worker = try WorkerThread(name: "smtp")
        session = Mutex(nil)
        worker.post { [self] in session.withLock { $0 = SMTPSession(server, sockets) } }
    }

    func post(_ work: @escaping @Sendable () -> Void) { worker.post(work) }

    /// Sends a mail. Call it on the worker.
    func send(_ transfer: SMTPTransfer, within left: @Sendable () -> Duration) -> Result<SMTPReply, SMTPFailure> {
        session.withLock { session in
            session?.send(transfer, within: left) ?? .failure(SMTPFailure(.busy, "libcurl cannot be started"))
        }
    }

    /// Ends the connection. A call that waits for the server returns at once.
    func close() {
        sockets.closing()
        worker.post { [self] in session.withLock { $0 = nil } }
        worker.stop()
    }

    func join(within limit: Duration) { worker.join(within: limit) }
}

/// The sockets that libcurl has open, so that another thread can end its waiting.
final class OpenSockets: Sendable {
    private struct State {
        /// The oldest one first.
        var open: [Int32] = []
        var isClosing = false
    }

    private let state = Mutex(State())

    var isClosing: Bool { state.withLock { $0.isClosing } }

    func opened(_ fd: Int32) {
        state.withLock { state in
            state.open.append(fd)
            if state.isClosing { shutdown(fd, Int32(SHUT_RD)) }
        }
    }

    /// Closes a socket, under the lock, because its number may be reused immediately.
    func close(_ fd: Int32) -> Int32 {
        state.withLock { state in
            state.open.removeAll { $0 == fd }
            return Glibc.close(fd)
        }
    }

    /// Ends reading from the oldest socket. If libcurl has opened a second socket, it closes the
    /// oldest one with QUIT and reuses the newer one.
    func stopReading() {
        state.withLock { state in if let fd = state.open.first { shutdown(fd, Int32(SHUT_RD)) } }
    }

    func closing() {
        state.withLock { state in
            state.isClosing = true
            for fd in state.open { shutdown(fd, Int32(SHUT_RD)) }
        }
    }
}
