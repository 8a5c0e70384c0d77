import CLinux
import Daemon
import EventLoop
import Glibc

/// Cleans up where nobody else can any more: a shell that outlives us, if we are killed or crash, for just that. It reads
/// from us what there is to clean up; the end of that without a word of farewell is its signal.
final class CleanupProcess {
    private let pid: pid_t
    private let line: Int32

    private static let script = """
        relay="" directory=""
        while read -r what value; do
            case $what in
                farewell) exit 0 ;;
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
        line = ends[1]
    }

    func removes(_ directory: String) { tell("directory \(directory)") }
    func ends(_ relay: pid_t) { tell("relay \(relay)") }
    /// It has ended: its number may be somebody else's by now.
    func forgetsRelay() { tell("relay ") }

    /// Everything is cleaned up.
    func dismiss() {
        tell("farewell")
        close(line)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0 && errno == EINTR {}
    }

    private func tell(_ text: String) {
        let bytes = Array("\(text)\n".utf8)
        _ = write(line, bytes, bytes.count)
    }

    private static func failure(_ code: Int32) -> Failure {
        Failure(
            .failed, "/bin/sh cannot be run: \(String(cString: strerror(code)))",
            next: "Is the machine out of processes or memory?")
    }
}
