import Domain
import HTTP
import JSON
import TestSupport
import Testing
import World

@testable import API

/// `expires_at` of a user, over the wire.
struct UserExpiryTests {
    @Test func expiryIsSetAndRemoved() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, _) = try await shop.enrol("bob")
        let end = (rig.relay.time.now() + .seconds(3600)).rfc3339
        let changed = await shop.send("PATCH", "/user/bob", ["expires_at": .string(end)])
        #expect(changed.status == 200 && changed["expires_at"] == .string(end), "\(changed.text)")
        var user = await shop.send("GET", "/user/bob")
        #expect(user["state"] == "active" && user["expires_at"] == .string(end))
        #expect(await shop.devices("bob").map { $0["state"] } == ["active"])

        rig.relay.time.advance(by: .seconds(3600))
        user = await shop.send("GET", "/user/bob")
        #expect(user["state"] == "expired" && user["stopped_by"] == nil, "\(user.text)")
        #expect(user["factors"] == [["kind": "push", "state": "expired"]])
        #expect(await shop.devices("bob").map { $0["state"] } == ["expired"])
        let challenge = try await shop.login("bob").challenge
        let result = await shop.send("POST", "/auth", ["challenge": .string(challenge)])
        #expect(result["login"] == "failure" && result["reason"] == "user_expired", "\(result.text)")

        // Another change leaves the expiry as it is.
        #expect(await shop.send("PATCH", "/user/bob", ["language": "de"])["expires_at"] == .string(end))
        #expect(await shop.send("PATCH", "/user/bob", ["expires_at": .null])["expires_at"] == .null)
        #expect(await shop.send("GET", "/user/bob")["state"] == "active")
        #expect(await shop.devices("bob").map { $0["expires_at"] } == [nil])
    }

    @Test func registrationHasAnExpiry() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let end = (rig.relay.time.now() + .seconds(60)).rfc3339
        let body: JSONObject = ["username": "eve", "expires_at": .string(end)]
        #expect(await shop.send("POST", "/register", body).status == 201)
        #expect(await shop.send("GET", "/user/eve")["expires_at"] == .string(end))
    }

    @Test(
        arguments: [
            ("tomorrow", "expires_at format"), ("2026-12-31", "expires_at format"),
            ("2026-12-31T23:00:00+01:00", "expires_at format"), ("1969-12-31T23:59:59Z", "expires_at format"),
            // As text, the year 10000 comes before this one.
            ("9999-12-31T23:59:60Z", "expires_at format"), ("9999-12-31T00:00:00Z", "expires_at format"),
            (1_800_000_000, "expires_at type"),
        ] as [(JSONValue, String)])
    func unsuitableExpiryIsRefused(value: JSONValue, fault: String) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        #expect(await shop.send("PATCH", "/user/bob", ["expires_at": value]).faults == [fault])
        #expect(await shop.send("POST", "/register", ["username": "eve", "expires_at": value]).faults == [fault])
        // A website cannot change the users of another one.
        let bank = try await rig.site("bank")
        #expect(await bank.send("PATCH", "/user/bob", ["expires_at": .null]).status == 404)
    }
}
