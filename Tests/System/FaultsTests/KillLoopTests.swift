import EventLoop
import FakePushServices
import Glibc
import JSON
import Synchronization
import TestSupport
import Testing
import World

/// Websites and phones that follow their guides, while their relay is killed at random moments again and again.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct KillLoopTests {
    @Test(arguments: [(StoreKind.file, 40), (.mariadb, 20)])
    func relayKilledAtRandomMomentsLosesNothing(_ store: StoreKind, rounds: Int) async throws {
        let seed =
            getenv("TWOEFAY_SEED").flatMap { UInt64(String(cString: $0)) } ?? SystemRandomness().number(below: .max)
        print("kill loop on \(store): TWOEFAY_SEED=\(seed)")
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(store, apple: apple) { try $0.set("audit.heads", to: "heads.jsonl") }
        let traffic = Traffic(fixture, seed: seed)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for user in 0..<6 { group.addTask { try await traffic.live("user-\(user)", seed: seed &+ UInt64(user)) } }
            group.addTask {
                for _ in 0..<rounds { try await traffic.disturb() }
                traffic.end()
            }
            try await group.waitForAll()
        }
        let logins = traffic.logins
        print("kill loop on \(store): \(logins.count) logins")
        #expect(logins.count >= 6)
        // The chain of every relay that was killed, whatever it was doing.
        #expect(try await fixture.relay.auditFindings() == [])
        try Ledger.read(fixture.relay) { ledger in
            try ledger.check()
            // Every challenge in the store is known to a client, with the result that the client got.
            #expect(try ledger.number("SELECT count(*) FROM challenge") == Int64(logins.count))
            let approved = try ledger.texts("SELECT lower(hex(id)) FROM challenge WHERE decision = 'approve'")
            #expect(Set(approved) == Set(logins.filter(\.approved).map(\.challenge)))
            let denied = try ledger.texts("SELECT lower(hex(id)) FROM challenge WHERE decision = 'deny'")
            #expect(Set(denied) == Set(logins.filter { !$0.approved }.map(\.challenge)))
        }
        // Duplicates share an id.
        var ids: [String: Set<String>] = [:]
        while let push = try? await apple.service.next(within: .zero) {
            ids[push.challenge ?? "", default: []].insert(push.id)
        }
        #expect(!ids.isEmpty)
        for (challenge, ids) in ids { #expect(ids.count == 1, "pushes of \(challenge): \(ids)") }
        #expect(Set(ids.keys).isSubset(of: Set(logins.map(\.challenge))))
    }
}

private final class Traffic: Sendable {
    struct Ended: Sendable {
        let challenge: String
        let approved: Bool
    }

    private let fixture: Fixture
    private let gate = Gate()
    private let chance: SeededRandomness
    private let ended = Mutex<[Ended]>([])
    private let isOver = Mutex(false)

    init(_ fixture: Fixture, seed: UInt64) {
        self.fixture = fixture
        chance = SeededRandomness(seed: seed)
    }

    var logins: [Ended] { ended.withLock { $0 } }
    func end() { isOver.withLock { $0 = true } }

    /// Kills the relay at a random moment, and starts it again.
    func disturb() async throws {
        await gate.answers(1 + Int(chance.number(below: 40)))
        let moment = Duration.microseconds(Int64(chance.number(below: 10_000)))
        await Clients.loop.perform { await Clients.loop.sleep(for: moment) }
        gate.shut()
        await fixture.relay.kill()
        try await fixture.relay.restart()
        gate.open()
    }

    /// Enrols a user with a phone, and then runs one login after the other.
    func live(_ name: String, seed: UInt64) async throws {
        let chance = SeededRandomness(seed: seed)
        let (token, phone) = try await enrol(name)
        var number = 0
        repeat {
            number += 1
            let body: JSONObject = ["token": .string(token), "service": "web"]
            let key = "\(name)-\(number)"
            let login = try Login(try await fixture.shop.insist("POST", "/login", body, key: key, gate: gate))
            let again = try Login(try await fixture.shop.insist("POST", "/login", body, key: key, gate: gate))
            #expect(again == login)
            let approves = chance.number(below: 4) > 0
            let path = approves ? "/success" : "/failure"
            let answer = try await phone.client.insist("POST", path, phone.answer(login), gate: gate)
            // 409: an earlier attempt was accepted, and its answer lost.
            #expect(answer.status == 200 || answer["code"] == "already_decided", "\(answer)")
            let challenge: JSONObject = ["challenge": .string(login.challenge)]
            let result = try await fixture.shop.insist("POST", "/auth", challenge, gate: gate)
            #expect(result["login"] == (approves ? "success" : "failure"), "\(result)")
            ended.withLock { $0.append(Ended(challenge: login.challenge, approved: approves)) }
        } while !isOver.withLock { $0 }
    }

    private func enrol(_ name: String) async throws -> (token: String, phone: Phone) {
        let body: JSONObject = ["username": .string(name)]
        let registered = try await fixture.shop.insist("POST", "/register", body, key: "\(name)-r", gate: gate)
        let token: String
        let code: String
        if registered.status == 201 {
            (token, code) = try Fixture.registered(registered)
        } else {
            // The answer with the code was lost, so the website requests another code.
            try #require(registered["code"] == "shown_once", "\(registered)")
            token = try #require(try await fixture.shop.insist("GET", "/user/\(name)", gate: gate)["token"])
            code = try await activation(name)
        }
        let device = try TestPhone(pushToken: Fixture.pushToken())
        let proof = try fixture.verifyBody(device, token: token, code: code)
        return (token, try fixture.phone(device, try await fixture.anyone.insist("POST", "/verify", proof, gate: gate)))
    }

    private func activation(_ name: String) async throws -> String {
        for attempt in 0..<100 {
            let reply = try await fixture.shop.insist(
                "POST", "/user/\(name)/activation", key: "\(name)-a\(attempt)", gate: gate)
            if let code = reply["code"], reply.status == 201 { return code }
        }
        throw ReconnectingClient.NoAnswer(request: "activation")
    }
}
