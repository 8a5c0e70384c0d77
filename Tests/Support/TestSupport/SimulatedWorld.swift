import EventLoop
import HTTP
import Synchronization
import World

/// One process in which everything that could happen at once is put in an order by a seed: the loops' turns, the
/// store's worker, the network's delays. Time is virtual and passes only when nothing is left to do.
public final class SimulatedWorld {
    public let time = TestTime()
    public let chance: SeededRandomness
    private var loops: [EventLoop] = []

    public init(seed: UInt64) { chance = SeededRandomness(seed: seed) }

    public func loop(_ name: String) -> EventLoop {
        let chance = chance
        let loop = EventLoop.simulated(name: name, time: time) { count in Int(chance.number(below: UInt64(count))) }
        loops.append(loop)
        return loop
    }

    /// The process of that loop is killed: nothing of it happens any more.
    public func kill(_ loop: EventLoop) { loops.removeAll { $0 === loop } }

    /// Turns until `done`, or until nothing can happen any more, or for so long in virtual time. True when done.
    public func run(for limit: Duration, until done: () -> Bool) -> Bool {
        let end = time.instant() + limit
        while !done() {
            if turn() { continue }
            guard let next = loops.compactMap(\.nextDeadline).min(), next <= end else { return false }
            time.advance(to: next)
        }
        return true
    }

    /// One turn of one of the loops that have something to do.
    private func turn() -> Bool {
        var order = Array(loops.indices)
        var chance = chance
        order.shuffle(using: &chance)
        for index in order where loops[index].turn() { return true }
        return false
    }
}

/// A request on its way through a simulated network to a handler, and its answer on its way back.
public enum SimulatedNetwork {
    /// Nil when no answer came in time, for whatever reason: the caller cannot know.
    public static func send(
        _ request: Request, to handler: any Handler, on server: EventLoop, from client: EventLoop,
        latency: @escaping @Sendable () -> Duration, timeout: Duration
    ) async -> Response? {
        await client.sleep(for: latency())
        return await withCheckedContinuation { continuation in
            let once = Once { (response: Response?) in continuation.resume(returning: response) }
            let timer = client.schedule(after: timeout) { once.give(nil) }
            server.post {
                RunningReply.run(handler.handle(request), on: server) { response in
                    let delay = latency()
                    client.post {
                        client.schedule(after: delay) {
                            client.cancel(timer)
                            once.give(response)
                        }
                    }
                }
            }
        }
    }
}

/// Runs a reply as a stream of HTTP/2 would, without the stream.
public enum RunningReply {
    public static func run(
        _ reply: Reply, on loop: EventLoop, respond: @escaping @Sendable (Response) -> Void
    ) {
        switch reply {
        case .now(let response): respond(response)
        case .later(let deadline, let late, let work):
            let once = Once(respond)
            let timer = loop.schedule(after: deadline) { once.give(late) }
            loop.spawn {
                let outcome = await work()
                loop.cancel(timer)
                come(to: outcome, on: loop, once)
            }
        }
    }

    private static func come(to outcome: Outcome, on loop: EventLoop, _ once: Once<Response>) {
        switch outcome {
        case .response(let response): once.give(response)
        case .held(let hold):
            let woken = Once { (_: Void) in loop.spawn { come(to: await hold.finish(), on: loop, once) } }
            let timer = loop.schedule(after: hold.duration) {
                hold.wait.cancel()
                woken.give(())
            }
            hold.wait.arm {
                loop.post {
                    loop.cancel(timer)
                    woken.give(())
                }
            }
        }
    }
}

/// Something that is given once; what comes later is dropped.
final class Once<Value: Sendable>: Sendable {
    private let receive: Mutex<(@Sendable (Value) -> Void)?>

    init(_ receive: @escaping @Sendable (Value) -> Void) { self.receive = Mutex(receive) }

    func give(_ value: Value) {
        let receive = receive.withLock { receive in
            defer { receive = nil }
            return receive
        }
        receive?(value)
    }
}
