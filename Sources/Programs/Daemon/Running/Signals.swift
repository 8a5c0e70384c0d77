import EventLoop
import Glibc

/// What the operator, or the machine, tells the process.
public enum Signal: Sendable {
    /// Finish what is begun, then go.
    case stop
    /// Read the files again.
    case reload
}

/// Waits for signals on a thread of its own, so that nothing ever happens inside a signal handler.
public final class Signals: Sendable {
    private let thread: WorkerThread

    /// To be called before any other thread begins: threads inherit what is blocked here.
    public init() throws(SystemFailure) {
        // A peer that goes away while we write is an error of that write, not the end of the process.
        signal(SIGPIPE, SIG_IGN)
        // A file that may not grow is an error of that write too: the store refuses what it cannot keep.
        signal(SIGXFSZ, SIG_IGN)
        var set = Self.set
        pthread_sigmask(SIG_BLOCK, &set, nil)
        thread = try WorkerThread(name: "signals")
    }

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
