import Bytes
import Crypto
import Domain
import JSON
import Log
import Storage
import TestSupport
import Testing
import Webhooks
import World

@testable import Relay

/// The exact content of webhooks, and their signature.
@Suite(.mayBlock) struct WebhookBodyTests {
    /// A website with its webhooks about Ada.
    private struct Fixture {
        let rig: RelayRig
        let shop: Website
        let ada: Person
        let phone: TestPhone
        let bound: PhoneCredential
        let since: Timestamp

        init(_ kind: StoreKind) async throws {
            rig = try await RelayRig(kind)
            shop = try await rig.shop(
                "shop", ["answers": "signed", "number": "0"], webhook: "https://shop.example/hook?a=1")
            since = rig.time.now()
            ada = try await Person.registered("ada", at: shop, rig)
            phone = try TestPhone(pushToken: "first")
            bound = try await ada.bound(phone, ada.code)
            // Without a courier, no webhook leaves before the test looks: a relay sends one as soon as it has
            // an event to report.
            rig.relay.replace(nil)
        }

        /// Returns the next webhook as the website reads it.
        func reported() async throws -> (type: String?, timestamp: String?, data: JSONObject?) {
            let before = rig.webhooks.sent.count
            rig.relay.replace(rig.webhooks)
            try await rig.webhookRound(after: .seconds(1))
            rig.relay.replace(nil)
            let webhooks = rig.webhooks.sent.dropFirst(before)
            let webhook = try #require(webhooks.first)
            #expect(webhooks.count == 1)
            #expect(webhook.url == "https://shop.example/hook?a=1")
            #expect(webhook.fields.contains { $0 == ("content-type", "application/json") })
            let head = try WebhookCheck(secrets: [RelayRig.webhookSecret]).verify(
                webhook.fields, body: webhook.body, at: rig.time.now())
            #expect(head.id.text == webhook.id.text && head.sentAt == rig.time.now())
            #expect(!webhook.body.contains(UInt8(ascii: "\n")))
            let json = try JSONReader.read(webhook.body).object
            #expect(json.map { Set($0.names) } == ["type", "timestamp", "data"])
            return (json?["type"]?.string, json?["timestamp"]?.string, json?["data"]?.object)
        }

        func ask() async throws -> ChallengeID {
            try await rig.on { [ada, shop] relay in
                try await relay.login(
                    LoginRequest(subject: .token(ada.token)), by: shop, as: relay.operations.new())
            }.challenge
        }
    }

    @Test(arguments: StoreKind.all) func deviceEventsContainTheDevice(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let rig = fixture.rig
        let key = fixture.phone.key.publicKey
        let expected: JSONObject = [
            "token": .string(fixture.ada.token.text), "device": .string(fixture.bound.id.text), "name": "Phone",
            "platform": "ios", "thumbprint": .string(key.thumbprint), "jwk": .object(key.jwk),
        ]
        let first = try await fixture.reported()
        #expect(first.type == "device.bound" && first.timestamp == fixture.since.rfc3339)
        #expect(first.data == expected)
        let unboundAt = rig.time.now()
        try await rig.on { [phone = fixture.bound] relay in try await relay.unbind(by: phone) }
        let second = try await fixture.reported()
        #expect(second.type == "device.unbound" && second.timestamp == unboundAt.rfc3339)
        #expect(second.data == expected)
    }

    /// A phone that was bound in the original's form has no key and no name.
    @Test func deviceEventOfAKeylessPhoneHasNullKey() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.shop("shop", ["answers": "website"], webhook: "https://shop.example/hook")
        let ada = try await Person.registered("ada", at: shop, rig)
        let device = try await rig.on { relay in
            try await relay.bind(token: ada.token, pushToken: "one", by: shop, as: relay.operations.new())
        }
        try await rig.webhookRound(after: .zero)
        let webhook = try #require(rig.webhooks.sent.last)
        #expect(
            try JSONReader.read(webhook.body).object?["data"]?.object == [
                "token": .string(ada.token.text), "device": .string(device.text), "platform": "other",
                "thumbprint": .null, "jwk": .null,
            ])
    }

    @Test(arguments: StoreKind.all) func userFrozenFollowsItsLoginDecided(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let rig = fixture.rig
        _ = try await fixture.reported()
        let challenge = try await fixture.ask()
        _ = try await rig.decide(.fraud, challenge, by: (fixture.phone, fixture.bound))
        let at = rig.time.now()
        rig.relay.replace(rig.webhooks)
        try await rig.webhookRound(after: .seconds(5))
        let webhooks = rig.webhooks.sent.suffix(2)
        let reported = try webhooks.map { try JSONReader.read($0.body) }
        #expect(reported.map { $0.object?["type"] } == ["login.decided", "user.frozen"])
        #expect(reported.map { $0.object?["timestamp"]?.string } == [at.rfc3339, at.rfc3339])
        // Its webhook-id is the challenge's id, because a challenge ends once.
        #expect(webhooks.first?.id.text == challenge.text)
        let row = try await rig.on { [shop = fixture.shop] relay in try await relay.result(challenge, to: shop) }
        var expected = row.json()
        expected.set("token", .string(fixture.ada.token.text))
        #expect(reported.first?.object?["data"]?.object == expected)
        #expect(expected["login"] == "failure" && expected["reason"] == "fraud")
        #expect(expected["receipt"]?.string != nil && expected["device"]?.string == fixture.bound.id.text)
        #expect(
            reported.last?.object?["data"]?.object == [
                "token": .string(fixture.ada.token.text), "challenge": .string(challenge.text),
                "device": .string(fixture.bound.id.text), "reason": "frozen",
            ])
    }

    @Test(arguments: StoreKind.all) func operatorLockEventHasNoChallenge(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.reported()
        let (store, user, now) = (fixture.rig.store, fixture.bound.user, fixture.rig.time.now())
        _ = try await fixture.rig.on { relay in
            try await store.run(Locks.lock(user, at: now, as: relay.operations.new()))
        }
        let reported = try await fixture.reported()
        #expect(reported.type == "user.locked")
        #expect(reported.data == ["token": .string(fixture.ada.token.text), "reason": "locked"])
    }

    /// An event about a deleted phone is not sent.
    @Test func eventAboutADeletedUserHasNoBody() async throws {
        let fixture = try await Fixture(.memory)
        try fixture.rig.execute(
            "UPDATE outbox SET device_id = x'00000000000000000000000000000001' WHERE kind = 'webhook'")
        fixture.rig.relay.replace(fixture.rig.webhooks)
        try await fixture.rig.webhookRound(after: .zero)
        #expect(fixture.rig.webhooks.sent.isEmpty)
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE kind = 'webhook'") == 0)
        #expect(fixture.rig.sink.drain().contains { $0.contains("event=webhook.void") })
    }

    /// The end of a challenge is reported even long afterwards, like the answer to a website that asks.
    @Test func loginDecidedOutlivesTheResultLifetime() async throws {
        let fixture = try await Fixture(.memory)
        _ = try await fixture.reported()
        let challenge = try await fixture.ask()
        try await fixture.rig.on { [shop = fixture.shop] relay in try await relay.cancel(challenge, by: shop) }
        fixture.rig.time.advance(by: Relay.resultLifetime + .seconds(1))
        let reported = try await fixture.reported()
        #expect(reported.type == "login.decided" && reported.data?["reason"] == "cancelled")
    }
}
