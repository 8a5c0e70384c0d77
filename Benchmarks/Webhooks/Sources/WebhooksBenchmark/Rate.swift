import Couriers
import Crypto
import Domain
import EventLoop
import Glibc
import Measuring
import Relay
import Storage
import Webhooks
import World

/// Measures how many webhooks a second one website gets that answers at once. Each round fills the
/// outbox with the ends of COUNT logins, and measures until the store has settled all of them. In turn
/// with it, the courier's client sends as many requests to the same receiver by itself.
func rate(_ url: String, rounds: Int, count: Int) async throws {
    let group = try LoopGroup.start(count: 2, time: SystemTime())
    let now = SystemTime().now()
    let authority = try CertificateAuthority.create(commonName: "websites", days: 10, at: now)
    let rig = try await Rig(url, on: group.loops[0], authority: try authority.certificatePEM())
    let receiver = Receiver()
    let address = try await receiver.listen(
        on: group.loops[1], as: try authority.issueServer(names: ["localhost"], days: 10, at: now))
    let website = try await rig.website("fast", webhook: address)
    let users = try await rig.users(min(count, 1000), of: website)
    // The webhooks about the new phones open the connections, and do not count.
    try await rig.sendWaiting()
    await rig.pause()
    let engine = url.prefix { $0 != ":" }
    var (rates, ratios): ([Double], [Double]) = ([], [])
    for round in 1...rounds {
        try await rig.fill(users, of: website, count: count)
        let alone = try await measured(group.loops[1]) { try await rig.send(count, to: address, atOnce: 64) }
        let sent = try await measured(group.loops[1]) {
            try await rig.sendWaiting()
        }
        await rig.pause()
        guard receiver.told.count == count * round else {
            throw Unmeasured("\(receiver.told.count) webhooks arrived instead of \(count * round)")
        }
        rates.append(Double(count) / sent.seconds)
        ratios.append(alone.seconds / sent.seconds)
        let each = { (seconds: Double) in Int((seconds / Double(count) * 1e6).rounded()) }
        print(
            "\(engine) rate round \(round): \(Int(rates[round - 1])) webhooks/s, client alone "
                + "\(Int(Double(count) / alone.seconds)) requests/s; processor time each: relay \(each(sent.rest)) us, "
                + "receiver \(each(sent.receiver)) us; client alone \(each(alone.rest)) us, "
                + "receiver \(each(alone.receiver)) us")
    }
    print("\(engine) median: \(Int(median(rates))) webhooks/s, to the client alone \(hundredths(median(ratios)))")
    await rig.end()
    exit(0)
}

/// The time of a measurement, and the processor time of the receiver's thread and of all others.
private struct Taken {
    var (seconds, receiver, rest) = (0.0, 0.0, 0.0)
}

private func measured(_ receiver: EventLoop, _ work: () async throws -> Void) async throws -> Taken {
    let own = await receiver.perform { clock(CLOCK_THREAD_CPUTIME_ID) }
    let (all, start) = (clock(CLOCK_PROCESS_CPUTIME_ID), clock(CLOCK_MONOTONIC))
    try await work()
    let seconds = clock(CLOCK_MONOTONIC) - start
    let whole = clock(CLOCK_PROCESS_CPUTIME_ID) - all
    let part = await receiver.perform { clock(CLOCK_THREAD_CPUTIME_ID) } - own
    return Taken(seconds: seconds, receiver: part, rest: whole - part)
}

private func clock(_ id: clockid_t) -> Double {
    var now = timespec()
    clock_gettime(id, &now)
    return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
}

extension Rig {
    /// Ends COUNT logins while the relay sends nothing.
    fileprivate func fill(_ users: [UserToken], of website: Website, count: Int) async throws {
        for start in stride(from: 0, to: count, by: users.count) {
            let some = Array(users.prefix(count - start))
            let challenges = try await ask(some, of: website)
            _ = try await each(challenges.indices) { number, rig in
                try await rig.approve(challenges[number], by: website)
            }
        }
    }

    /// Returns when the relay has sent all webhooks, and the store has recorded that.
    fileprivate func sendWaiting() async throws {
        await begin()
        while try await on({ try await $0.waiting() }) > 0 {
            await loop.perform { await self.loop.sleep(for: .milliseconds(50)) }
        }
    }

    /// Sends requests with the courier alone.
    fileprivate func send(_ count: Int, to url: String, atOnce width: Int) async throws {
        let body = Array(#"{"type":"alone","data":"\#(String(repeating: "x", count: 600))"}"#.utf8)
        let turns = Measuring.Turns()
        let courier = courier
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<width {
                group.addTask {
                    try await self.on { rig in
                        while turns.next() < count {
                            let request = WebhookRequest(
                                id: rig.relay.operations.draw(), url: url,
                                fields: [("content-type", "application/json")], body: body)
                            var outcome = await courier.send(request)
                            // The server may end a connection. The relay sends such a webhook again, too.
                            if outcome.meaning != .delivered { outcome = await courier.send(request) }
                            guard outcome.meaning == .delivered else { throw Unmeasured("\(outcome)") }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// The number of webhooks about logins that are not settled.
    fileprivate func waiting() async throws -> Int {
        Int(try await store.run(Script("count", reads: [unsettled()]))[0].first?.integer("count") ?? 0)
    }
}

private let unsettled = Statement("SELECT count(*) AS count FROM outbox WHERE kind = 'webhook'")
