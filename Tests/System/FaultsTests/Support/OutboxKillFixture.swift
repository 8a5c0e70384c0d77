import EventLoop
import JSON
import Storage
import Synchronization
import TestSupport
import Testing
import World

/// A message that a user must get, and the moment of its kill.
struct ExpectedMessage {
    let moment: OutboxKillTests.Moment
    let number: Int
    var challenge = ""

    var username: String { "\(moment)-\(number)" }
    var key: String { "login-\(number)" }
    /// The address, which tells the mail server at which step to stop.
    var address: String {
        let step = moment == .refusing ? OutboxKillTests.Moment.envelope : moment
        return "\(step)-\(number)@\(moment.isRefused ? "gone." : "")example.org"
    }
    /// The number. The gateway refuses numbers that begin with +49300.
    var phone: String? {
        guard moment == .next || moment == .texted else { return nil }
        let digits = String(number)
        return (moment == .next ? "+49300" : "+49151") + String(repeating: "0", count: 7 - digits.count) + digits
    }
    var factor: String { moment == .texted ? "sms" : "mail" }
}

/// A relay that is killed repeatedly, with its mail server and SMS gateway.
final class OutboxKillFixture: Sendable {
    private struct State {
        var tally: [OutboxKillTests.Moment: Int] = [:]
        var messages = 0
        /// Duplicates, by the moment of the kill.
        var again: [OutboxKillTests.Moment: Int] = [:]
        var lost = 0
        /// The number of killed relays that had leased entries of a dead relay.
        var takenUp = 0
        var dead = 0
        var numbers = 0
    }

    private let fixture: Fixture
    private let mails: HoldingMailServer
    private let gateway: TestGateway
    private let chance: SeededRandomness
    private let gate = Gate()
    private let state = Mutex(State())
    private var relay: RunningRelay { fixture.relay }

    static func start(_ store: StoreKind, seed: UInt64) async throws -> OutboxKillFixture {
        let mails = try await HoldingMailServer.start()
        let met = Mutex<Set<String>>([])
        let gateway = try await TestGateway { asked in
            let number = asked.query["to"] ?? ""
            if number.hasPrefix("49300") { return .status(422) }
            return met.withLock { $0.insert(number).inserted } ? .silence : .status(200)
        }
        let fixture = try await Fixture.start(store) { settings in
            try settings.set("mail.url", to: "smtp://127.0.0.1:\(mails.port)")
            try settings.set("mail.from", to: "login@example.org")
            try settings.set("metrics.listen", to: "127.0.0.1:0")
            try settings.set("sms.allow", to: "[\"+49\"]")
            let url = "\(gateway.url)/?to={number}&text={text}&id={id}"
            try settings.set("sms.gateways", to: "[{name: one, kind: http, url: \"\(url)\", refused: [422]}]")
        }
        try await fixture.relay.tool("website", "edit", Fixture.website, "--lifetime", "600", "--code-deadline", "none")
        return OutboxKillFixture(fixture, mails, gateway, SeededRandomness(seed: seed))
    }

    private init(_ fixture: Fixture, _ mails: HoldingMailServer, _ gateway: TestGateway, _ chance: SeededRandomness) {
        self.fixture = fixture
        self.mails = mails
        self.gateway = gateway
        self.chance = chance
    }

    var kills: Int { state.withLock { $0.tally.values.reduce(0, +) } }

    func summary(_ store: StoreKind) -> String {
        func list(_ counts: [OutboxKillTests.Moment: Int]) -> String {
            let all = OutboxKillTests.Moment.allCases.filter { counts[$0] ?? 0 > 0 }.map { "\($0) \(counts[$0] ?? 0)" }
            return "\(counts.values.reduce(0, +)) (\(all.joined(separator: ", ")))"
        }
        return state.withLock { state in
            "outbox kills on \(store): \(list(state.tally)); \(state.messages) messages came, \(state.lost) were lost; "
                + "once more, under the same id: \(list(state.again)); \(state.dead) are dead, as they should be"
        }
    }

    // MARK: The kills

    /// Sends a message to a new user, kills the relay at that moment, and starts another one.
    func killRelay(at moment: OutboxKillTests.Moment) async throws -> ExpectedMessage {
        let number = state.withLock { state in
            state.numbers += 1
            return state.numbers
        }
        var message = ExpectedMessage(moment: moment, number: number)
        var user: JSONObject = ["username": .string(message.username), "email": .string(message.address)]
        if let phone = message.phone { user.set("phone", .string(phone)) }
        let (token, code) = try Fixture.registered(try await fixture.shop.send("POST", "/register", user))
        if moment.isAnnouncement {
            try await announce(message, token, code)
        } else {
            try await login(message)
        }
        try await killAndRestart(at: moment)
        if !moment.isAnnouncement {
            // The website never saw the answer, so it repeats the request.
            let answer = try await fixture.shop.insist("POST", "/login", body(message), key: message.key, gate: gate)
            message.challenge = try Login(answer).challenge
        }
        return message
    }

    private func killAndRestart(at moment: OutboxKillTests.Moment) async throws {
        await relay.kill()
        mails.thaw()
        let lines = relay.log.split(separator: "\n")
        let start = lines.lastIndex { $0.contains("event=daemon.started") } ?? 0
        let hasTakenUp =
            relay.storage.isEmbedded == false && lines[start...].contains { $0.contains("event=relay.dead") }
        state.withLock { state in
            state.tally[moment, default: 0] += 1
            if hasTakenUp { state.takenUp += 1 }
        }
        try await relay.restart()
    }

    private func body(_ message: ExpectedMessage) -> JSONObject { ["username": .string(message.username)] }

    /// Requests a login, and returns at the moment of the kill.
    private func login(_ message: ExpectedMessage) async throws {
        switch message.moment {
        case .commit:
            let lock = try await StoreLock.take(relay)
            let line = try await fixture.shop.line()
            async let lost = line.send("POST", "/login", body(message), fields: ["idempotency-key": message.key])
            _ = try await line.send("GET", "/user/\(message.username)").get()
            await relay.kill()
            await lock.release()
            _ = await lost
        case .anywhere:
            let line = try await fixture.shop.line()
            async let lost = line.send("POST", "/login", body(message), fields: ["idempotency-key": message.key])
            await pause(below: 40_000)
            await relay.kill()
            _ = await lost
        case .asked:
            mails.freeze()
            _ = try await asked(message)
        case .leased:
            mails.freeze()
            _ = try await asked(message)
            await relay.kill()
            state.withLock { $0.tally[.asked, default: 0] += 1 }
            try await relay.restart()
            try await until {
                try self.relay.count(
                    "SELECT count(*) FROM outbox WHERE address = '\(message.address)' AND lease IS NOT NULL") == 1
            }
        case .stored: _ = try await relay.logged("event=mail.accepted challenge=\(try await asked(message))")
        case .next:
            _ = try await relay.logged("event=sms.refused challenge=\(try await asked(message))")
            await pause(below: 10_000)
        case .texted:
            _ = try await asked(message)
            // Counted before the check, so that no request is missed.
            var heard = gateway.asked.count
            while texts(message).isEmpty {
                await gateway.isAsked(heard + 1)
                heard = gateway.asked.count
            }
        case .unstored:
            _ = try await asked(message)
            try await answeredBehindALock(message)
        default:
            _ = try await asked(message)
            try await mails.holds(message.address)
        }
    }

    private func asked(_ message: ExpectedMessage) async throws -> String {
        try Login(try await fixture.shop.send("POST", "/login", body(message), key: message.key)).challenge
    }

    /// Binds a phone, which causes a notification to the user.
    private func announce(_ message: ExpectedMessage, _ token: String, _ code: String) async throws {
        let dead = try deadRows()
        _ = try await fixture.verify(try TestPhone(pushToken: Fixture.pushToken()), token: token, code: code)
        switch message.moment {
        case .announced: break
        case .refusing: try await mails.holds(message.address)
        case .dying: try await answeredBehindALock(message)
        default: try await until { try self.deadRows() > dead }
        }
    }

    /// Kills the relay after it has the mail server's answer and before it can store it.
    private func answeredBehindALock(_ message: ExpectedMessage) async throws {
        try await mails.holds(message.address)
        let lock = try await StoreLock.take(relay)
        let before = try await tries()
        try await mails.release()
        try await until { try await self.tries() > before }
        await relay.kill()
        await lock.release()
    }

    private func tries() async throws -> Int {
        let page = try await MetricsPage.curl(try await MetricsPage.address(of: relay), "/metrics")
        return try #require(MetricsPage.number("twoefay_messages_total", page))
    }

    private func deadRows() throws -> Int64 { try relay.count("SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL") }

    private func pause(below microseconds: UInt64) async {
        let moment = Duration.microseconds(Int64(chance.number(below: microseconds)))
        await Clients.loop.perform { await Clients.loop.sleep(for: moment) }
    }

    private func until(_ condition: () async throws -> Bool) async throws {
        while try await !condition() {
            await Clients.loop.perform { await Clients.loop.sleep(for: .milliseconds(50)) }
        }
    }

    // MARK: Results

    /// Waits until the result of every message is in the store.
    func settled(_ messages: [ExpectedMessage]) async throws {
        for message in messages where !message.moment.isAnnouncement {
            try await until { try await self.fixture.auth(message.challenge).steps.last == "sent" }
        }
        let left = "SELECT count(*) FROM outbox WHERE kind IN ('mail', 'sms') AND dead_at IS NULL"
        try await until { try self.relay.count(left) == 0 }
        try await mails.release()
    }

    private func texts(_ message: ExpectedMessage) -> [TestGateway.Asked] {
        gateway.asked.filter { "+\($0.query["to"] ?? "")" == message.phone }
    }

    /// Id and code of each copy of the message that arrived.
    private func arrived(_ message: ExpectedMessage) -> [(id: String, code: String?)] {
        guard message.factor == "sms" else {
            return mails.mails.filter { $0.to == message.address }.map { ($0.id, $0.code) }
        }
        return texts(message).map {
            ($0.query["id"] ?? "none", ($0.query["text"] ?? "").split(separator: " ").first.map(String.init))
        }
    }

    /// The log lines about the message, from all relays.
    private func log(of message: ExpectedMessage) -> String {
        relay.log.split(separator: "\n").filter {
            $0.contains("event=daemon.started") || $0.contains(message.challenge)
        }
        .joined(separator: "\n")
    }

    func check(_ message: ExpectedMessage) async throws {
        let arrived = arrived(message)
        let (ids, codes) = (Set(arrived.map(\.id)), Set(arrived.map(\.code)))
        // A relay that leased a dead relay's entry and was killed itself may have sent a duplicate.
        let expected = message.moment.arrivals
        let slack = expected == 0...0 ? 0 : state.withLock { $0.takenUp }
        #expect(
            (expected.lowerBound...expected.upperBound + slack).contains(arrived.count),
            "\(message): \(arrived), \(log(of: message))")
        state.withLock { state in
            state.messages += ids.count
            if arrived.count > 1 { state.again[message.moment, default: 0] += arrived.count - 1 }
            if arrived.isEmpty, !message.moment.isRefused { state.lost += 1 }
            if message.moment.isRefused { state.dead += 1 }
        }
        guard !message.moment.isRefused else { return }
        #expect(ids.count == 1 && !ids.contains("none"), "\(message): \(ids)")
        #expect(codes.count == 1, "\(message): \(codes)")
        guard !message.moment.isAnnouncement else { return }
        let code = try #require(codes.first ?? nil, "\(message)")
        let answer = try await fixture.shop.send(
            "POST", "/backup", ["challenge": .string(message.challenge), "otp": .string(code)])
        #expect(answer["login"] == "success" && answer["factor"] == message.factor, "\(message): \(answer)")
    }

    /// Checks that only refused messages are dead letters, that no finished entry is left, and that
    /// each message was settled once.
    func checkStore() throws {
        let (dead, messages) = state.withLock { (Int64($0.dead), Int64($0.messages)) }
        #expect(try deadRows() == dead)
        #expect(
            try relay.count("SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL AND event = 'device.bound'") == dead)
        #expect(try relay.count("SELECT count(*) FROM outbox WHERE dead_at IS NULL") == 0)
        #expect(try relay.count("SELECT count(*) FROM audit WHERE event = 'mail.dead'") == dead)
        #expect(
            try relay.count(
                "SELECT count(*) FROM audit WHERE event IN ('mail.settled', 'sms.settled') AND outcome = 'accepted'")
                == messages)
        try Ledger.read(relay) { try $0.check() }
    }
}
