import EventLoop
import Glibc

/// A mail server for this machine only, which keeps every mail and sends none. It must be used on
/// its loop only. Tested in `SMTPSessionTests.swift` and `DashboardDemoTests.swift`.
final class MailCatcher {
    private let listener: Listener
    private let loop: EventLoop
    private let caught: (CaughtMail) -> Void
    private var sessions: [ObjectIdentifier: SMTPConnection] = [:]

    var port: UInt16 { listener.address.port }

    /// Starts the server on a free port.
    ///
    /// - Parameter caught: called on the loop for every mail.
    init(loop: EventLoop, caught: @escaping (CaughtMail) -> Void) throws(SystemFailure) {
        guard let address = SocketAddress(host: "127.0.0.1", port: 0) else {
            throw SystemFailure("address 127.0.0.1", EINVAL)
        }
        self.loop = loop
        self.caught = caught
        listener = try Listener(loop: loop, address: address)
        try listener.start(
            accepted: { [weak self] fd, _ in
                if let self { accept(fd) } else { close(fd) }
            }, exhausted: { _ in })
    }

    func stop() {
        listener.close()
        for session in sessions.values { session.end() }
        sessions = [:]
    }

    private func accept(_ fd: Int32) {
        do throws(SystemFailure) {
            let connection = try SMTPConnection(fd: fd, loop: loop, caught: caught) { [weak self] connection in
                self?.sessions[ObjectIdentifier(connection)] = nil
            }
            sessions[ObjectIdentifier(connection)] = connection
        } catch {
            close(fd)
        }
    }
}

/// A connection of one client: its socket, and the output that is not written yet. It must be used
/// on its loop only.
final class SMTPConnection {
    private let fd: Int32
    private var session = SMTPSession()
    private var output: [UInt8] = []
    private var watch: DescriptorWatcher?
    private let caught: (CaughtMail) -> Void
    private let ended: (SMTPConnection) -> Void

    init(
        fd: Int32, loop: EventLoop, caught: @escaping (CaughtMail) -> Void,
        ended: @escaping (SMTPConnection) -> Void
    ) throws(SystemFailure) {
        self.fd = fd
        self.caught = caught
        self.ended = ended
        output = SMTPSession.greeting
        watch = try loop.watch(fd: fd, [.read, .write]) { [weak self] ready in
            if let self { turn(ready) }
        }
    }

    func end() {
        guard let watch else { return }
        watch.cancel()
        self.watch = nil
        close(fd)
        ended(self)
    }

    private func turn(_ ready: Readiness) {
        guard read(), write() else { return end() }
        watch?.change(output.isEmpty ? .read : [.read, .write])
    }

    /// Reads the available input; false if the connection must end.
    private func read() -> Bool {
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = Glibc.read(fd, &chunk, chunk.count)
            if count > 0 {
                output += session.take(chunk[..<count])
                for mail in session.mails() { caught(mail) }
                // A client that sends without end and never reads the answers is disconnected.
                guard output.count < 1 << 20 else { return false }
            } else if count == 0 {
                return false
            } else if errno != EINTR {
                return errno == EAGAIN
            }
        }
    }

    private func write() -> Bool {
        while !output.isEmpty {
            let count = Glibc.write(fd, output, output.count)
            if count >= 0 {
                output.removeFirst(count)
            } else if errno != EINTR {
                return errno == EAGAIN
            }
        }
        return !session.isOver
    }
}
