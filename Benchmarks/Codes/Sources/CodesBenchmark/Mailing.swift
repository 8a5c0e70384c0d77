import Couriers
import Curl
import Domain
import EventLoop
import Log
import Measuring
import Relay
import Storage
import Synchronization
import Templates
import World

/// Measures codes by mail: the relay takes them from the outbox, delivers them to a mail server,
/// and records the result. In turn with it, the courier's client sends as many mails by itself, over
/// as many connections. Prints the mails per second of both.
func mail(_ url: String, on loop: EventLoop, count: Int, port: UInt16) async throws {
    guard let from = MailAddress("login@example.com"), let address = SMTPAddress("smtp://127.0.0.1:\(port)") else {
        throw Unmeasured("no sender")
    }
    let rig = try await Rig(url, on: loop)
    defer { rig.store.close() }
    let time = SystemTime()
    let courier = MailCourier(
        client: SMTPClient(SMTPServer(address), time: time), from: from, catalog: CurrentCatalog(), time: time,
        log: Log(minimum: .warning, time: time))
    defer { courier.close() }
    let client = SMTPClient(SMTPServer(address), time: time)
    defer { client.close() }
    let body = Array(mailAlone.utf8)
    try await sending(.mail, rig, count: count, couriers: MessageCouriers(mail: courier)) {
        let transfer = SMTPTransfer(from: from.address, to: "user@example.com", data: body)
        if case .failure(let failure) = await client.send(transfer) { throw Unmeasured("\(failure)") }
    }
}

/// A mail about as long as a code's.
private let mailAlone =
    "From: The Shop <login@example.com>\r\nTo: user@example.com\r\nSubject: Your code\r\n\r\n"
    + String(repeating: "Somebody is logging in with your account. The code is below.\r\n", count: 18)

/// The part of a measurement that sends one message without the outbox.
typealias SendingAlone = @Sendable () async throws -> Void

/// Fills the outbox with a code for each user, and measures how fast a relay empties it, and how fast
/// the client alone sends as many messages.
///
/// - Parameter atOnce: the number of messages that are given to the client at once.
func sending(
    _ kind: MessageKind, _ rig: Rig, count: Int, atOnce: Int = 64, couriers: MessageCouriers,
    alone: @escaping SendingAlone
) async throws {
    try await rig.time(0..<count, atOnce: 64) { number in
        _ = try await rig.register(
            number, email: kind == .mail ? "user\(number)@example.com" : nil,
            phone: kind == .sms ? "+4915\(1_000_000_000 + number)" : nil)
        _ = try await rig.ask(number)
    }
    let relay = try rig.relay(couriers)
    let (loop, store, time) = (rig.loop, rig.store, SystemTime())
    let seconds = try await rig.time(0..<count, atOnce: atOnce) { _ in try await alone() }
    let rate = try await Rig.on(loop) {
        await rig.relay.deregister()
        await relay.runHeartbeat()
        let waiting = try await left(kind, store)
        guard waiting == count else { throw Unmeasured("\(waiting) messages wait instead of \(count)") }
        let start = time.instant()
        // The entries are processed as in the daemon.
        let rounds = Rounds(relay, loop)
        rounds.begin()
        defer { rounds.end() }
        while try await left(kind, store) > 0 { await loop.sleep(for: .milliseconds(20)) }
        return Double(count) / CodesBenchmark.seconds(since: start)
    }
    let accepted = try await Rig.on(loop) {
        try await number(settled(event: .text("\(kind.rawValue).settled")), in: store)
    }
    guard accepted == count else { throw Unmeasured("\(accepted) messages of \(count) were accepted") }
    print(whole(rate), whole(Double(count) / seconds))
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

private func left(_ kind: MessageKind, _ store: Store) async throws -> Int {
    try await number(waiting(kind: .text(kind.rawValue)), in: store)
}

private func number(_ statement: BoundStatement, in store: Store) async throws -> Int {
    Int(try await store.run(Script("count", reads: [statement]))[0].first?.integer("count") ?? 0)
}

private let waiting = Statement("SELECT count(*) AS count FROM outbox WHERE kind = :kind")
private let settled = Statement("SELECT count(*) AS count FROM audit WHERE event = :event AND outcome = 'accepted'")
