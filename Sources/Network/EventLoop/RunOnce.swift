import Synchronization
import World

extension EventLoop {
    /// Runs one piece of work on a new loop on the calling thread, and returns its result.
    public static func run<Value: Sendable>(
        _ name: String, time: any TimeSource, _ work: @escaping @Sendable (EventLoop) async -> Value
    ) throws(SystemFailure) -> Value {
        let loop = try EventLoop(name: name, time: time)
        let result = Mutex<Value?>(nil)
        loop.post {
            loop.spawn {
                let value = await work(loop)
                result.withLock { $0 = value }
                loop.stop()
            }
        }
        loop.run()
        guard let value = result.withLock({ $0 }) else { preconditionFailure("stopped before its work was done") }
        return value
    }
}
