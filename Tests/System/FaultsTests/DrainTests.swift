import EventLoop
import FakePushServices
import Glibc
import HTTP2
import JSON
import Synchronization
import TestSupport
import Testing

/// SIGTERM: requests in progress are finished, new ones get a clear refusal, and the process ends soon.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct DrainTests {
    @Test(arguments: KillTests.stores) func drainUnderLoadLosesNoRequest(_ store: StoreKind) async throws {
        let fixture = try await Fixture.start(store)
        var tokens: [String] = []
        for user in 0..<4 { tokens.append(try await fixture.enrol("user-\(user)").token) }
        let waiting = try await fixture.enrol("waiting")
        let login = try await fixture.login(waiting.token)
        let load = Load()
        let holding = try await fixture.shop.line()
        async let held = holding.send(
            "POST", "/auth", ["challenge": .string(login.challenge)], fields: ["prefer": "wait=60"])
        _ = try await holding.send("GET", "/user/waiting").get()

        try await withThrowingTaskGroup(of: Void.self) { group in
            for token in tokens {
                let line = try await fixture.shop.line()
                group.addTask { await load.ask(token, over: line) }
            }
            await load.gate.answers(60)
            let ended = await fixture.relay.stop()
            #expect(ended.status == 0)
            #expect(ended.errors.contains("event=daemon.stopped"))
            try await group.waitForAll()
        }
        // The website gets the current state, and asks again.
        let answer = try await held.get()
        #expect(answer.status == 200 && answer["login"] == "wait", "\(answer)")
        #expect(await holding.state != .open)

        let (acknowledged, lost) = load.result
        #expect(lost == [])
        #expect(acknowledged.count >= 50)
        try await fixture.relay.restart()
        try Ledger.read(fixture.relay) { ledger in
            try ledger.check()
            let stored = Set(try ledger.texts("SELECT lower(hex(id)) FROM challenge"))
            #expect(Set(acknowledged).isSubset(of: stored))
        }
        #expect(try await waiting.phone.approve(login)["login"] == "success")
    }

    /// Logins over one connection each, until the relay accepts no more.
    private final class Load: Sendable {
        let gate = Gate()
        private let acknowledged = Mutex<[String]>([])
        private let lost = Mutex<[String]>([])

        var result: (acknowledged: [String], lost: [String]) { (acknowledged.withLock { $0 }, lost.withLock { $0 }) }

        func ask(_ token: String, over line: ClientConnection) async {
            while true {
                switch await line.send("POST", "/login", ["token": .string(token)]) {
                case .success(let reply):
                    gate.answered()
                    if reply.status == 201, let challenge = reply["challenge"] {
                        acknowledged.withLock { $0.append(challenge) }
                    } else {
                        lost.withLock { $0.append("\(reply)") }
                    }
                case .failure(.notSent): return
                case .failure(.ambiguous(let reason)):
                    lost.withLock { $0.append(reason) }
                    return
                }
            }
        }
    }

    /// Requests in progress end before the store is closed, even if their clients give up at the first GOAWAY.
    @Test func noRequestMeetsAClosedStoreDuringDrain() async throws {
        let fixture = try await Fixture.start()
        var tokens: [String] = []
        for user in 0..<4 { tokens.append(try await fixture.enrol("user-\(user)").token) }
        for _ in 0..<8 {
            let load = Load()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for token in tokens {
                    let line = try await fixture.shop.line()
                    await line.giveUpAtGoAway()
                    group.addTask { await load.ask(token, over: line) }
                }
                await load.gate.answers(16)
                #expect(await fixture.relay.stop().status == 0)
                try await group.waitForAll()
            }
            // No request was answered with a 5xx status.
            #expect(!load.result.lost.contains { $0.hasPrefix("5") }, "\(load.result.lost)")
            try await fixture.relay.restart()
        }
        let lines = fixture.relay.log.split(separator: "\n")
        #expect(!lines.contains { $0.contains("the store is closed") })
        #expect(!lines.contains { $0.contains("status=5") })
    }

    /// Leases on entries that could not be sent are released, so the next relay need not first declare this one
    /// dead.
    @Test(arguments: KillTests.stores) func leasedEntriesPassToTheNextRelayAtOnce(_ store: StoreKind) async throws {
        let apple = try await TestAPNs.start()
        let fixture = try await Fixture.start(store, apple: apple)
        let (token, phone) = try await fixture.enrol("anna", pushToken: Fixture.pushToken("dead"))
        apple.service.script("dead", .silence)
        let login = try await fixture.login(token)
        let unanswered = try #require(try await apple.service.nextRequest().push)
        #expect(await fixture.relay.stop().status == 0)
        #expect(try Ledger.read(fixture.relay) { try $0.number("SELECT count(*) FROM relay") } == 0)
        #expect(
            try Ledger.read(fixture.relay) { try $0.number("SELECT count(*) FROM outbox WHERE holder IS NOT NULL") }
                == 0)
        try await fixture.relay.restart()
        // No dead relay remains for which another one would have to wait.
        let push = try await apple.service.next()
        #expect(push.id == unanswered.id)
        try await fixture.finish(login, by: phone)
    }

    /// A locked store delays the end by seconds; a second signal ends the process at once.
    @Test(arguments: [SIGTERM, SIGINT]) func secondSignalStopsTheRelayAtOnce(_ signal: Int32) async throws {
        let fixture = try await Fixture.start()
        let lock = try await StoreLock.take(fixture.relay)
        fixture.relay.signal(SIGTERM)
        try await fixture.relay.logged("event=daemon.stopping")
        fixture.relay.signal(signal)
        let ended = await fixture.relay.ended()
        #expect(ended.status == 1)
        #expect(ended.errors.contains("event=daemon.aborted"))
        #expect(!ended.errors.contains("event=daemon.stopped"))
        await lock.release()
        try await fixture.relay.restart()
        #expect(try await fixture.anyone.send("GET", "/ready").status == 200)
    }
}
