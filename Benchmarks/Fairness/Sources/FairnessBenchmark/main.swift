import EventLoop
import Glibc
import JSON
import Measuring
import Synchronization
import World

func hundredths(_ value: Double) -> String {
    let whole = Int((value * 100).rounded())
    return "\(whole / 100).\(whole % 100 < 10 ? "0" : "")\(whole % 100)"
}

/// Runs logins of the quiet website, one after the other. Returns the milliseconds that each one
/// took.
func logins(_ site: Site, _ tokens: [String], seconds: Int) async throws -> [Double] {
    let time = SystemTime()
    let failure = Mutex<String?>(nil)
    let taken = await site.loop.perform { () async -> [Double] in
        var taken: [Double] = []
        let end = time.instant() + .seconds(seconds)
        var number = 0
        while time.instant() < end {
            let sent = time.instant()
            let answer = await site.send("POST", "/login", ["token": .string(tokens[number % tokens.count])])
            number += 1
            guard let answer, answer.status == 201 else {
                failure.withLock { $0 = "a login was answered \(answer.map { "\($0.status)" } ?? "not at all")" }
                break
            }
            taken.append(Double((time.instant() - sent).wholeNanoseconds) / 1e6)
            // Without pauses, the quiet website would be a flood too.
            await site.loop.sleep(for: .milliseconds(5))
        }
        return taken
    }
    if let failure = failure.withLock({ $0 }) { throw Unmeasured(failure) }
    guard taken.count > 10 else { throw Unmeasured("\(taken.count) logins only") }
    return taken
}

/// Holds `count` requests on one challenge, and ends it. Returns the longest request of another
/// website meanwhile, and the time until the last held request ended, both in milliseconds. Also
/// returns the number of requests that were answered with a success.
func crowd(
    _ flood: Site, _ token: String, _ shop: Site, _ count: Int
) async throws -> (pause: Double, all: Double, answered: Int) {
    let time = SystemTime()
    let asked = await flood.loop.perform { await flood.send("POST", "/login", ["token": .string(token)]) }
    guard let challenge = asked?.body["challenge"]?.string else { throw Unmeasured("nobody was asked") }
    let (told, ended) = (Turns(), Turns())
    for _ in 0..<count {
        flood.loop.post {
            flood.loop.spawn {
                let answer = await flood.send("POST", "/auth", ["challenge": .string(challenge)], wait: 60)
                if answer?.body["login"]?.string == "success" { _ = told.next() }
                _ = ended.next()
            }
        }
    }
    // Sends requests behind the held ones on every connection, and waits for their answers. The
    // relay has then read the held requests.
    for _ in 0..<200 { _ = await flood.loop.perform { await flood.send("GET", "/user/nobody") } }
    let isOver = Mutex(false)
    async let pauses = shop.loop.perform { () async -> [Double] in
        var taken: [Double] = []
        while !isOver.withLock({ $0 }) {
            let sent = time.instant()
            guard await shop.send("GET", "/user/user-0") != nil else { break }
            taken.append(Double((time.instant() - sent).wholeNanoseconds) / 1e6)
        }
        return taken
    }
    let started = time.instant()
    // This request may have to wait for a stream, because the held requests use them. A connection
    // of the other loop would need this website's certificate.
    _ = await flood.loop.perform { await flood.send("POST", "/success", ["token": .string(token)]) }
    while ended.total < count, time.instant() - started < .seconds(60) {
        await flood.loop.perform { await flood.loop.sleep(for: .milliseconds(5)) }
    }
    let all = Double((time.instant() - started).wholeNanoseconds) / 1e6
    isOver.withLock { $0 = true }
    return (await pauses.max() ?? 0, all, told.total)
}

func main(_ words: [String]) async throws {
    guard words.count == 7, let port = UInt16(words[2]), let rounds = Int(words[3]), let seconds = Int(words[4]),
        let width = Int(words[5]), let held = Int(words[6])
    else { throw Unmeasured("DIRECTORY PORT ROUNDS SECONDS WIDTH HELD") }
    let group = try LoopGroup.start(count: 2, time: SystemTime())
    // The held requests fill all connections but the last, which carries the request that ends the
    // challenge.
    let connections = max(held / (Site.streams - 10) + 2, width / Site.streams + 1)
    let shop = try await Site("shop", directory: words[1], port: port, loop: group.loops[0], connections: 1)
    let flood = try await Site("flood", directory: words[1], port: port, loop: group.loops[1], connections: connections)
    // The flood gets only the processor time that the relay and the quiet website leave. Otherwise,
    // on shared cores, it would slow them by its own work and not by its requests.
    await flood.loop.perform { _ = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19) }
    let (mine, theirs) = (try await shop.users(200), try await flood.users(500))
    print("\(rounds) rounds of \(seconds) s, quiet and flooded in turn; floods of \(width) requests at the same time")
    var ratios: [Flood: [(p50: Double, p99: Double)]] = [:]
    for round in 1...rounds {
        for kind in Flood.allCases {
            let quiet = try await logins(shop, mine, seconds: seconds)
            let running = RunningFlood()
            async let over: Void = running.run(kind, flood, theirs, width: width)
            let flooded = try await logins(shop, mine, seconds: seconds)
            running.stop()
            await over
            let (p50, p99) = (
                (percentile(quiet, 0.5), percentile(flooded, 0.5)),
                (percentile(quiet, 0.99), percentile(flooded, 0.99))
            )
            ratios[kind, default: []].append((p50.1 / p50.0, p99.1 / p99.0))
            print(
                "round \(round), \(kind.rawValue): login p50 \(hundredths(p50.0)) -> \(hundredths(p50.1)) ms, p99 "
                    + "\(hundredths(p99.0)) -> \(hundredths(p99.1)) ms; flood \(running.counts.answered) answered, "
                    + "\(running.counts.refused) refused")
        }
    }
    for kind in Flood.allCases {
        let of = ratios[kind] ?? []
        print(
            "median, \(kind.rawValue): p50 x \(hundredths(median(of.map(\.p50)))), p99 x "
                + hundredths(median(of.map(\.p99))))
    }
    var pauses: [Double] = []
    for round in 1...rounds {
        let (pause, all, answered) = try await crowd(flood, theirs[round % theirs.count], shop, held)
        pauses.append(pause)
        print(
            "round \(round): \(answered) of \(held) held requests answered in \(Int(all)) ms, another website's longest "
                + "request meanwhile \(hundredths(pause)) ms")
    }
    print("median: longest pause \(hundredths(median(pauses))) ms")
    await shop.close()
    await flood.close()
    group.stopAndJoin()
}

try measure { try await main(CommandLine.arguments) }
