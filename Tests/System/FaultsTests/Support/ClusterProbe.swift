import JSON
import Synchronization
import TestSupport
import World

/// Small writing requests without a pause, to measure how long no client is served.
final class ClusterProbe: Sendable {
    private struct Caller {
        let place: String
        var served: [Instant] = []
    }

    private let callers = Mutex<[Caller]>([])

    /// Sends requests at one port, while `goesOn` returns true.
    func ask(_ place: String, at port: UInt16, as roamer: MultiRelayClient, while goesOn: () -> Bool) async throws {
        let number = callers.withLock { callers in
            callers.append(Caller(place: place))
            return callers.count - 1
        }
        let name = "probe-\(number)"
        _ = try await roamer.insist("POST", "/register", ["username": .string(name)], key: name)
        var count = 0
        while goesOn() {
            try Task.checkCancellation()
            count += 1
            let reply = try? await roamer.send(
                "PATCH", "/user/\(name)", ["display_name": .string("\(count)")], at: port, deadline: .seconds(20))
            if reply?.status == 200 {
                let now = SystemTime().instant()
                callers.withLock { $0[number].served.append(now) }
            }
            await roamer.pause(20..<60)
        }
    }

    /// Returns the longest time without an answer between two moments: for all clients there together, and for the
    /// worst one.
    func gap(at place: String, from start: Instant, to end: Instant) -> (all: Duration, one: Duration) {
        let served = callers.withLock { callers in
            callers.filter { $0.place == place }.map { $0.served.filter { $0 >= start && $0 <= end } }
        }
        func longest(_ moments: [Instant]) -> Duration {
            let all = [start] + moments.sorted() + [end]
            return zip(all.dropFirst(), all).map { $0 - $1 }.max() ?? .zero
        }
        return (longest(served.flatMap(\.self)), served.map(longest).max() ?? .zero)
    }
}
