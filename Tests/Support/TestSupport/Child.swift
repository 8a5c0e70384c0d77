import CLinux
import EventLoop
import Glibc
import Synchronization

/// A child process of a test. Its output is kept, a test can wait for its lines, and it is ended by
/// its own pid. Tested in `ChildTests.swift`.
public final class Child: Sendable {
    public enum Stream: Sendable { case output, errors }

    public struct Problem: Error, CustomStringConvertible {
        public let description: String
        public init(description: String) { self.description = description }
    }

    /// The exit status and the output of a program.
    public struct Ended: Sendable {
        /// The exit status, or 128 plus the number of the signal.
        public let status: Int32
        public let output: String
        public let errors: String
    }

    private struct State {
        var output: [UInt8] = []
        var errors: [UInt8] = []
        var status: Int32?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    public let pid: pid_t
    private let name: String
    private let state = Mutex(State())

    /// Whether a program of this name is on the PATH.
    public static func isInstalled(_ program: String) -> Bool {
        guard let path = getenv("PATH") else { return false }
        return String(cString: path).split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
    }

    /// Runs a program to its end.
    public static func run(_ program: String, _ arguments: [String], in directory: String? = nil) async throws -> Ended
    {
        try await Child(program, arguments, in: directory).ended()
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - program: a path, or a name that is looked up in PATH.
    ///   - input: the descriptor of its standard input, which the caller closes; nil for an empty
    ///     one.
    public init(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], in directory: String? = nil,
        input: Int32? = nil
    ) throws {
        var output: [Int32] = [0, 0]
        var errors: [Int32] = [0, 0]
        guard pipe2(&output, O_CLOEXEC) == 0, pipe2(&errors, O_CLOEXEC) == 0 else {
            throw Problem(description: "pipe2: errno \(errno)")
        }
        let inherited = Spawning.ourEnvironment.filter { variable in
            !environment.keys.contains { variable.hasPrefix("\($0)=") }
        }
        let spawning = Spawning(
            program: program, arguments: arguments, input: input, output: .descriptor(output[1]), errors: errors[1],
            directory: directory, environment: inherited + environment.map { "\($0.key)=\($0.value)" },
            hasOwnGroup: false)
        let spawned = Result { () throws(SystemFailure) in try spawning.start() }
        close(output[1])
        close(errors[1])
        do throws(SystemFailure) {
            pid = try spawned.get()
        } catch {
            close(output[0])
            close(errors[0])
            throw Problem(description: "\(program): \(String(cString: strerror(error.code)))")
        }
        name = program
        let reader = try WorkerThread(name: "child")
        let (out, err) = (output[0], errors[0])
        reader.post {
            self.collect(out, err)
            reader.stop()
        }
    }

    /// The output so far.
    public var written: (output: String, errors: String) {
        state.withLock { state in
            (String(decoding: state.output, as: UTF8.self), String(decoding: state.errors, as: UTF8.self))
        }
    }

    /// Sends a signal. It does nothing if the program has ended, because another process may have
    /// its pid.
    public func signal(_ number: Int32) {
        state.withLock { state in
            if state.status == nil { kill(pid, number) }
        }
    }

    /// Kills the program, and returns when it is dead.
    func killAndWait() {
        signal(SIGKILL)
        var ended = siginfo_t()
        while waitid(P_PID, id_t(pid), &ended, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    }

    /// Waits for the end of the program and of its output.
    public func ended() async -> Ended {
        let status = await value { $0.status }
        return state.withLock { state in
            Ended(
                status: status, output: String(decoding: state.output, as: UTF8.self),
                errors: String(decoding: state.errors, as: UTF8.self))
        }
    }

    /// Waits for a line that contains `part`.
    ///
    /// - Parameter number: which of these lines, from 1.
    public func line(_ stream: Stream, with part: String, number: Int = 1) async throws -> String {
        let found = await value { state -> Result<String, Problem>? in
            let text = String(decoding: stream == .output ? state.output : state.errors, as: UTF8.self)
            // The text after the last line break is not a complete line yet.
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            let found = lines.lazy.filter { $0.contains(part) }.dropFirst(number - 1)
            if let line = found.first { return .success(String(line)) }
            guard let status = state.status else { return nil }
            let all = String(decoding: state.output + state.errors, as: UTF8.self)
            return .failure(Problem(description: "\(self.name) ended with \(status), and never said \(part): \(all)"))
        }
        return try found.get()
    }

    /// Waits until `part` was written that many times, also within a line. Use it for a prompt.
    public func says(_ part: String, number: Int = 1) async throws {
        let isThere = await value { state -> Bool? in
            let text = String(decoding: state.output, as: UTF8.self)
            return text.ranges(of: part).count >= number ? true : state.status.map { _ in false }
        }
        guard isThere else { throw Problem(description: "\(name) ended, and never said \(part): \(written)") }
    }

    /// Waits until `look` returns a value; it is called after each change. If the test exceeds its
    /// time limit, the program is killed, so the wait ends.
    private func value<Value: Sendable>(_ look: @escaping (borrowing State) -> Value?) async -> Value {
        await withTaskCancellationHandler {
            await awaited(look)
        } onCancel: {
            signal(SIGKILL)
        }
    }

    private func awaited<Value: Sendable>(_ look: @escaping (borrowing State) -> Value?) async -> Value {
        while true {
            if let value = state.withLock({ look($0) }) { return value }
            await withCheckedContinuation { continuation in
                let early = state.withLock { state -> Bool in
                    if look(state) != nil { return true }
                    state.waiters.append(continuation)
                    return false
                }
                if early { continuation.resume() }
            }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiters = state.withLock { state in
            body(&state)
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Reads both streams until their ends, then reaps the child. It runs on the reader thread.
    private func collect(_ output: Int32, _ errors: Int32) {
        var open = [
            pollfd(fd: output, events: Int16(POLLIN), revents: 0),
            pollfd(fd: errors, events: Int16(POLLIN), revents: 0),
        ]
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while open.contains(where: { $0.fd >= 0 }) {
            if poll(&open, 2, -1) < 0 { continue }
            for index in open.indices where open[index].fd >= 0 && open[index].revents != 0 {
                let count = read(open[index].fd, &chunk, chunk.count)
                if count > 0 {
                    change { state in
                        if index == 0 { state.output += chunk[..<count] } else { state.errors += chunk[..<count] }
                    }
                } else if count == 0 || errno != EINTR {
                    close(open[index].fd)
                    open[index].fd = -1
                }
            }
        }
        var ended = siginfo_t()
        while waitid(P_PID, id_t(pid), &ended, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        // The lock prevents a signal to a pid that was just released.
        change { state in
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
            state.status = status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f
        }
    }
}
