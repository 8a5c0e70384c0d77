import API
import Domain
import EventLoop
import HTTP
import JSON
import Relay
import Synchronization
import TestSupport
import Testing
import World

/// A website that floods the relay, with a valid certificate, beside one that behaves.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct WebsiteFloodTests {
    /// The state that the tasks of the flood share.
    private final class Flooding: Sendable {
        let isOver = Mutex(false)
        let statuses = Mutex<[Int]>([])
    }

    private let wait = [("prefer", "wait=30")]

    @Test(arguments: [StoreKind.file, .mariadb])
    func loginsOfAnotherWebsiteAllSucceed(kind: StoreKind) async throws {
        let first = try await APIRig(kind)
        let receivers = WebhooksWithHang("flood")
        defer { receivers.end() }
        let (rig, relay) = try first.beside(webhooks: receivers)
        let flood = try await rig.site(
            "flood", ["number": "0", "limit-logins-minute": "40", "limit-held": "3", "login-limit": "1000"],
            webhook: "https://flood.example.com/webhooks")
        let shop = try await rig.site("shop", ["number": "0"], webhook: "https://shop.example.com/webhooks")
        _ = try await flood.enrol("eve")
        var people: [(name: String, phone: Site)] = []
        for number in 0..<6 {
            let name = "user-\(number)"
            people.append((name, try await shop.enrol(name).phone))
        }

        // The flood opens logins without end, holds requests about the last one, and its receiver hangs.
        let flooding = Flooding()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    repeat {
                        let response = await flood.send("POST", "/login", ["username": "eve"])
                        flooding.statuses.withLock { $0.append(response.status) }
                        if let challenge = response["challenge"] { await hold(challenge, at: flood, of: rig) }
                    } while !flooding.isOver.withLock { $0 }
                }
            }
            defer { flooding.isOver.withLock { $0 = true } }
            for (name, phone) in people {
                let about: JSONObject = ["challenge": .string(try await shop.login(name).challenge)]
                guard case .held(let hold) = await rig.start(shop.request("POST", "/auth", about, fields: wait)) else {
                    throw RigFailure("the login of \(name) is not held")
                }
                #expect(await phone.send("POST", "/success", about).status == 200)
                #expect(await rig.end(hold)["login"] == "success")
            }
        }

        // Each of the shop's webhooks arrives, although those of the flood are never answered.
        var told: Set<String> = []
        while told.count < people.count {
            await rig.relay.loop.perform { await relay.deliverWebhooks() }
            let body = await receivers.answering.next().body
            let event = (try JSONReader.read(body)).object?["data"]?.object
            if let challenge = event?["challenge"]?.string { told.insert(challenge) }
        }
        let seen = flooding.statuses.withLock { $0 }
        #expect(seen.count >= 8 && Set(seen).isSubset(of: [200, 201, 429]))
        #expect(seen.count { $0 != 429 } <= 40)
        receivers.end()
        await rig.relay.settled()
    }

    /// Has more requests held than the website may, and lets them go.
    private func hold(_ challenge: JSONValue, at flood: Site, of rig: APIRig) async {
        var held: [Hold] = []
        for _ in 0..<5 {
            let request = flood.request("POST", "/auth", ["challenge": challenge], fields: wait)
            if case .held(let hold) = await rig.start(request) { held.append(hold) }
        }
        for hold in held { hold.wait.cancel() }
    }

    /// The answer names the limit, in the language of the caller.
    @Test func refusalNamesThePolicy() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["limit-logins-minute": "1"])
        _ = try await shop.enrol("bob")
        _ = try await shop.login("bob")
        let english = await shop.send("POST", "/login", ["username": "bob"])
        #expect(english.status == 429 && english.code == "limited" && english["limit"] == "limit-logins-minute")
        #expect(english.fields["retry-after"] == "60")
        #expect(english["detail"]?.string?.contains("its policy limit-logins-minute allows") == true)
        let german = await shop.send("POST", "/login", ["username": "bob"], fields: [("accept-language", "de")])
        #expect(german.status == 429)
        #expect(german["detail"]?.string?.contains("ihre Richtlinie limit-logins-minute erlaubt") == true)
    }

    /// A website that repeats its refused logins under their keys does not pass the limit.
    @Test(arguments: [StoreKind.file, .mariadb]) func repetitionUnderTheKeyStaysRefused(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop", ["limit-logins-minute": "1"])
        _ = try await shop.enrol("bob")
        _ = try await shop.login("bob")
        let body: JSONObject = ["username": "bob"]
        let key = [("idempotency-key", "k")]
        for _ in 0..<2 {
            let refused = await shop.send("POST", "/login", body, fields: key)
            #expect(refused.status == 429 && refused["limit"] == "limit-logins-minute")
        }
        rig.relay.time.advance(by: .seconds(60))
        let first = await shop.send("POST", "/login", body, fields: key)
        #expect(first.status == 201)
        // It counts in its minute.
        #expect(await shop.send("POST", "/login", body).status == 429)
        // Its answer is kept. If that was lost, the repetition finds the challenge.
        let kept = await shop.send("POST", "/login", body, fields: key)
        #expect(kept.status == 201 && kept.body == first.body)
        try rig.relay.execute("UPDATE idempotency SET state = 'running', holder = NULL")
        let resumed = await shop.send("POST", "/login", body, fields: key)
        #expect(resumed.status == 201 && resumed["challenge"] == first["challenge"])
        #expect(try rig.relay.count("SELECT count(*) FROM challenge") == 2)
    }

    /// A limit that the operator changes applies at once, also to phones.
    @Test func heldRequestsOfAWebsiteHaveItsOwnLimit() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["limit-held": "1", "number": "0"])
        let (_, phone) = try await shop.enrol("bob")
        let about: JSONObject = ["challenge": .string(try await shop.login("bob").challenge)]
        guard case .held(let hold) = await rig.start(shop.request("POST", "/auth", about, fields: wait)) else {
            throw RigFailure("not held")
        }
        let refused = await shop.send("POST", "/auth", about, fields: wait)
        #expect(refused.status == 429 && refused["limit"] == "limit-held")
        #expect(
            rig.relay.registry.number("twoefay_website_limit_reached_total{website=\"shop\",limit=\"held\"}") == 1)
        // The phone knows the challenge, so its request would be held.
        let known: JSONObject = ["known": .array([about["challenge"] ?? .null])]
        let polled = await phone.send("POST", "/pending", known, fields: wait)
        #expect(polled.status == 429)
        try rig.relay.execute("UPDATE website SET policy = '{\"answers\":\"certificate\",\"number\":\"0\"}'")
        guard case .held(let more) = await rig.start(shop.request("POST", "/auth", about, fields: wait)) else {
            throw RigFailure("not held")
        }
        #expect(await phone.send("POST", "/success", about).status == 200)
        #expect(await rig.end(hold)["login"] == "success")
        #expect(await rig.end(more)["login"] == "success")
    }
}
