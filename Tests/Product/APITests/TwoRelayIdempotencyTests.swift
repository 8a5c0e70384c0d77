import Bytes
import Domain
import HTTP
import JSON
import Log
import Relay
import Storage
import Synchronization
import TestSupport
import Testing
import World

@testable import API

/// Two relays over one store, and callers who come to either.
@Suite(.mayBlock) struct TwoRelayIdempotencyTests {
    /// Both know of each other, and have been running for a while.
    private func pair() async throws -> (APIRig, APIRig) {
        let one = try await APIRig(.mariadb)
        let two = try await APIRig(beside: one)
        for rig in [one, two] { try await rig.relay.on { await $0.runHeartbeat() } }
        one.relay.time.advance(by: .seconds(10))
        return (one, two)
    }

    private func key(_ text: String) -> [(String, String)] { [("idempotency-key", text)] }

    /// The second one judges the first by its beat, which moves no more.
    private func bury(by rig: APIRig) async throws {
        try await rig.relay.on { await $0.runHeartbeat() }
        for _ in 0..<10 {
            rig.relay.time.advance(by: .seconds(1))
            try await rig.relay.on { await $0.runHeartbeat() }
        }
        #expect(try rig.relay.count("SELECT count(*) FROM relay") == 1)
    }

    @Test func sameRequestAtTwoRelaysRunsOnce() async throws {
        let (one, two) = try await pair()
        let shop = try await one.site("shop")
        let there = Site(rig: two, certificate: shop.certificate)
        for number in 0..<10 {
            let user = "user-\(number)"
            _ = try await shop.register(user)
            let answers = await withTaskGroup(of: Response.self) { group in
                for copy in 0..<4 {
                    group.addTask {
                        await (copy % 2 == 0 ? shop : there).send(
                            "POST", "/login", ["username": .string(user)], fields: key(user))
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            let well = answers.filter { $0.status == 201 }
            #expect(Set(well.map(\.body)).count == 1, "\(answers.map(\.text))")
            for other in answers where other.status != 201 {
                #expect(other.status == 409 && other.fields["retry-after"] == "1", "\(other.text)")
            }
            // Whoever was told to wait has the same answer then.
            #expect(
                await there.send("POST", "/login", ["username": .string(user)], fields: key(user)).body == well[0].body)
        }
        #expect(try one.relay.count("SELECT count(*) FROM challenge") == 10)
    }

    /// Says how a request has ended, or that nobody carries it out any more.
    private static func ends(_ sql: String) -> Bool { sql.contains("idempotency SET") && !sql.contains("SET mac") }

    /// It has asked, and died before it could say so.
    @Test func requestOfADeadRelayIsFinishedByAnother() async throws {
        let (one, two) = try await pair()
        let shop = try await one.site("shop")
        let there = Site(rig: two, certificate: shop.certificate)
        _ = try await shop.register("bob")
        let mortal = try one.beside { sql in Self.ends(sql) }
        let before = Site(rig: mortal, certificate: shop.certificate)
        try await mortal.relay.on { [api = mortal.api] _ in await api.relay.runHeartbeat() }
        _ = await before.send("POST", "/login", ["username": "bob"], fields: key("k"))
        #expect(try one.relay.count("SELECT count(*) FROM challenge") == 1)
        let running = await there.send("POST", "/login", ["username": "bob"], fields: key("k"))
        #expect(running.status == 409 && running.code == "conflict", "\(running.text)")

        try await bury(by: two)
        let done = await there.send("POST", "/login", ["username": "bob"], fields: key("k"))
        #expect(done.status == 201, "\(done.text)")
        #expect(done.fields["idempotency-replayed"] == nil)
        #expect(try one.relay.text("SELECT lower(hex(id)) FROM challenge") == done["challenge"]?.string)
        #expect(await shop.send("POST", "/login", ["username": "bob"], fields: key("k")).body == done.body)
        #expect(try one.relay.count("SELECT count(*) FROM challenge") == 1)
    }

    /// A relay that could not tell the store that a request had ended tells it later: at the others it would run for as
    /// long as that relay lives.
    @Test func unansweredIdempotentRequestIsReleasedLater() async throws {
        let (one, two) = try await pair()
        let shop = try await one.site("shop")
        let there = Site(rig: two, certificate: shop.certificate)
        let users = ["ada", "bob", "eve"]
        for user in users { _ = try await shop.register(user) }
        let isAway = Mutex(true)
        let deaf = try one.beside { sql in isAway.withLock { $0 } && Self.ends(sql) }
        try await deaf.relay.on { [api = deaf.api] _ in await api.relay.runHeartbeat() }
        var asked: [Response] = []
        for user in users {
            asked.append(
                await Site(rig: deaf, certificate: shop.certificate)
                    .send("POST", "/login", ["username": .string(user)], fields: key(user)))
        }
        #expect(asked.allSatisfy { $0.status == 201 }, "\(asked.map(\.text))")
        // Not while it is away; and not with the beat, which is not to wait for it.
        try await deaf.relay.on { [api = deaf.api] _ in await api.relay.releaseLeft() }
        isAway.withLock { $0 = false }
        try await deaf.relay.on { [api = deaf.api] _ in await api.relay.runHeartbeat() }
        #expect(await there.send("POST", "/login", ["username": "bob"], fields: key("bob")).status == 409)
        try await deaf.relay.on { [api = deaf.api] _ in await api.relay.releaseLeft() }
        for (user, asked) in zip(users, asked) {
            let again = await there.send("POST", "/login", ["username": .string(user)], fields: key(user))
            #expect(again.status == 201 && again["challenge"] == asked["challenge"], "\(again.text)")
        }
        #expect(try one.relay.count("SELECT count(*) FROM challenge") == 3)
    }

    /// Each relay remembers the proofs that it has taken itself. What they change is changed once all the same.
    @Test func replayedProofAtAnotherRelayChangesNothing() async throws {
        let (one, two) = try await pair()
        let website = try await one.relay.website("shop")
        let bound = try await one.relay.enrolled("bob", at: website)
        let proof = try one.proof(bound.phone, path: "/device")
        #expect(await one.present(proof, path: "/device", body: ["name": "Mine"]).status == 200)
        _ = await two.present(proof, path: "/device", body: ["name": "Theirs"])
        _ = await two.present(proof, path: "/device", body: ["name": "Theirs"])
        #expect(try one.relay.text("SELECT name FROM device") == "Mine")
        #expect(try one.relay.count("SELECT count(*) FROM audit WHERE event = 'device.changed'") == 1)
        // The phone's next proof is another one, under the same nonce or another.
        for name in ["First", "Second"] {
            let next = try two.proof(bound.phone, path: "/device")
            #expect(await two.present(next, path: "/device", body: ["name": .string(name)]).status == 200)
            #expect(try one.relay.text("SELECT name FROM device") == name)
        }
        // A proof of its own for each: the same `jti` under another nonce is not the one that was used.
        one.relay.time.advance(by: .seconds(600))
        let late = try one.proof(bound.phone, path: "/device") { $0["jti"] = "one" }
        #expect(await one.present(late, path: "/device", body: ["name": "Third"]).status == 200)
        one.relay.time.advance(by: .seconds(600))
        let later = try two.proof(bound.phone, path: "/device") { $0["jti"] = "one" }
        #expect(await two.present(later, path: "/device", body: ["name": "Fourth"]).status == 200)
        #expect(try one.relay.text("SELECT name FROM device") == "Fourth")
    }
}
