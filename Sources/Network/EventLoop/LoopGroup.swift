import World

/// Several loops, each on its own thread.
public final class LoopGroup: Sendable {
    public let loops: [EventLoop]
    private let threads: [SystemThread]

    private init(loops: [EventLoop], threads: [SystemThread]) {
        self.loops = loops
        self.threads = threads
    }

    public static func start(count: Int, time: any TimeSource) throws(SystemFailure) -> LoopGroup {
        var loops: [EventLoop] = []
        var threads: [SystemThread] = []
        for number in 0..<count {
            let loop = try EventLoop(name: "loop-\(number)", time: time)
            loops.append(loop)
            threads.append(try SystemThread(name: loop.name) { loop.run() })
        }
        return LoopGroup(loops: loops, threads: threads)
    }

    /// Stops all loops and waits for them. If it is called on one of the loops, it does not wait
    /// for that one, which ends with its turn.
    public func stopAndJoin() {
        for loop in loops { loop.stop() }
        for (loop, thread) in zip(loops, threads) {
            if loop.isCurrent { thread.detach() } else { thread.join() }
        }
    }
}
