import EventLoop
import Glibc
import JSON
import KeyService

/// The tool's end of the control socket.
public enum ControlClient {
    /// The longest silence of the relay, in milliseconds. A search that finds nothing is silent.
    private static let patience: Int32 = 600_000
    /// The longest wait for a place in the queue of the relay, in seconds. Others may connect without end.
    private static let patienceToConnect = 2
    /// The longest line of an answer. The relay sends output in smaller parts.
    private static let longest = 1 << 20

    private enum Ending {
        case status(ExitCode)
        case question(String)
        case failed(Failure)
    }

    /// Has the relay perform a command, and prints its output.
    ///
    /// - Parameter confirm: asks the person at the terminal; throws if the person does not agree.
    public static func run(
        _ arguments: [String], at path: String, isColored: Bool, showsProgress: Bool,
        confirm: (String) throws(Failure) -> Void
    ) throws(Failure) -> Report {
        func request(_ arguments: [String]) -> ControlRequest {
            ControlRequest(arguments: arguments, isColored: isColored, showsProgress: showsProgress)
        }
        var ending = try send(request(arguments), to: path)
        if case .question(let consequence) = ending {
            try confirm(consequence)
            // The options come before the operands, which `--` begins.
            ending = try send(request(["--yes"].inserted(into: arguments)), to: path)
        }
        switch ending {
        case .status(let code): return Report(printed: code)
        case .failed(let failure): throw failure
        case .question(let consequence):
            throw Failure(.failed, "the relay asks for a confirmation again", next: consequence)
        }
    }

    private static func send(_ request: ControlRequest, to path: String) throws(Failure) -> Ending {
        guard request.line.count <= ControlSocket.longestRequest else {
            throw Failure(
                .usage, "the command is too long for the control socket",
                next: "It may have at most \(ControlSocket.longestRequest) bytes.")
        }
        let fd = try connect(path)
        defer { close(fd) }
        // A relay that refuses this account answers, and does not read.
        _ = Glibc.send(fd, request.line, request.line.count, Int32(MSG_NOSIGNAL))
        var lines = LineReader(fd: fd)
        while let line = lines.next() {
            if let ending = try read(line) { return ending }
        }
        throw Failure(
            .unavailable, "the relay at \(path) gave no complete answer",
            next: "Its log says more. Look at the result before you repeat a command that changes something.")
    }

    private static func connect(_ path: String) throws(Failure) -> Int32 {
        do throws(SystemFailure) {
            return try UnixSocket.connect(path, waitingSeconds: patienceToConnect)
        } catch {
            throw Failure(
                .unavailable, "the relay cannot be reached at \(path): \(error)",
                next: remedy(for: error.code))
        }
    }

    private static func remedy(for code: Int32) -> String {
        switch code {
        case EACCES: "Only root and the relay's account may use this socket, or its directory is closed to you."
        case EAGAIN: "Too many others connect. Try again in a moment; the relay's log may name them."
        default: "Start the relay. Without it, only an account that can read the master key can run commands."
        }
    }

    /// Prints a part of the output. Returns the end of the answer.
    private static func read(_ line: [UInt8]) throws(Failure) -> Ending? {
        let members = (try? JSONReader.read(line))?.object
        if let text = members?["out"]?.string {
            Program.say(text)
            return nil
        }
        if let text = members?["progress"]?.string {
            Program.printProgress(text)
            return nil
        }
        if let word = members?["status"]?.string, let code = ExitCode(word: word) { return .status(code) }
        if let question = members?["confirm"]?.string { return .question(question) }
        if let error = members?["error"]?.object, let code = error["code"]?.string.flatMap({ ExitCode(word: $0) }),
            let message = error["message"]?.string, let next = error["next"]?.string
        {
            return .failed(Failure(code, message, next: next))
        }
        throw Failure(
            .failed, "the relay gave an answer that is not understood",
            next: "Use the program twoefay of the same version as the relay.")
    }

    /// Reads lines from a socket that does not block.
    private struct LineReader {
        let fd: Int32
        var bytes: [UInt8] = []

        /// Returns nil at the end, and if nothing more comes.
        mutating func next() -> [UInt8]? {
            var chunk = [UInt8](repeating: 0, count: 64 << 10)
            while true {
                if let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
                    defer { bytes.removeFirst(end + 1) }
                    return Array(bytes[..<end])
                }
                guard bytes.count <= longest else { return nil }
                var readable = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
                let ready = poll(&readable, 1, patience)
                if ready < 0, errno == EINTR { continue }
                guard ready > 0 else { return nil }
                let count = recv(fd, &chunk, chunk.count, 0)
                if count < 0, [EAGAIN, EINTR].contains(errno) { continue }
                guard count > 0 else { return nil }
                bytes += chunk[..<count]
            }
        }
    }
}

extension [String] {
    /// Returns a command line with these options before its `--`.
    fileprivate func inserted(into arguments: [String]) -> [String] {
        guard let end = arguments.firstIndex(of: "--") else { return arguments + self }
        return Array(arguments[..<end]) + self + Array(arguments[end...])
    }
}
