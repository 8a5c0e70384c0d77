import Couriers
import Curl
import Domain
import EventLoop
import Log
import Measuring
import Relay
import Storage
import Templates
import World

/// Measures codes by mail: the relay takes them from the outbox, delivers them to a mail server,
/// and records the result. Prints the mails per second.
func mail(_ url: String, on loop: EventLoop, count: Int, port: UInt16) async throws {
    let rig = try await Rig(url, on: loop)
    defer { rig.store.close() }
    try await rig.time(0..<count, atOnce: 64) { number in
        _ = try await rig.register(number, email: "user\(number)@example.com")
        _ = try await rig.ask(number)
    }
    guard let from = MailAddress("login@example.com"), let address = SMTPAddress("smtp://127.0.0.1:\(port)") else {
        throw Unmeasured("no sender")
    }
    let time = SystemTime()
    let courier = MailCourier(
        client: SMTPClient(SMTPServer(address), time: time), from: from, catalog: CurrentCatalog(), time: time,
        log: Log(minimum: .warning, time: time))
    defer { courier.close() }
    let relay = try rig.relay(mail: courier)
    let rate = try await Rig.on(loop) {
        await rig.relay.deregister()
        await relay.runHeartbeat()
        let waiting = try await left(rig.store)
        guard waiting == count else { throw Unmeasured("\(waiting) mails wait instead of \(count)") }
        let start = time.instant()
        // The entries are processed as in the daemon.
        let rounds = Rounds(relay, loop)
        rounds.begin()
        defer { rounds.end() }
        while try await left(rig.store) > 0 { await loop.sleep(for: .milliseconds(20)) }
        return Double(count) / seconds(since: start)
    }
    let accepted = try await Rig.on(loop) { try await number(settled, in: rig.store) }
    guard accepted == count else { throw Unmeasured("\(accepted) mails of \(count) were accepted") }
    print(whole(rate))
}

/// Processes the due entries every second.
private final class Rounds {
    private let relay: Relay
    private let loop: EventLoop
    private var timer: TimerID?

    init(_ relay: Relay, _ loop: EventLoop) {
        self.relay = relay
        self.loop = loop
    }

    func begin() {
        loop.spawn { [relay] in await relay.processDueEntries() }
        timer = loop.schedule(after: .seconds(1)) { self.begin() }
    }

    func end() {
        if let timer { loop.cancel(timer) }
    }
}

private func left(_ store: Store) async throws -> Int { try await number(waiting, in: store) }

private func number(_ statement: Statement, in store: Store) async throws -> Int {
    Int(try await store.run(Script("count", reads: [statement()]))[0].first?.integer("count") ?? 0)
}

private let waiting = Statement("SELECT count(*) AS count FROM outbox WHERE kind = 'mail'")
private let settled = Statement(
    "SELECT count(*) AS count FROM audit WHERE event = 'mail.settled' AND outcome = 'accepted'")
