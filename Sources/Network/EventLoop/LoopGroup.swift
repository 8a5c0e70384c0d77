import World

/// Several loops, each on a thread of its own.
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

    /// Waits for all of them, but for the loop that it is called on: that one ends when its turn is over.
    public func stopAndJoin() {
        for loop in loops { loop.stop() }
        for (loop, thread) in zip(loops, threads) {
            if loop.isCurrent { thread.detach() } else { thread.join() }
        }
    }
}
