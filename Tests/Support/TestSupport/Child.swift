import CLinux
import Demo
import EventLoop
import Glibc
import Synchronization

/// Another program, run for a test: its output is kept, its lines can be awaited, and it is ended by its own pid.
public final class Child: Sendable {
    public enum Stream: Sendable { case output, errors }

    public struct Problem: Error, CustomStringConvertible {
        public let description: String
        public init(description: String) { self.description = description }
    }

    /// How a program ended.
    public struct Ended: Sendable {
        /// The exit status, or 128 and the signal's number.
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

    /// Runs a program to its end.
    public static func run(_ program: String, _ arguments: [String], in directory: String? = nil) async throws -> Ended
    {
        try await Child(program, arguments, in: directory).ended()
    }

    /// Starts a program, found by the PATH unless it is named by a path. Its standard input is empty, or the descriptor
    /// `input`, which stays the caller's to close.
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

    /// What it has written so far.
    public var written: (output: String, errors: String) {
        state.withLock { state in
            (String(decoding: state.output, as: UTF8.self), String(decoding: state.errors, as: UTF8.self))
        }
    }

    /// Nothing when it has ended: its number may be another's by now.
    public func signal(_ number: Int32) {
        state.withLock { state in
            if state.status == nil { kill(pid, number) }
        }
    }

    /// Kills it, and it is dead when this returns.
    func killAndWait() {
        signal(SIGKILL)
        var ended = siginfo_t()
        while waitid(P_PID, id_t(pid), &ended, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    }

    /// Waits for the end and for all that was written until then.
    public func ended() async -> Ended {
        let status = await value { $0.status }
        return state.withLock { state in
            Ended(
                status: status, output: String(decoding: state.output, as: UTF8.self),
                errors: String(decoding: state.errors, as: UTF8.self))
        }
    }

    /// Waits for a line that holds `part`: the first, or the one of that number.
    public func line(_ stream: Stream, with part: String, number: Int = 1) async throws -> String {
        let found = await value { state -> Result<String, Problem>? in
            let text = String(decoding: stream == .output ? state.output : state.errors, as: UTF8.self)
            // What stands behind the last line break is no line yet.
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            let found = lines.lazy.filter { $0.contains(part) }.dropFirst(number - 1)
            if let line = found.first { return .success(String(line)) }
            guard let status = state.status else { return nil }
            let all = String(decoding: state.output + state.errors, as: UTF8.self)
            return .failure(Problem(description: "\(self.name) ended with \(status), and never said \(part): \(all)"))
        }
        return try found.get()
    }

    /// Waits until `part` was written, at the end of a line or not: a prompt.
    public func says(_ part: String) async throws {
        let isThere = await value { state -> Bool? in
            String(decoding: state.output, as: UTF8.self).contains(part) ? true : state.status.map { _ in false }
        }
        guard isThere else { throw Problem(description: "\(name) ended, and never said \(part): \(written)") }
    }

    /// Waits until `look` finds something; it looks again after everything that happens. A test whose time limit is over
    /// waits for nothing more of a program that is killed.
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

    /// The reader thread's work, until both streams end; then the child is reaped.
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
        // Under the lock: nobody signals a number that is free.
        change { state in
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
            state.status = status & 0x7f == 0 ? status >> 8 & 0xff : 128 + status & 0x7f
        }
    }
}
