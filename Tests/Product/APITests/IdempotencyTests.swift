import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing

/// Requests that are repeated under their Idempotency-Key.
struct IdempotencyTests {
    private func key(_ text: String) -> [(String, String)] { [("idempotency-key", text)] }

    @Test func repeatedRequestGetsTheSameAnswerAndChangesNothing() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        let body: JSONObject = ["username": "bob", "service": "Shop"]
        let first = await shop.send("POST", "/login", body, fields: key("one"))
        #expect(first.status == 201)
        #expect(first.fields["idempotency-replayed"] == nil)
        let second = await shop.send("POST", "/login", body, fields: key("one"))
        #expect(second.status == 201)
        #expect(second.body == first.body)
        #expect(second.fields["idempotency-replayed"] == "true")
        #expect(second.fields["content-type"] == "application/json")
        #expect(second.fields["request-id"] != first.fields["request-id"])
        #expect(try rig.relay.count("SELECT count(*) FROM challenge") == 1)
        await rig.relay.settled()
        #expect(rig.relay.pushes.sent.count == 1)
        // With another key, or without one, it is another request.
        #expect(await shop.send("POST", "/login", body, fields: key("two"))["challenge"] != first["challenge"])
        #expect(await shop.send("POST", "/login", body)["challenge"] != first["challenge"])
    }

    /// A login claims its key with its own change, unless it supersedes another one or may not be opened.
    @Test func everyKindOfLoginKeepsItsAnswer() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        _ = try await shop.enrol("eve")
        try rig.relay.execute("UPDATE user SET state = 'locked' WHERE username = 'eve'")
        let requests: [(body: JSONObject, key: String, status: Int)] = [
            (["username": "bob"], "usual", 201), (["username": "bob"], "superseding", 201),
            (["username": "eve"], "locked", 201), (["username": "nobody"], "unknown", 404),
        ]
        for round in 1...2 {
            for (body, name, status) in requests {
                let answer = await shop.send("POST", "/login", body, fields: key(name))
                #expect(answer.status == status, "\(name)")
                #expect((answer.fields["idempotency-replayed"] == "true") == (round == 2), "\(name)")
            }
        }
        #expect(try rig.relay.count("SELECT count(*) FROM challenge") == 3)
        let kept = "SELECT count(*) FROM idempotency i JOIN challenge c ON c.operation = i.operation"
        #expect(try rig.relay.count("\(kept) WHERE i.state = 'done' AND i.status = 201 AND i.holder IS NULL") == 3)
    }

    /// A program may add a key to every POST: a kept `wait` would never end.
    @Test func resultsAreNeverKept() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["number": "0"])
        let (_, phone) = try await shop.enrol("bob")
        let challenge = try #require(await shop.send("POST", "/login", ["username": "bob"])["challenge"])
        let first = await shop.send("POST", "/auth", ["challenge": challenge], fields: key("one"))
        #expect(first["login"] == "wait")
        #expect(await phone.send("POST", "/success", ["challenge": challenge]).status == 200)
        let second = await shop.send("POST", "/auth", ["challenge": challenge], fields: key("one"))
        #expect(second["login"] == "success" && second.fields["idempotency-replayed"] == nil)
    }

    @Test func loginUnderAKeyCountsOnceInTheLimits() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["limit-logins-minute": "3"])
        _ = try await shop.enrol("bob")
        // The later ones supersede the former.
        for number in 1...3 {
            let answer = await shop.send("POST", "/login", ["username": "bob"], fields: key("\(number)"))
            #expect(answer.status == 201)
        }
        #expect(await shop.send("POST", "/login", ["username": "bob"], fields: key("4")).status == 429)
        // A repetition is no login.
        #expect(await shop.send("POST", "/login", ["username": "bob"], fields: key("3")).status == 201)
    }

    @Test func differentBodyUnderTheKeyIsAMismatch() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        _ = try await shop.register("eve")
        #expect(await shop.send("POST", "/login", ["username": "bob"], fields: key("k")).status == 201)
        let others = [
            await shop.send("POST", "/login", ["username": "eve"], fields: key("k")),
            await shop.send("POST", "/login", ["username": "bob", "service": "x"], fields: key("k")),
            await shop.send("POST", "/login", ["username": "bob"], fields: key("k") + [("username", "bob")]),
        ]
        for other in others {
            #expect(other.status == 422)
            #expect(other.code == "idempotency_mismatch")
        }
        // Keys are separate for each route and website, but not for each path of one route.
        #expect(await shop.send("POST", "/user/bob/activation", fields: key("k")).status == 201)
        #expect(await shop.send("POST", "/user/eve/activation", fields: key("k")).status == 422)
        let bank = try await rig.site("bank")
        _ = try await bank.register("bob")
        #expect(await bank.send("POST", "/login", ["username": "bob"], fields: key("k")).status == 201)
    }

    @Test func secretsAreShownOnce() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let body: JSONObject = ["username": "bob"]
        #expect(await shop.send("POST", "/register", body, fields: key("r")).status == 201)
        let again = await shop.send("POST", "/register", body, fields: key("r"))
        #expect(again.status == 409)
        #expect(again.code == "shown_once")
        #expect(await shop.send("POST", "/user/bob/activation", fields: key("a")).status == 201)
        #expect(await shop.send("POST", "/user/bob/activation", fields: key("a")).code == "shown_once")
        #expect(try rig.relay.count("SELECT count(*) FROM activation") == 2)
    }

    @Test func finalRefusalsAreStoredAndTemporaryOnesAreNot() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let nobody: JSONObject = ["username": "bob"]
        #expect(await shop.send("POST", "/login", nobody, fields: key("n")).status == 404)
        _ = try await shop.enrol("bob")
        let kept = await shop.send("POST", "/login", nobody, fields: key("n"))
        #expect(kept.status == 404)
        #expect(kept.fields["idempotency-replayed"] == "true")
        #expect(kept.fields["content-type"] == "application/problem+json")

        try await shop.give(.totp, to: "bob", at: "shop")
        let (challenge, _) = try await shop.login("bob")
        let guess: JSONObject = ["challenge": .string(challenge), "otp": "123456"]
        #expect(await shop.send("POST", "/backup", guess, fields: key("g")).status == 200)
        // Counted once, however often it is repeated.
        #expect(await shop.send("POST", "/backup", guess, fields: key("g")).status == 200)
        #expect(await shop.send("POST", "/backup", guess, fields: key("h")).status == 429)
        rig.relay.time.advance(by: FailureDelay.pause)
        #expect(await shop.send("POST", "/backup", guess, fields: key("h")).status == 200)
    }

    @Test func repetitionOfARunningRequestIsAConflict() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        let other = "x'00000000000000000000000000000001'"
        try rig.relay.execute(
            "INSERT INTO relay (id, beat, started_at) VALUES (\(other), 0, '2027-01-01 00:00:00.000')")
        #expect(await shop.send("POST", "/login", ["username": "bob"], fields: key("k")).status == 201)
        try rig.relay.execute(
            "UPDATE idempotency SET state = 'running', holder = \(other)")
        let running = await shop.send("POST", "/login", ["username": "bob"], fields: key("k"))
        #expect(running.status == 409)
        #expect(running.code == "conflict")
        #expect(running.fields["retry-after"] == "1")
        // The relay is dead: the request runs again under the same operation, and finds the change done.
        try rig.relay.execute("DELETE FROM relay")
        #expect(await shop.send("POST", "/login", ["username": "bob"], fields: key("k")).status == 201)
        #expect(try rig.relay.count("SELECT count(*) FROM challenge") == 1)
    }

    @Test func requestThatFailedInTheStoreCanBeRepeated() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        try await rig.relay.on { await $0.runHeartbeat() }
        #expect(await shop.send("POST", "/login", ["username": "bob"], fields: key("k")).status == 201)
        // The state after a store failure that lost the end of the first request: a living relay holds it, and no
        // relay runs it.
        try rig.relay.execute("UPDATE idempotency SET state = 'running', holder = (SELECT id FROM relay)")
        #expect(await shop.send("POST", "/login", ["username": "bob"], fields: key("k")).status == 201)
        #expect(try rig.relay.count("SELECT count(*) FROM challenge") == 1)
        #expect(try rig.relay.count("SELECT count(*) FROM idempotency WHERE state = 'done'") == 1)
    }

    @Test func concurrentRepetitionsRunOnce() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        try await rig.relay.on { await $0.runHeartbeat() }
        let answers = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    await shop.send("POST", "/login", ["username": "bob"], fields: [("idempotency-key", "k")]).status
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers.contains(201))
        #expect(answers.allSatisfy { $0 == 201 || $0 == 409 })
        #expect(try rig.relay.count("SELECT count(*) FROM challenge") == 1)
    }

    @Test(arguments: ["", "with space", "ü", String(repeating: "k", count: 256)])
    func idempotencyKeyMustBeVisibleASCII(text: String) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let response = await shop.send("POST", "/register", ["username": "bob"], fields: key(text))
        #expect(response.status == 400)
        #expect(response.faults == ["Idempotency-Key format"])
        #expect(await shop.send("GET", "/user/bob").status == 404)
    }
}
