import CLinux
import EventLoop
import Glibc
import World

/// The process that starts the command, because `twoefay-keys` itself cannot start one.
///
/// Purpose: `twoefay-keys` restricts itself by Landlock and seccomp, and then starts no process. So it
/// starts this program before that, and before it reads a key. The program is executed anew, so no
/// key is in its memory. It has one end of a socket pair as its standard input, and the command in
/// its arguments.
///
/// Invariant: it starts the program and the arguments that it got at its start, and nothing else. A
/// request on the socket has a certificate request and a few values of the environment. So code of an
/// attacker in `twoefay-keys` can only run the command, at most `mostAtOnce` times at once.
///
/// Failure modes: if `twoefay-keys` ends, the socket has an end, the launcher kills the commands that
/// run, and ends. If the launcher ends, `twoefay-keys` reports it and issues no more certificates.
/// Signals do not end it: an operator who sends one to all processes of this name means the other
/// one, and systemd sends SIGTERM to both.
///
/// Tests: `CommandServiceTests.swift`.
public enum CommandLauncher {
    /// The first argument of `twoefay-keys` that makes it the launcher.
    public static let word = "--launch-command"
    /// The number of commands that run at the same time.
    public static let mostAtOnce = 4
    /// The most bytes of a message. Each is one packet of the socket.
    static let mostBytes = 128 << 10

    /// A launcher that runs.
    public struct Started: Sendable {
        /// This process's end of the socket.
        public let socket: Int32
        public let pid: pid_t
    }

    /// Serves the socket at standard input until its other end is closed.
    ///
    /// - Parameter arguments: the time for a run in milliseconds, then the command.
    public static func run(_ arguments: [String]) -> Int32 {
        guard let milliseconds = arguments.first.flatMap({ Int64($0) }), arguments.count > 1 else { return 2 }
        let words = Array(arguments.dropFirst())
        umask(0o077)
        // The commands get the default effects of all signals.
        for number in [SIGPIPE, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2] { signal(number, SIG_IGN) }
        var threads: [WorkerThread] = []
        for _ in 1..<mostAtOnce {
            guard let thread = try? WorkerThread(name: "command") else { continue }
            thread.post { serve(words, timeout: .milliseconds(milliseconds)) }
            threads.append(thread)
        }
        serve(words, timeout: .milliseconds(milliseconds))
        // The other threads see the same end, and kill their commands.
        for thread in threads {
            thread.stop()
            thread.join(within: .seconds(10))
        }
        return 0
    }

    /// Runs the command for one request after another. The kernel gives each packet to one of the
    /// threads that wait.
    private static func serve(_ words: [String], timeout: Duration) {
        var packet = [UInt8](repeating: 0, count: mostBytes)
        while true {
            let count = recv(STDIN_FILENO, &packet, packet.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            guard let run = CommandRun(message: Array(packet[..<count])) else { continue }
            let end = CommandProcess.run(words, run, timeout: timeout, owner: STDIN_FILENO)
            let message = end.message(of: run.id)
            while send(STDIN_FILENO, message, message.count, Int32(MSG_NOSIGNAL)) < 0, errno == EINTR {}
        }
    }

    /// Starts the launcher. Must be called before the process is restricted.
    ///
    /// - Parameters:
    ///   - program: the program, which must be `twoefay-keys`; nil for that of this process.
    ///   - words: the command and its arguments.
    /// - Returns: the launcher, which the caller need not wait for.
    public static func start(
        _ words: [String], timeout: Duration, program: String? = nil
    ) throws(SystemFailure) -> Started {
        guard let program = program ?? ownProgram() else { throw SystemFailure("readlink") }
        var pair: [Int32] = [0, 0]
        let kind = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &pair) == 0 else { throw SystemFailure("socketpair") }
        defer { close(pair[1]) }
        do throws(SystemFailure) {
            guard clinux_add_flags(pair[0]) == 0 else { throw SystemFailure("fcntl") }
            let pid = try Spawning(
                program: program, arguments: [word, "\(timeout.wholeMilliseconds)"] + words, input: pair[1],
                output: .nothing, directory: "/", environment: []
            ).start()
            return Started(socket: pair[0], pid: pid)
        } catch {
            close(pair[0])
            throw error
        }
    }

    private static func ownProgram() -> String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }
}
