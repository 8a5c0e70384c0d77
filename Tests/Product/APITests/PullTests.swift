import Domain
import HTTP
import JSON
import TestSupport
import Testing

/// Phones that declare that they have no device token.
struct PullTests {
    struct Case: Sendable {
        let sent: String?
        let signed: String?
        let isBound: Bool
    }

    /// The signed token counts. A missing token and an empty one mean the same.
    @Test(arguments: [
        Case(sent: nil, signed: nil, isBound: true), Case(sent: "", signed: "", isBound: true),
        Case(sent: nil, signed: "", isBound: true), Case(sent: "", signed: nil, isBound: true),
        Case(sent: "abcd", signed: nil, isBound: false), Case(sent: "abcd", signed: "", isBound: false),
        Case(sent: nil, signed: "abcd", isBound: false), Case(sent: "", signed: "abcd", isBound: false),
    ])
    func phoneWithoutPushTokenUsesPull(_ example: Case) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (token, code) = try await shop.register("bob")
        let phone = try TestPhone(pushToken: example.signed ?? "")
        let proof = try phone.proof(
            token: token, code: code, origin: RelayRig.origin, website: "shop", at: rig.relay.time.now()
        ) { if example.signed == nil { $0["dev_token"] = nil } }
        var body: JSONObject = [
            "id_token": .string(token), "activation_code": .string(code), "proof": .string(proof),
        ]
        if let sent = example.sent { body.set("dev_token", .string(sent)) }
        let answer = await rig.stranger.send("POST", "/verify", body)
        #expect(answer.status == (example.isBound ? 200 : 401), "\(answer.text)")
        let kinds: JSONValue = example.isBound ? [["kind": "pull", "state": "active"]] : []
        #expect(await shop.send("GET", "/user/bob")["factors"] == kinds)
    }

    @Test func onePhoneWithAPushTokenMakesTheFactorPush() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate", "further-factors": "website"])
        let (token, code) = try await shop.register("bob")
        _ = try await shop.verify(try TestPhone(pushToken: ""), token: token, code: code)
        let next = try #require(await shop.send("POST", "/user/bob/activation")["code"]?.string)
        _ = try await shop.verify(try TestPhone(pushToken: "abcd"), token: token, code: next)
        #expect(await shop.send("GET", "/user/bob")["factors"] == [["kind": "push", "state": "active"]])
    }

    /// No push service here serves its token, so the website gets `pull`, which a login would use.
    @Test func phoneWithoutAPushServiceHereUsesPull() async throws {
        let rig = try await APIRig()
        rig.relay.pushes.serveOnly { _, token in token == "abcd" }
        let shop = try await rig.site("shop", ["answers": "certificate", "further-factors": "website"])
        let (token, code) = try await shop.register("bob")
        _ = try await shop.verify(try TestPhone(pushToken: "APA91"), token: token, code: code)
        #expect(await shop.send("GET", "/user/bob")["factors"] == [["kind": "pull", "state": "active"]])
        #expect(await shop.send("POST", "/login", ["username": "bob"])["factor"] == "pull")
        let next = try #require(await shop.send("POST", "/user/bob/activation")["code"]?.string)
        _ = try await shop.verify(try TestPhone(pushToken: "abcd"), token: token, code: next)
        #expect(await shop.send("GET", "/user/bob")["factors"] == [["kind": "push", "state": "active"]])
        #expect(await shop.send("POST", "/login", ["username": "bob"])["factor"] == "push")
    }

    /// A keyless phone of the user, bound by the website, does not affect the logins of a phone with a key.
    @Test func invalidPushTokenOfAKeylessPhoneIsUndeliverable() async throws {
        let rig = try await APIRig()
        rig.relay.pushes.serveOnly { _, token in token == "abcd" }
        let shop = try await rig.site("shop", ["answers": "website", "further-factors": "website"])
        let (token, code) = try await shop.register("bob")
        let kept = await shop.send("POST", "/verify", ["id_token": .string(token), "dev_token": "APA91"])
        #expect(kept.status == 200, "\(kept.text)")
        #expect(await shop.send("GET", "/user/bob")["factors"] == [["kind": "push", "state": "active"]])
        #expect(await shop.send("POST", "/login", ["username": "bob"])["factor"] == "push")
        _ = try await shop.verify(try TestPhone(pushToken: ""), token: token, code: code)
        #expect(await shop.send("GET", "/user/bob")["factors"] == [["kind": "pull", "state": "active"]])
        #expect(await shop.send("POST", "/login", ["username": "bob"])["factor"] == "pull")
    }

    /// The app does this when the person withdraws the permission for notifications.
    @Test func phoneCanRemoveItsPushToken() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let (token, code) = try await shop.register("bob")
        let key = try TestPhone(pushToken: "abcd")
        let verified = try await shop.verify(key, token: token, code: code)
        let device = try #require(verified["device"]?.string.flatMap { DeviceID($0) })
        let phone = Site(rig: rig, certificate: key.certificate(device: device))
        #expect(await shop.send("POST", "/login", ["username": "bob"])["factor"] == "push")
        let none = try key.movedTo(
            "", device: device, origin: RelayRig.origin, website: "shop", at: rig.relay.time.now())
        #expect(await phone.send("POST", "/device", ["dev_token": .string(none)]).status == 200)
        let asked = await shop.send("POST", "/login", ["username": "bob"])
        #expect(asked["factor"] == "pull")
        #expect(await shop.send("GET", "/user/bob")["factors"] == [["kind": "pull", "state": "active"]])
        let pending = await phone.send("POST", "/pending", [:])
        #expect(pending["pending"]?.array?.first?.object?["challenge"] == asked["challenge"])
        await rig.relay.settled()
        #expect(rig.relay.pushes.sent.count == 1)
    }

    /// A phone that its website has bound has no key with which it could poll.
    @Test func phoneBoundByTheWebsiteNeedsAPushToken() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "website"])
        let (token, _) = try await shop.register("bob")
        let without = await shop.send("POST", "/verify", ["id_token": .string(token)])
        #expect(without.status == 400 && without.faults == ["dev_token missing"])
        let empty = await shop.send("POST", "/verify", ["id_token": .string(token), "dev_token": ""])
        #expect(empty.status == 400 && empty.faults == ["dev_token length"])
    }
}
