import EventLoop
import TestSupport

/// A scenario whose clients act on one loop of the simulated world, while the relay is killed and
/// started again at random moments.
protocol KilledScenario: AnyObject, Sendable {
    var world: SimulatedWorld { get }
    var clients: EventLoop { get }
    var relays: SimulatedRelays? { get }

    /// Adds a line to the trace.
    func note(_ what: String)
    /// Counts a client that has come to its end.
    func finish()
}

extension KilledScenario {
    func milliseconds(_ range: Range<Int64>) -> Duration { world.chance.milliseconds(range) }

    /// Starts a client.
    func onClients(_ body: @escaping @Sendable () async -> Void) {
        clients.post { [clients] in
            clients.spawn {
                await body()
                self.finish()
            }
        }
    }

    /// Kills the relay that many times, and starts it again.
    func disturb(_ kills: Int) async {
        for _ in 0..<kills {
            await clients.sleep(for: milliseconds(20..<2_500))
            note("kill")
            relays?.kill()
            await clients.sleep(for: milliseconds(1..<1_500))
            note("start")
            try? relays?.start()
        }
    }
}
