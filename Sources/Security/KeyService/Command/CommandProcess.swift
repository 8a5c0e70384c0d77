import CLinux
import EventLoop
import Glibc
import World

/// A single run of the command, on the calling thread.
///
/// Purpose: the command is an operator's program, and may err in every way. Its time, its output and
/// its descriptors are bounded, and nothing of it is left afterwards.
///
/// Invariant: the command has its own process group. The group is killed when the command ends, when
/// its time is over and when it writes too much; before its leader is reaped, so that the number of
/// the group is not given to another one. What the command has written until its end counts: nobody
/// waits for the end of a stream that a process in the background holds open.
///
/// Failure modes: a process that leaves the group (`setsid`) is not killed. It has the ends of two
/// pipes, and nothing else.
///
/// Tests: `CommandProcessTests.swift`.
final class CommandProcess {
    /// The part of standard error that is kept.
    private static let mostErrors = 4096

    private let pid: pid_t
    /// A descriptor that is readable when the process has ended.
    private let end: Int32
    private var input: Int32
    private var output: Int32
    private var errors: Int32
    private var request: ArraySlice<UInt8>
    private var written: [UInt8] = []
    private var complaints: [UInt8] = []

    /// Runs the command to its end, or to the end of its time.
    ///
    /// - Parameters:
    ///   - words: the program and its arguments.
    ///   - owner: a socket; when its other end is closed, nobody wants the result, and the command is
    ///     killed.
    static func run(
        _ words: [String], _ run: CommandRun, timeout: Duration, owner: Int32, time: any TimeSource = SystemTime()
    ) -> CommandEnd {
        do throws(SystemFailure) {
            let process = try start(words, run)
            return process.end(by: time.instant() + timeout, owner: owner, time)
        } catch {
            return CommandEnd(.unstarted("\(words.first ?? "") cannot be started: \(error)"))
        }
    }

    private init(pid: pid_t, end: Int32, pipes: [Int32], request: [UInt8]) {
        self.pid = pid
        self.end = end
        (input, output, errors) = (pipes[0], pipes[1], pipes[2])
        self.request = request[...]
        if request.isEmpty { closeInput() }
    }

    deinit {
        for fd in [end, input, output, errors] where fd >= 0 { close(fd) }
    }

    private static func start(_ words: [String], _ run: CommandRun) throws(SystemFailure) -> CommandProcess {
        var open: [Int32] = []
        do throws(SystemFailure) {
            for _ in 0..<3 {
                var pair: [Int32] = [0, 0]
                guard pipe2(&pair, O_CLOEXEC) == 0 else { throw SystemFailure("pipe2") }
                open += pair
            }
            let (ours, theirs) = ([open[1], open[2], open[4]], [open[0], open[3], open[5]])
            for fd in ours where clinux_add_flags(fd) != 0 { throw SystemFailure("fcntl") }
            let pid = try Spawning(
                program: words[0], arguments: Array(words.dropFirst()), input: theirs[0],
                output: .descriptor(theirs[1]), errors: theirs[2], directory: "/", environment: run.environment
            ).start()
            let end = clinux_process_descriptor(pid)
            guard end >= 0 else {
                let failure = SystemFailure("pidfd_open")
                _ = reap(pid)
                throw failure
            }
            for fd in theirs { close(fd) }
            return CommandProcess(pid: pid, end: end, pipes: ours, request: run.request)
        } catch {
            for fd in open { close(fd) }
            throw error
        }
    }

    /// Waits for the end of the command, and ends it if it does not end by itself.
    private func end(by deadline: Instant, owner: Int32, _ time: any TimeSource) -> CommandEnd {
        while true {
            let left = (deadline - time.instant()).wholeMilliseconds
            guard left > 0 else { return ended(.timeout) }
            var watched = [
                pollfd(fd: end, events: Int16(POLLIN), revents: 0),
                pollfd(fd: input, events: Int16(POLLOUT), revents: 0),
                pollfd(fd: output, events: Int16(POLLIN), revents: 0),
                pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
                pollfd(fd: owner, events: 0, revents: 0),
            ]
            guard poll(&watched, nfds_t(watched.count), Int32(clamping: left)) > 0 else { continue }
            guard watched[4].revents == 0 else { return ended(.timeout) }
            let hasExited = watched[0].revents != 0
            if watched[1].revents != 0 { writeRequest() }
            Self.drain(&output, into: &written, keeping: nil)
            Self.drain(&errors, into: &complaints, keeping: Self.mostErrors)
            guard written.count <= CommandEnd.mostOutput else { return ended(.tooLong) }
            if hasExited { return ended(nil) }
        }
    }

    /// Writes what the pipe takes, and closes it after the last byte. A command may end without
    /// reading its input.
    private func writeRequest() {
        let count = request.withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
        if count > 0 { request = request.dropFirst(count) }
        guard request.isEmpty || count < 0 && ![EAGAIN, EINTR].contains(errno) else { return }
        request = []
        closeInput()
    }

    private func closeInput() {
        close(input)
        input = -1
    }

    /// Reads what is there, and closes a stream at its end.
    ///
    /// - Parameter tail: the number of bytes of which the last ones are kept; nil keeps all of them,
    ///   and reads only a little more than allowed.
    private static func drain(_ fd: inout Int32, into bytes: inout [UInt8], keeping tail: Int?) {
        var chunk = [UInt8](repeating: 0, count: 16_384)
        // A command that writes without end must not keep this loop from its deadline.
        for _ in 0..<16 where fd >= 0 && (tail != nil || bytes.count <= CommandEnd.mostOutput) {
            let count = read(fd, &chunk, chunk.count)
            if count > 0 {
                bytes += chunk[..<count]
                if let tail, bytes.count > tail { bytes.removeFirst(bytes.count - tail) }
            } else if count == 0 {
                close(fd)
                fd = -1
            } else if errno != EINTR {
                return
            }
        }
    }

    /// Kills the group, and returns the end. Without a cause, the command has ended by itself.
    private func ended(_ cause: CommandEnd.Cause?) -> CommandEnd {
        let status = Self.reap(pid)
        let line = Self.lastLine(complaints)
        if let cause { return CommandEnd(cause, lastError: line) }
        if status & 0x7f != 0 { return CommandEnd(.signalled(status & 0x7f), lastError: line) }
        return CommandEnd(.exited(status >> 8 & 0xff), output: written, lastError: line)
    }

    /// Kills the group and reaps its leader. Returns the status of the leader.
    private static func reap(_ pid: pid_t) -> Int32 {
        kill(-pid, SIGKILL)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        return status
    }

    /// Returns the last line that is not empty, without control characters and noncharacters. JSON
    /// that has the latter is refused (RFC 7493).
    static func lastLine(_ bytes: [UInt8]) -> String {
        let line = bytes.split { $0 == 0x0a || $0 == 0x0d }.last { line in line.contains { $0 > 0x20 } } ?? []
        let text = String(decoding: line, as: UTF8.self).unicodeScalars.filter { scalar in
            scalar.properties.generalCategory != .control && !scalar.properties.isNoncharacterCodePoint
        }
        return String(String.UnicodeScalarView(text.prefix(200)))
    }
}
