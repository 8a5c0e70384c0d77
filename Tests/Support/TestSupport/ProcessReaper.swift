import CLinux
import Glibc
import Synchronization

/// Kills a process when the test process ends. A shell waits for that end, unless `dismiss` ends
/// the shell first.
public final class ProcessReaper: Sendable {
    private let end: Mutex<Int32>

    public init(of pid: pid_t) throws {
        var ends: [Int32] = [0, 0]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { throw Child.Problem(description: "pipe2: errno \(errno)") }
        defer { close(ends[0]) }
        end = Mutex(ends[1])
        _ = try Child("sh", ["-c", "read word || kill -9 \(pid)"], input: ends[0])
    }

    /// Ends the shell. Call it when the process has ended or certainly will, because another
    /// process may then get its pid.
    public func dismiss() {
        end.withLock { end in
            guard end >= 0 else { return }
            _ = write(end, "home\n", 5)
            close(end)
            end = -1
        }
    }

    deinit { dismiss() }
}
