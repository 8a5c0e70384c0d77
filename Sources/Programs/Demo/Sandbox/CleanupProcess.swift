import CLinux
import Daemon
import EventLoop
import Glibc

/// A shell that cleans up after the demo process was killed or crashed.
///
/// It outlives the demo. The demo writes to a pipe what the shell must clean up. If the pipe ends
/// without the line `finished`, the shell kills the relay and removes the directory.
final class CleanupProcess {
    private let pid: pid_t
    private let pipe: Int32

    private static let script = """
        relay="" directory=""
        while read -r what value; do
            case $what in
                finished) exit 0 ;;
                relay) relay=$value ;;
                directory) directory=$value ;;
            esac
        done
        [ -z "$relay" ] || kill -KILL "$relay"
        [ -z "$directory" ] || rm -rf -- "$directory"
        """

    init() throws(Failure) {
        var ends: [Int32] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw Self.failure(errno) }
        defer { close(ends[0]) }
        do throws(SystemFailure) {
            pid = try Spawning(program: "/bin/sh", arguments: ["-c", Self.script], input: ends[0]).start()
        } catch {
            close(ends[1])
            throw Self.failure(error.code)
        }
        pipe = ends[1]
    }

    func removes(_ directory: String) { tell("directory \(directory)") }
    func ends(_ relay: pid_t) { tell("relay \(relay)") }
    /// Tells the shell not to kill the relay. It has ended, and another process may have its pid by
    /// now.
    func forgetsRelay() { tell("relay ") }

    /// Ends the shell, when everything is cleaned up.
    func dismiss() {
        tell("finished")
        close(pipe)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
    }

    private func tell(_ text: String) {
        let bytes = Array("\(text)\n".utf8)
        _ = write(pipe, bytes, bytes.count)
    }

    private static func failure(_ code: Int32) -> Failure {
        Failure(
            .failed, "/bin/sh cannot be run: \(String(cString: strerror(code)))",
            next: "Is the machine out of processes or memory?")
    }
}
