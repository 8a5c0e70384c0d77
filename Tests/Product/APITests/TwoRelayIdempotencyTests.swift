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

/// Two relays on one store, with clients that call either.
@Suite(.mayBlock) struct TwoRelayIdempotencyTests {
    /// Returns two relays that know each other and have been running for a while.
    private func pair() async throws -> (APIRig, APIRig) {
        let one = try await APIRig(.mariadb)
        let two = try await APIRig(beside: one)
        for rig in [one, two] { try await rig.relay.on { await $0.runHeartbeat() } }
        one.relay.time.advance(by: .seconds(10))
        return (one, two)
    }

    private func key(_ text: String) -> [(String, String)] { [("idempotency-key", text)] }

    /// Declares the other relay dead, because its heartbeat stands still.
    private func declareOtherDead(by rig: APIRig) async throws {
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
            // A client that was asked to retry gets the same answer afterwards.
            #expect(
                await there.send("POST", "/login", ["username": .string(user)], fields: key(user)).body == well[0].body)
        }
        #expect(try one.relay.count("SELECT count(*) FROM challenge") == 10)
    }

    /// Whether the statement records the end of a request, or releases it.
    private static func ends(_ sql: String) -> Bool { sql.contains("idempotency SET") && !sql.contains("SET mac") }

    /// The relay opened the challenge, and died before it could record that.
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

        try await declareOtherDead(by: two)
        let done = await there.send("POST", "/login", ["username": "bob"], fields: key("k"))
        #expect(done.status == 201, "\(done.text)")
        #expect(done.fields["idempotency-replayed"] == nil)
        #expect(try one.relay.text("SELECT lower(hex(id)) FROM challenge") == done["challenge"]?.string)
        #expect(await shop.send("POST", "/login", ["username": "bob"], fields: key("k")).body == done.body)
        #expect(try one.relay.count("SELECT count(*) FROM challenge") == 1)
    }

    /// A relay that could not record the end of a request in the store records it later. Otherwise the request
    /// would count as running at the others while that relay lives.
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
        // Not while the store is down; and not in the heartbeat, which must not wait for it.
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

    /// Each relay remembers only the proofs that it accepted itself. The change of a proof is still made once.
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
        // The phone's next proof is a different one, with the same nonce or another.
        for name in ["First", "Second"] {
            let next = try two.proof(bound.phone, path: "/device")
            #expect(await two.present(next, path: "/device", body: ["name": .string(name)]).status == 200)
            #expect(try one.relay.text("SELECT name FROM device") == name)
        }
        // A different proof: the same `jti` under another nonce is not the proof that was used.
        one.relay.time.advance(by: .seconds(600))
        let late = try one.proof(bound.phone, path: "/device") { $0["jti"] = "one" }
        #expect(await one.present(late, path: "/device", body: ["name": "Third"]).status == 200)
        one.relay.time.advance(by: .seconds(600))
        let later = try two.proof(bound.phone, path: "/device") { $0["jti"] = "one" }
        #expect(await two.present(later, path: "/device", body: ["name": "Fourth"]).status == 200)
        #expect(try one.relay.text("SELECT name FROM device") == "Fourth")
    }
}
