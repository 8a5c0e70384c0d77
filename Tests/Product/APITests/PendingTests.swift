import Bytes
import DeliveryOutcomes
import Domain
import EventLoop
import HTTP
import JSON
import Relay
import Synchronization
import TestSupport
import Testing
import World

/// The pending challenges that a phone gets when it polls, at once or held.
struct PendingTests {
    private let wait = [("prefer", "wait=30")]

    private func hold(_ rig: APIRig, _ request: Request) async throws -> Hold {
        guard case .held(let hold) = await rig.start(request) else { throw RigFailure("not held") }
        return hold
    }

    private func challenges(_ response: Response) -> [String] {
        (response["pending"]?.array ?? []).compactMap { $0.object?["challenge"]?.string }
    }

    private func step(_ site: Site, _ challenge: String) async -> JSONObject? {
        await site.send("POST", "/auth", ["challenge": .string(challenge)])["steps"]?.array?.first?.object
    }

    @Test func pendingChallengeContainsContextAndNonce() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["number": "0"])
        let (_, phone) = try await shop.enrol("bob")
        let none = await phone.send("POST", "/pending")
        #expect(none.status == 200)
        #expect(none.json == ["pending": [], "time": .string(rig.relay.time.now().rfc3339)])
        let asked = await shop.send(
            "POST", "/login",
            [
                "username": "bob", "request": "4711", "service": "Pay", "action": "transfer", "ip": "203.0.113.7",
                "user_agent": "Lynx", "details": [["label": "payee", "value": "Ann"]],
            ])
        let challenge = try #require(asked["challenge"]?.string)
        let askedAt = rig.relay.time.now()
        let result = await shop.send("POST", "/auth", ["challenge": .string(challenge)])
        rig.relay.time.advance(by: .seconds(5))
        let answer = await phone.send("POST", "/pending", [:])
        #expect(answer["time"]?.string == rig.relay.time.now().rfc3339)
        let list = try #require(answer["pending"]?.array)
        #expect(list.count == 1)
        let pending = try #require(list.first?.object)
        #expect(Set(pending.names) == ["challenge", "nonce", "context", "expires_at"])
        #expect(pending["challenge"]?.string == challenge)
        #expect(pending["expires_at"] == asked["expires_at"])
        #expect(pending["context"] == result["context"])
        let nonce = try #require(pending["nonce"]?.string.flatMap { Base64URL.decode($0) })
        #expect(nonce.count == 16)
        let context = try #require(pending["context"]?.string.flatMap { Base64URL.decode($0) })
        let shown = try #require(try JSONReader.read(context).object)
        #expect(shown["website"] == "shop" && shown["display_name"] == "The shop" && shown["username"] == "bob")
        #expect(shown["ip"] == "203.0.113.7" && shown["service"] == "Pay" && shown["request"] == "4711")
        #expect(shown["details"] == [["label": "payee", "value": "Ann"]] && shown["number_digits"] == 0)
        #expect(shown["action"] == "transfer" && shown["user_agent"] == "Lynx" && shown["v"] == 1)
        #expect(shown["created_at"]?.string == askedAt.rfc3339)
        #expect(shown["expires_at"]?.string == (askedAt + .seconds(300)).rfc3339)
        #expect(shown["expires_at"] == pending["expires_at"])
        // No place without a database, and no device without a phone to be bound.
        #expect(
            Set(shown.names) == [
                "v", "website", "display_name", "username", "service", "action", "details", "ip", "user_agent",
                "request", "number_digits", "created_at", "expires_at",
            ])
        #expect(await phone.send("POST", "/success", ["challenge": .string(challenge)]).status == 200)
        #expect(challenges(await phone.send("POST", "/pending")) == [])
    }

    @Test func firstPollMarksTheStepSeenAlsoForQuietChallenges() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["push-limit": "1"])
        let (_, phone) = try await shop.enrol("bob")
        for factor in ["push", "pull"] {
            let (challenge, number) = try await shop.login("bob")
            await rig.relay.settled()
            let before = await step(shop, challenge)
            #expect(before?["factor"]?.string == factor)
            #expect(before?["state"]?.string == (factor == "push" ? "sent" : "queued"))
            rig.relay.time.advance(by: .seconds(1))
            #expect(challenges(await phone.send("POST", "/pending")) == [challenge])
            let seen = await step(shop, challenge)
            #expect(seen?["state"] == "seen")
            #expect(seen?["at"]?.string == rig.relay.time.now().rfc3339)
            rig.relay.time.advance(by: .seconds(1))
            #expect(challenges(await phone.send("POST", "/pending")) == [challenge])
            #expect(await step(shop, challenge) == seen)
            let answer: JSONObject = ["challenge": .string(challenge), "number": .string(number ?? "")]
            #expect(await phone.send("POST", "/success", answer)["login"] == "success")
            let result = await shop.send("POST", "/auth", ["challenge": .string(challenge)])
            #expect(result["factor"]?.string == factor)
            #expect(result["steps"]?.array?.first?.object?["state"] == "answered")
        }
    }

    /// A push that is settled after the phone has polled does not change the step.
    @Test func seenChallengeIsNotPushedAfterwards() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        rig.relay.pushes.answer(.retry(after: .seconds(2), reason: "busy"))
        let (challenge, _) = try await shop.login("bob")
        await rig.relay.settled()
        #expect(await step(shop, challenge)?["state"] == "queued")
        #expect(challenges(await phone.send("POST", "/pending")) == [challenge])
        rig.relay.time.advance(by: .seconds(3))
        _ = try await rig.relay.on { relay in await relay.processDueEntries() }
        await rig.relay.settled()
        #expect(rig.relay.pushes.sent.count == 2)
        #expect(await step(shop, challenge)?["state"] == "seen")
    }

    @Test func newChallengeEndsTheHeldPoll() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let held = try await hold(rig, phone.request("POST", "/pending", fields: wait))
        #expect(held.duration == .seconds(30))
        let (challenge, _) = try await shop.login("bob")
        let woken = await rig.end(held)
        #expect(challenges(woken) == [challenge])
        #expect(woken.fields["preference-applied"] == "wait=30")
        #expect(rig.relay.relay.heldRequests.count == 0)
        // Pending challenges are returned at once, at each poll …
        for _ in 0..<2 {
            let again = await phone.send("POST", "/pending", fields: wait)
            #expect(challenges(again) == [challenge])
            #expect(again.fields["preference-applied"] == "wait=30")
        }
        // … unless the phone lists them as known. Then it waits for their end, or for another login.
        let known: JSONObject = ["known": [.string(challenge)]]
        let waiting = try await hold(rig, phone.request("POST", "/pending", known, fields: wait))
        let (next, _) = try await shop.login("bob")
        #expect(challenges(await rig.end(waiting)) == [next])
        let last = try await hold(rig, phone.request("POST", "/pending", ["known": [.string(next)]], fields: wait))
        #expect(await shop.send("DELETE", "/challenge/\(next)").status == 204)
        #expect(challenges(await rig.end(last)) == [])
        // The end of a known challenge is a change, too.
        #expect(challenges(await phone.send("POST", "/pending", known, fields: wait)) == [])
        #expect(rig.relay.relay.heldRequests.count == 0)
    }

    /// The relay reads its own logins a second time, together with those of other relays. They may have ended by
    /// then.
    @Test func knownChallengeDoesNotEndTheHeldPoll() async throws {
        let rig = try await APIRig(.file)
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        try await rig.relay.on { relay in await relay.watch() }
        let (challenge, number) = try await shop.login("bob")
        let answer: JSONObject = ["challenge": .string(challenge), "number": .string(number ?? "")]
        #expect(await phone.send("POST", "/success", answer)["login"] == "success")
        let held = try await hold(rig, phone.request("POST", "/pending", fields: wait))
        rig.relay.time.advance(by: .seconds(4))
        try await rig.relay.on { relay in await relay.watch() }
        guard case .held(let again) = await rig.wake(held) else { throw RigFailure("the poll was answered") }
        #expect(again.duration == .seconds(26))
        #expect(rig.relay.relay.heldRequests.count == 1)
        let (next, _) = try await shop.login("bob")
        #expect(challenges(await rig.end(again)) == [next])
        #expect(rig.relay.relay.heldRequests.isEmpty)
    }

    /// A poll that was woken without a change yields to a newer one: only the newest poll of a phone waits.
    @Test func repeatedPollOfAPhoneReplacesOnlyItsOwn() async throws {
        let rig = try await APIRig(.file)
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        try await rig.relay.on { relay in await relay.watch() }
        let (challenge, number) = try await shop.login("bob")
        let answer: JSONObject = ["challenge": .string(challenge), "number": .string(number ?? "")]
        #expect(await phone.send("POST", "/success", answer)["login"] == "success")
        let first = try await hold(rig, phone.request("POST", "/pending", fields: wait))
        try await rig.relay.on { relay in await relay.watch() }
        let second = try await hold(rig, phone.request("POST", "/pending", fields: wait))
        guard case .response(let result) = await rig.wake(first) else {
            throw RigFailure("the earlier poll is still held")
        }
        #expect(challenges(result) == [])
        #expect(rig.relay.relay.heldRequests.count == 1)
        let (next, _) = try await shop.login("bob")
        #expect(challenges(await rig.end(second)) == [next])
    }

    @Test func heldPollEndsAtTimeoutAndAtChallengeExpiry() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let empty = await rig.giveUp(try await hold(rig, phone.request("POST", "/pending", fields: wait)))
        #expect(challenges(empty) == [] && empty.fields["preference-applied"] == "wait=30")
        let (challenge, _) = try await shop.login("bob")
        rig.relay.time.advance(by: .seconds(290))
        let known: JSONObject = ["known": [.string(challenge)]]
        let held = try await hold(rig, phone.request("POST", "/pending", known, fields: wait))
        #expect(held.duration == .seconds(10))
        rig.relay.time.advance(by: .seconds(10))
        #expect(challenges(await rig.giveUp(held)) == [])
        #expect(rig.relay.relay.heldRequests.count == 0)
    }

    @Test func newestHeldPollOfAPhoneWins() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let (_, other) = try await shop.enrol("alice")
        let others = try await hold(rig, other.request("POST", "/pending", fields: wait))
        let first = try await hold(rig, phone.request("POST", "/pending", fields: wait))
        let second = try await hold(rig, phone.request("POST", "/pending", fields: wait))
        #expect(challenges(await rig.end(first)) == [])
        #expect(rig.relay.relay.heldRequests.count == 2)
        // A poll without `Prefer` ends no held poll.
        #expect(challenges(await phone.send("POST", "/pending")) == [])
        #expect(rig.relay.relay.heldRequests.count == 2)
        let (challenge, _) = try await shop.login("bob")
        #expect(challenges(await rig.end(second)) == [challenge])
        #expect(rig.relay.relay.heldRequests.count == 1)
        others.wait.cancel()
    }

    @Test func heldPollOfAnUnboundPhoneReturnsNothing() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let held = try await hold(rig, phone.request("POST", "/pending", fields: wait))
        try rig.relay.execute("UPDATE device SET state = 'revoked'")
        #expect(await rig.giveUp(held).status == 401)
        // A deletion wakes by itself.
        let (_, gone) = try await shop.enrol("alice")
        let forgotten = try await hold(rig, gone.request("POST", "/pending", fields: wait))
        #expect(await shop.send("DELETE", "/user/alice").status == 204)
        #expect(await rig.end(forgotten).status == 401)
    }

    /// A held request is a value: no task runs for it, and only the affected request is woken.
    @Test func oneOfAThousandHeldPollsIsWoken() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        let count = 1000
        try rig.relay.execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
            INSERT INTO user (id, token, website_id, username, state, created_at, operation)
            SELECT CAST(printf('%016d', i) AS BLOB), CAST(printf('%016d', i) AS BLOB), w.id, 'user-' || i, 'active',
            w.created_at, w.operation FROM n JOIN website w
            """)
        try rig.relay.execute(
            """
            INSERT INTO device (id, user_id, state, platform, environment, push_token, push_token_at, public_key,
            thumbprint, created_at, operation, failures)
            SELECT id, id, 'active', 'other', 'production', '', created_at, x'04', CAST(id || id AS BLOB), created_at,
            operation, 0 FROM user WHERE username LIKE 'user-%'
            """)
        let woken = Mutex<[Int]>([])
        var holds: [Int: Hold] = [:]
        for number in 1...count {
            let digits = String(number)
            let id = Array((String(repeating: "0", count: 16 - digits.utf8.count) + digits).utf8)
            let phone = Site(
                rig: rig,
                certificate: ClientCertificate(
                    authority: .phones, uris: ["twoefay:device:\(Hex.encode(id))"], keyThumbprint: id + id))
            let held = try await hold(rig, phone.request("POST", "/pending", fields: wait))
            // The server arms it at this point, too.
            await rig.relay.loop.perform { held.wait.arm { woken.withLock { $0.append(number) } } }
            holds[number] = held
        }
        #expect(rig.relay.relay.heldRequests.count == count)
        let (challenge, _) = try await shop.login("user-500")
        #expect(woken.withLock { $0 } == [500])
        #expect(rig.relay.relay.heldRequests.count == count - 1)
        let finish = try #require(holds[500]).finish
        guard case .response(let woken) = await rig.relay.loop.perform({ await finish() }) else {
            throw RigFailure("still held")
        }
        #expect(challenges(woken) == [challenge])
        for held in holds.values { held.wait.cancel() }
        #expect(rig.relay.relay.heldRequests.count == 0)
    }
}
