import EventLoop
import HTTP
import Synchronization
import World

/// A deterministic simulation of event loops in virtual time.
///
/// Purpose: a test can explore many orders of events, and repeat any of them by its seed.
/// Everything that could happen concurrently runs on one thread. The seed orders it: which loop has
/// the next turn, in which order a loop runs its jobs, when the store's worker runs, and how long
/// the network takes. Virtual time advances only when no loop has anything to do, and then to the
/// next timer.
///
/// Invariant: the seed determines the whole history. What can break it: code that reads the real
/// clock, uses the system's randomness for a decision, or starts a thread. `SimulationTests.swift`
/// runs the same seed twice and compares the traces.
///
/// To kill a process, remove its loop: its jobs and timers never run again. The store has its own
/// loop, so a script that was submitted before the kill may still commit, as in a real database.
///
///     let world = SimulatedWorld(seed: 7)
///     let relays = try SimulatedRelays(world, pushes: courier)
///     try relays.start()
///     let isDone = world.run(for: .seconds(60)) { finished == expected }
public final class SimulatedWorld {
    public let time = TestTime()
    public let chance: SeededRandomness
    private var loops: [EventLoop] = []

    public init(seed: UInt64) { chance = SeededRandomness(seed: seed) }

    /// Creates a loop of this world.
    public func loop(_ name: String) -> EventLoop {
        let chance = chance
        let loop = EventLoop.simulated(name: name, time: time) { count in Int(chance.number(below: UInt64(count))) }
        loops.append(loop)
        return loop
    }

    /// Kills the process of a loop: nothing of it runs any more.
    public func kill(_ loop: EventLoop) { loops.removeAll { $0 === loop } }

    /// Runs the world until `done` returns true.
    ///
    /// - Parameter limit: the longest virtual time.
    /// - Returns: false if nothing more can happen within the limit.
    public func run(for limit: Duration, until done: () -> Bool) -> Bool {
        let end = time.instant() + limit
        while !done() {
            if turn() { continue }
            guard let next = loops.compactMap(\.nextDeadline).min(), next <= end else { return false }
            time.advance(to: next)
        }
        return true
    }

    /// Runs one turn of a loop that has work; false if none has.
    private func turn() -> Bool {
        var order = Array(loops.indices)
        var chance = chance
        order.shuffle(using: &chance)
        for index in order where loops[index].turn() { return true }
        return false
    }
}

/// A simulated network between a client and a handler, with a latency in each direction.
public enum SimulatedNetwork {
    /// Sends a request and returns the answer; nil if none arrived in time. The client cannot know
    /// whether the handler processed the request.
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

/// Runs a reply as an HTTP/2 stream does, without a stream.
public enum RunningReply {
    public static func run(
        _ reply: Reply, on loop: EventLoop, respond: @escaping @Sendable (Response) -> Void
    ) {
        switch reply {
        case .now(let response): respond(response)
        case .later(let deadline, let late, let work):
            let once = Once(respond)
            let timer = loop.schedule(after: deadline) { once.give(late()) }
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

/// A receiver of one value: the first value counts, and later ones are dropped.
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
