import Bytes
import EventLoop
import Glibc
import HTTP
import HTTP2
import JSON
import Log
import Measuring
import Synchronization
import TLS
import World

let connections = 100
/// The interval between two checks of a relay for changes by others, in microseconds.
let looking = 50_000

/// A login that waits for its answer.
struct Login: Sendable {
    let token: String
    let challenge: String
}

/// The time that a request waited for its answer, from two starting points.
struct Wake: Sendable {
    /// The time since the phone's answer was sent.
    let sinceSent: Duration
    /// The time since the phone's answer was confirmed; negative if the request was answered before
    /// that.
    let sinceTaken: Duration
}

func main(_ words: [String]) async throws {
    guard words.count == 10, let first = UInt16(words[2]), let second = UInt16(words[3]), let page = UInt16(words[4]),
        let pid = Int32(words[5]), let line = Int(words[6]), let stream = Int(words[7]), let count = Int(words[8]),
        let wakes = Int(words[9]), count >= 2 * wakes
    else { throw Unmeasured("DIRECTORY PORT PORT METRICS PID LINE STREAM COUNT WAKES, COUNT >= 2 WAKES") }
    let directory = words[1]
    let group = try LoopGroup.start(count: 1, time: SystemTime())
    let website = try Site(directory: directory, loop: group.loops[0])
    let relay = Process(pid: pid, loop: group.loops[0])
    let metrics = MetricsPage(port: page, loop: group.loops[0])

    print("\(count) requests, \(connections) connections × \(count / connections) streams; MariaDB")
    // The other relay creates the logins, so that their memory is not part of the measured relay.
    let elsewhere = try await website.connect(4, to: second)
    let logins = try await website.logins(count, over: elsewhere)
    let same = try await website.connect(1, to: first)
    let lines = try await website.connect(connections, to: first)
    let calm = try await relay.busy(for: .seconds(5))
    let before = try await relay.settledMemory()
    // A request is held for at most a minute. Everything from here on must end before that.
    let held = Held(count)
    for start in stride(from: 0, to: count, by: connections) {
        let end = min(start + connections, count)
        for number in start..<end {
            website.hold(logins[number], over: lines[number % connections]) { held.answered(number, $0) }
        }
        // The requests start in groups, because a burst of requests needs more memory than waiting
        // requests.
        try await metrics.wait(for: "twoefay_requests_held", toBe: end) { try held.check() }
    }
    let bytes = try await relay.settledMemory() - before
    print(
        "memory: \(bytes / count) bytes a request that waits; \(line) a connection that is idle, "
            + "\(stream) a stream on which its body does not come")
    let watching = try await relay.busy(for: .seconds(5))
    print("of a core, while nothing happens: \(percent(watching)) with all of them, \(percent(calm)) with none")

    // The logins are answered one after the other, spread over the connections.
    for (name, line, numbers, pause) in [
        ("the same relay", same[0], 0..<wakes, 0), ("another relay", elsewhere[0], wakes..<(2 * wakes), looking),
    ] {
        var taken: [Wake] = []
        for number in numbers {
            // The answer comes at a random moment between two checks, because waits end at a check.
            if pause > 0 { await group.loops[0].pause(.microseconds(Int.random(in: 0..<pause))) }
            taken.append(try await website.answer(logins[number], number, over: line, held))
        }
        print("answered through \(name), \(wakes) times:")
        print("  from the phone's answer until the request had its own: \(spread(taken.map(\.sinceSent)))")
        print("  since the phone knew that its answer counts: \(spread(taken.map(\.sinceTaken)))")
    }
    try held.check()
    // The connections must exist until here, because a released client closes its connection.
    await website.close(lines + same + elsewhere)
    group.stopAndJoin()
}

func spread(_ durations: [Duration]) -> String {
    let sorted = durations.sorted()
    let at = { (part: Double) in milliseconds(sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]) }
    return "p50 \(at(0.5)) ms, p99 \(at(0.99)) ms"
}

func milliseconds(_ duration: Duration) -> String {
    let tenths = Int((Double(duration.wholeNanoseconds) / 1e5).rounded())
    return "\(tenths < 0 ? "-" : "")\(abs(tenths) / 10).\(abs(tenths) % 10)"
}

func percent(_ share: Double) -> String {
    let tenths = Int((share * 1000).rounded())
    return "\(tenths / 10).\(tenths % 10) %"
}

try measure { try await main(CommandLine.arguments) }
