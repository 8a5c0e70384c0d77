import Daemon
import EventLoop
import World

/// The whole product on one machine, for somebody who sees it for the first time: a throw-away installation, the real
/// daemon, a push service, a website and phones. `show` has them as pages in a browser, `play` plays three logins in the
/// terminal.
public enum Demo {
    public struct Options: Sendable {
        public var storage: StorageText
        /// What was written stays, to be looked at.
        public var keeps: Bool
        /// Tell it as it happens, on standard output.
        public var tells: Bool
        /// Of the first of three pages' servers, the others have the next two; nil: any that are free.
        public var port: UInt16?

        public init(
            storage: StorageText = StorageText(path: "twoefay.db"), keeps: Bool = false, tells: Bool = true,
            port: UInt16? = nil
        ) {
            self.storage = storage
            self.keeps = keeps
            self.tells = tells
            self.port = port
        }
    }

    static let interrupted = Failure(
        .failed, "the demo was told to end before it was over", next: "'twoefay demo' begins it again from the start.")

    /// On a loop of its own, on the calling thread. Told to end (SIGINT, SIGTERM, SIGHUP) it still cleans up.
    static func run(
        _ work: @escaping @Sendable (EventLoop, Signals) async -> Result<Report, Failure>
    ) throws(Failure) -> Report {
        let ended: Result<Report, Failure>
        do throws(SystemFailure) {
            let signals = try Signals()
            ended = try EventLoop.run("demo", time: SystemTime()) { loop in await work(loop, signals) }
        } catch {
            throw Failure(.failed, error.description, next: "The machine is out of something: threads or descriptors.")
        }
        return try ended.get()
    }
}
