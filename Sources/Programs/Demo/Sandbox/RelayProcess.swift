import CLinux
import Daemon
import EventLoop
import Glibc

/// A process of the relay, `twoefayd`, whose log is read. It must be used on its loop only.
final class RelayProcess {
    let pid: pid_t
    /// Called once, when the process has ended and is reaped.
    var onEnd: (() -> Void)?
    private(set) var status: Int32?

    private let loop: EventLoop
    private let logFile: Int32
    private let logPipe: Int32
    private var watch: DescriptorWatcher?
    private var partial: [UInt8] = []
    private var lines: [String] = []
    private var waiting: [(part: String, continuation: CheckedContinuation<Bool, Never>)] = []
    private var ending: [CheckedContinuation<Void, Never>] = []

    /// Returns the path of `twoefayd`, which is in the same directory as the running program. The
    /// two are built and installed together.
    static func program() throws(Failure) -> String {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let own = String(decoding: buffer[..<max(0, count)], as: UTF8.self)
        let path = Files.resolve("twoefayd", in: Files.directory(of: own))
        guard access(path, X_OK) == 0 else {
            throw Failure(
                .notFound, "\(path): \(String(cString: strerror(errno)))",
                next: "The demo runs the twoefayd beside 'twoefay'. Build both: swift build -c release")
        }
        return path
    }

    init(_ program: String, _ arguments: [String], log: String, on loop: EventLoop) throws(Failure) {
        func failure(_ reason: String) -> Failure {
            Failure(.failed, "\(program) cannot be run: \(reason)", next: "Is the machine out of processes or memory?")
        }
        var ends: [Int32] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw failure(String(cString: strerror(errno))) }
        defer { close(ends[1]) }
        do throws(SystemFailure) {
            pid = try Spawning(program: program, arguments: arguments, output: .nothing, errors: ends[1]).start()
        } catch {
            close(ends[0])
            throw failure(error.description)
        }
        self.loop = loop
        logPipe = ends[0]
        logFile = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        _ = fcntl(logPipe, F_SETFL, O_NONBLOCK)
        watch = try? loop.watch(fd: logPipe, .read) { [weak self] _ in self?.read() }
    }

    deinit {
        close(logPipe)
        close(logFile)
    }

    /// The last lines of the log.
    var tail: [String] { Array(lines.suffix(8)) }

    /// Waits for a log line that contains the text; false if the process ended before.
    func says(_ part: String) async -> Bool {
        if lines.contains(where: { $0.contains(part) }) { return true }
        guard status == nil else { return false }
        return await withCheckedContinuation { waiting.append((part, $0)) }
    }

    /// Kills the process at once; `onEnd` is called when it has ended.
    func kill() {
        if status == nil { Glibc.kill(pid, SIGKILL) }
    }

    /// Ends the process with SIGTERM, and with SIGKILL after the timeout.
    func end(within timeout: Duration = .seconds(10)) async {
        guard status == nil else { return }
        onEnd = nil
        Glibc.kill(pid, SIGTERM)
        let limit = loop.schedule(after: timeout) { [weak self] in
            self?.kill()
        }
        await withCheckedContinuation { ending.append($0) }
        loop.cancel(limit)
    }

    private func read() {
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = Glibc.read(logPipe, &chunk, chunk.count)
            if count > 0 {
                _ = Glibc.write(logFile, chunk, count)
                take(chunk[..<count])
            } else if count == 0 {
                watch?.cancel()
                watch = nil
                return reap()
            } else if errno != EINTR {
                return
            }
        }
    }

    private func take(_ bytes: ArraySlice<UInt8>) {
        partial += bytes
        while let end = partial.firstIndex(of: UInt8(ascii: "\n")) {
            let line = String(decoding: partial[..<end], as: UTF8.self)
            partial.removeSubrange(...end)
            lines.append(line)
            if lines.count > 100 { lines.removeFirst() }
            let heard = waiting.filter { line.contains($0.part) }
            waiting.removeAll { line.contains($0.part) }
            for (_, continuation) in heard { continuation.resume(returning: true) }
        }
    }

    /// Reaps the process. It has closed its end of the pipe, so it has ended or will end at once.
    private func reap() {
        var code: Int32 = 0
        guard waitpid(pid, &code, WNOHANG) != 0 else {
            loop.schedule(after: .milliseconds(5)) { [self] in reap() }
            return
        }
        status = code
        for (_, continuation) in waiting { continuation.resume(returning: false) }
        for continuation in ending { continuation.resume() }
        (waiting, ending) = ([], [])
        onEnd?()
        onEnd = nil
    }
}
