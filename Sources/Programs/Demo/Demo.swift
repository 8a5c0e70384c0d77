import Daemon
import EventLoop
import World

/// The demo: the whole product on one machine, for a first look.
///
/// It runs a temporary installation, the real daemon, a push service, a website and phones. `runDashboard`
/// serves them as pages for a browser. `runWalkthrough` runs three logins in the terminal.
public enum Demo {
    public struct Options: Sendable {
        public var storage: StorageText
        /// Whether the files of the run are kept for inspection.
        public var keepsFiles: Bool
        /// Whether to report the events on standard output as they happen.
        public var narrates: Bool
        /// The port of the first of three page servers; the other two use the next two ports. If it
        /// is nil, each uses any free port.
        public var port: UInt16?

        public init(
            storage: StorageText = StorageText(path: "twoefay.db"), keepsFiles: Bool = false, narrates: Bool = true,
            port: UInt16? = nil
        ) {
            self.storage = storage
            self.keepsFiles = keepsFiles
            self.narrates = narrates
            self.port = port
        }
    }

    static let interrupted = Failure(
        .failed, "the demo was interrupted before its end", next: "Run 'twoefay demo' to start it again.")

    /// Runs the work on a new event loop, on the calling thread. After SIGINT, SIGTERM or SIGHUP,
    /// it still cleans up.
    static func run(
        _ work: @escaping @Sendable (EventLoop, Signals) async -> Result<Report, Failure>
    ) throws(Failure) -> Report {
        let ended: Result<Report, Failure>
        do throws(SystemFailure) {
            let signals = try Signals()
            ended = try EventLoop.run("demo", time: SystemTime()) { loop in await work(loop, signals) }
        } catch {
            throw Failure(.failed, error.description, next: "The machine is out of threads or file descriptors.")
        }
        return try ended.get()
    }
}
