import Bytes
import CLinux
import EventLoop
import Glibc
import Log

/// A connection with one request and its answer. It is used only on its loop.
final class KeyConnection {
    private let fd: Int32
    let process: pid_t
    private let server: KeyServer
    private var watch: DescriptorWatcher?
    private var deadline: TimerID?
    private var input = KeyFrameBuffer()
    /// The answer. It may contain keys, so it is wiped.
    private var output: [UInt8] = []
    private var written = 0
    /// Whether the request is complete, and its answer is awaited.
    private var isAwaiting = false
    private var isClosed = false

    init(fd: Int32, process: pid_t, server: KeyServer) {
        self.fd = fd
        self.process = process
        self.server = server
    }

    func start() throws(SystemFailure) {
        watch = try server.loop.watch(fd: fd, .read) { [weak self] _ in self?.ready() }
        wait(for: server.limits.request)
    }

    func close() {
        guard !isClosed else { return }
        isClosed = true
        watch?.cancel()
        if let deadline { server.loop.cancel(deadline) }
        Wiping.wipe(&output)
        Glibc.close(fd)
    }

    private func ready() {
        // While the command runs, only the end of the connection is reported.
        guard !isAwaiting else { return drop("the peer has not waited for the answer") }
        if output.isEmpty { read() } else { write() }
    }

    private func read() {
        var chunk = [UInt8](repeating: 0, count: 4096)
        let count = recv(fd, &chunk, chunk.count, 0)
        guard count > 0 else {
            if count < 0, [EAGAIN, EINTR].contains(errno) { return }
            // A peer may connect only to check that the service listens. It sends nothing.
            return input.isEmpty ? server.ended(self) : drop("the request is incomplete")
        }
        input.append(chunk[..<count])
        do throws(KeyServiceFailure) {
            guard let message = try input.message() else { return }
            isAwaiting = true
            watch?.change([])
            server.reply(to: message, from: self) { [weak self] reply in self?.answer(with: reply) }
        } catch {
            drop(error.description)
        }
    }

    private func answer(with reply: KeyReply) {
        guard !isClosed else { return }
        isAwaiting = false
        output = reply.frames
        watch?.change(.write)
    }

    /// Begins a new deadline, for a request that takes longer than others.
    func wait(for time: Duration) {
        if let deadline { server.loop.cancel(deadline) }
        deadline = server.loop.schedule(after: time) { [weak self] in
            self?.deadline = nil
            self?.drop("the request timed out")
        }
    }

    private func write() {
        let count = output[written...].withUnsafeBytes {
            send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard count > 0 else {
            if [EAGAIN, EINTR].contains(errno) { return }
            return drop(SystemFailure("send").description)
        }
        written += count
        if written == output.count { server.ended(self) }
    }

    private func drop(_ reason: String) {
        server.log.warning("keys.dropped", [.process: Int(process), .reason: reason])
        server.ended(self)
    }
}
