import EventLoop
import Glibc

/// A request to the process by the operator or the system.
public enum Signal: Sendable {
    /// End running requests, then stop.
    case stop
    /// Read the files again.
    case reload
}

/// The signals of the process. A separate thread waits for them, so no code runs inside a signal
/// handler.
public final class Signals: Sendable {
    private let thread: WorkerThread

    /// Blocks the signals and starts the thread. Must be called before any other thread starts,
    /// because threads inherit the blocked signals.
    public init() throws(SystemFailure) {
        // If a peer closes the connection during a write, the write fails and the process
        // continues.
        signal(SIGPIPE, SIG_IGN)
        // If a file reaches its size limit, the write fails and the process continues. The store
        // then refuses the change.
        signal(SIGXFSZ, SIG_IGN)
        // Other programs give these a meaning. An operator who sends one by mistake must not end
        // the process without a word.
        signal(SIGUSR1, SIG_IGN)
        signal(SIGUSR2, SIG_IGN)
        var set = Self.set
        pthread_sigmask(SIG_BLOCK, &set, nil)
        thread = try WorkerThread(name: "signals")
    }

    /// Returns the next signal: SIGHUP as `reload`, SIGTERM or SIGINT as `stop`.
    public func next() async -> Signal {
        await withCheckedContinuation { continuation in
            thread.post {
                var set = Self.set
                var number: Int32 = 0
                repeat { sigwait(&set, &number) } while ![SIGTERM, SIGINT, SIGHUP].contains(number)
                continuation.resume(returning: number == SIGHUP ? .reload : .stop)
            }
        }
    }

    private static var set: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&set, number) }
        return set
    }
}
