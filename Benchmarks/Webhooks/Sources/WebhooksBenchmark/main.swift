import Crypto
import Domain
import EventLoop
import Glibc
import Measuring
import Relay
import Synchronization
import World

private let usage = """
    usage: WebhooksBenchmark URL ROUNDS SECONDS RATE | rate URL ROUNDS COUNT
    (Benchmarks/Webhooks/run starts what is needed and gives all of it)
    """

/// A website with its server, and the users whose logins end.
struct Site: Sendable {
    let website: Website
    let users: [UserToken]
    let receiver: Receiver
}

/// The delays of B's webhooks in one phase, in milliseconds, in ascending order.
struct Stretch {
    let waits: [Double]

    func quantile(_ share: Double) -> Double { waits[min(Int(Double(waits.count) * share), waits.count - 1)] }
    var text: String { "p50 \(tenths(quantile(0.5))) ms, p99 \(tenths(quantile(0.99))) ms" }
}

/// Ends logins at both websites at a constant rate, whatever becomes of earlier ones. Returns the
/// delays of B's webhooks.
func stretch(_ rig: Rig, _ a: Site, _ b: Site, rate: Int) async throws -> Stretch {
    let (ofA, ofB) = (
        try await rig.ask(a.users, of: a.website), try await rig.ask(b.users, of: b.website)
    )
    let ends = Ends()
    try await rig.on { rig in
        let start = SystemTime().instant()
        for number in ofB.indices {
            for (challenge, site, isB) in [(ofA[number], a, false), (ofB[number], b, true)] {
                rig.loop.spawn {
                    do {
                        let at = try await rig.approve(challenge, by: site.website)
                        ends.note(isB ? challenge.text : nil, at)
                    } catch { ends.fail(error) }
                }
            }
            let due = start + .nanoseconds(1_000_000_000 / Int64(rate) * Int64(number + 1))
            await rig.loop.sleep(for: max(due - SystemTime().instant(), .zero))
        }
    }
    try await until("B was told of everything", on: rig.loop) {
        try ends.check()
        let told = b.receiver.told
        return ends.all.count == ofB.count && ends.all.keys.allSatisfy { told[$0] != nil }
    }
    let told = b.receiver.told
    let waits = ends.all.compactMap { id, committed in
        told[id].map { Double(($0 - committed).wholeNanoseconds) / 1e6 }
    }
    return Stretch(waits: waits.sorted())
}

/// The times at which the store confirmed the ends of B's logins.
private final class Ends: Sendable {
    private let state = Mutex((ends: [String: Instant](), failure: (any Error)?.none))

    var all: [String: Instant] { state.withLock { $0.ends } }

    func note(_ id: String?, _ at: Instant) {
        if let id { state.withLock { $0.ends[id] = at } }
    }

    func fail(_ error: any Error) { state.withLock { $0.failure = $0.failure ?? error } }

    func check() throws {
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }
}

func until(_ what: String, on loop: EventLoop, _ isSo: () throws -> Bool) async throws {
    for _ in 0..<3000 {
        if try isSo() { return }
        await loop.perform { await loop.sleep(for: .milliseconds(20)) }
    }
    throw Unmeasured("it was never so that \(what)")
}

func tenths(_ value: Double) -> String {
    let all = Int((value * 10).rounded())
    return "\(all / 10).\(abs(all % 10))"
}

func hundredths(_ value: Double) -> String {
    let all = Int((value * 100).rounded())
    return "\(all / 100).\(all % 100 < 10 ? "0" : "")\(all % 100)"
}

func main(_ words: [String]) async throws {
    if words.count == 5, words[1] == "rate", let rounds = Int(words[3]), rounds > 0, let count = Int(words[4]),
        count > 0
    {
        return try await rate(words[2], rounds: rounds, count: count)
    }
    guard words.count == 5, let rounds = Int(words[2]), rounds > 0, let seconds = Int(words[3]), seconds > 0,
        let rate = Int(words[4]), (1...1000).contains(rate)
    else { throw Unmeasured(usage) }
    let group = try LoopGroup.start(count: 3, time: SystemTime())
    let now = SystemTime().now()
    let authority = try CertificateAuthority.create(commonName: "websites", days: 10, at: now)
    let rig = try await Rig(words[1], on: group.loops[0], authority: try authority.certificatePEM())
    var sites: [Site] = []
    for (name, loop) in [("a", group.loops[1]), ("b", group.loops[2])] {
        let receiver = Receiver()
        let url = try await receiver.listen(
            on: loop, as: try authority.issueServer(names: ["localhost"], days: 10, at: now))
        let website = try await rig.website(name, webhook: url)
        let users = try await rig.users(seconds * rate, of: website)
        sites.append(Site(website: website, users: users, receiver: receiver))
    }
    let (a, b) = (sites[0], sites[1])
    await rig.begin()
    let store = words[1].prefix { $0 != ":" }
    // The first phase opens the connections and does one-time work, so it does not count.
    _ = try await stretch(rig, a, b, rate: rate)
    try await until("A was told of everything", on: rig.loop) { a.receiver.told.count == a.users.count }

    var (halves, tails): ([Double], [Double]) = ([], [])
    for round in 1...rounds {
        let calm = try await stretch(rig, a, b, rate: rate)
        try await until("A was told of everything", on: rig.loop) {
            a.receiver.told.count == a.users.count * 2 * round
        }
        a.receiver.hang()
        let beside = try await stretch(rig, a, b, rate: rate)
        let (taken, hung) = (a.receiver.told.count - a.users.count * 2 * round, a.receiver.hung)
        a.receiver.recover()
        // No webhook may be left when the next round begins.
        try await until("A was told of everything", on: rig.loop) {
            a.receiver.told.count == a.users.count * (2 * round + 1)
        }
        print(
            "\(store) round \(round): B while A is well \(calm.text); while A hangs \(beside.text) "
                + "(A took \(taken) of \(a.users.count), and left \(hung) calls without an answer)")
        halves.append(beside.quantile(0.5) / calm.quantile(0.5))
        tails.append(beside.quantile(0.99) / calm.quantile(0.99))
    }
    print("\(store) median: hanging to well, p50 \(hundredths(median(halves))), p99 \(hundredths(median(tails)))")
    await rig.end()
    exit(0)
}

do {
    try await main(CommandLine.arguments)
} catch {
    print("not measured: \(error)")
    exit(1)
}
