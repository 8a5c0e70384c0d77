import EventLoop
import Synchronization
import World

/// The run of a service on the calling thread, until a signal stops it.
enum MainThread {
    /// Runs `work` on a loop on this thread, with the program's signals and a log that is closed at
    /// the end.
    static func run(
        _ form: Settings.LogSettings,
        _ work: @escaping @Sendable (EventLoop, Signals, DaemonLog) async throws(Failure) -> Void
    ) throws(Failure) {
        let main: EventLoop
        let signals: Signals
        let written: DaemonLog
        do {
            signals = try Signals()
            written = try DaemonLog(form)
            main = try EventLoop(name: "main", time: SystemTime())
        } catch {
            throw Failure(.failed, "\(error)", next: "The machine is out of threads or file descriptors.")
        }
        defer { written.close() }
        let failure = Mutex<Failure?>(nil)
        main.post {
            main.spawn {
                do throws(Failure) {
                    try await work(main, signals, written)
                } catch {
                    failure.withLock { $0 = error }
                }
                main.stop()
            }
        }
        main.run()
        if let failure = failure.withLock({ $0 }) { throw failure }
    }
}
