import Domain
import HTTP
import JSON
import Log
import Relay
import TestSupport
import Testing

@testable import API

/// The callers that each route permits, and what the refusals reveal.
struct IdentityTests {
    /// The routes that need a certificate, with each of their forms.
    static let guarded: [(method: String, path: String, form: Form)] = API.table.routes.flatMap { route in
        route.forms.filter { !$0.isForAnyone }.map { (route.method, Self.path(of: route), $0) }
    }

    static func path(of route: Route) -> String {
        "/"
            + route.path.segments.map { segment in
                switch segment {
                case .word(let word): word
                case .parameter: "something"
                }
            }.joined(separator: "/")
    }

    @Test func requestWithoutCertificateIsUnauthenticated() async throws {
        let rig = try await APIRig()
        for (method, path, _) in Self.guarded where path != "/verify" {
            let response = await rig.stranger.send(method, path)
            #expect(response.status == 401, "\(method) \(path)")
            #expect(response.code == "unauthenticated")
        }
    }

    @Test func callerOfTheWrongKindIsForbidden() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        for route in API.table.routes where !route.forms.contains(where: \.isForAnyone) {
            let path = Self.path(of: route)
            let isForPhones = route.forms.contains { if case .phone = $0.action { true } else { false } }
            // A website without the original's policy may not use a phone's route either.
            let response = await (isForPhones ? shop : phone).send(
                route.method, path, route.method == "POST" ? ["challenge": "x"] : nil)
            #expect(response.status == 403, "\(route.method) \(path)")
            #expect(response.code == "forbidden")
        }
        let verify = await shop.send("POST", "/verify", ["id_token": "x", "dev_token": "y"])
        #expect(verify.status == 403)
    }

    @Test func certificateNameFromTheOtherAuthorityIsRefused() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let good = try #require(shop.certificate)
        let name = "twoefay:website:shop"
        let device = "twoefay:device:00000000000000000000000000000001"
        let bad: [(String, ClientCertificate)] = [
            ("no name", ClientCertificate(authority: .websites, uris: [], keyThumbprint: good.keyThumbprint)),
            (
                "two names",
                ClientCertificate(authority: .websites, uris: [name, name], keyThumbprint: good.keyThumbprint)
            ),
            ("a phone's", ClientCertificate(authority: .websites, uris: [device], keyThumbprint: good.keyThumbprint)),
            ("from the phones", ClientCertificate(authority: .phones, uris: [name], keyThumbprint: good.keyThumbprint)),
            (
                "in capitals",
                ClientCertificate(
                    authority: .websites, uris: ["twoefay:website:SHOP"], keyThumbprint: good.keyThumbprint)
            ),
            ("another key", ClientCertificate(authority: .websites, uris: [name], keyThumbprint: [1])),
            ("unregistered", .website("nobody")),
        ]
        for (what, certificate) in bad {
            let response = await Site(rig: rig, certificate: certificate).send("GET", "/user/bob")
            #expect(response.status == 401, "\(what)")
        }
        #expect(await shop.send("GET", "/user/bob").status == 404)
    }

    @Test func revocationTakesEffectAtOnceAndEndsHeldRequests() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let outcome = await rig.start(
            shop.request("POST", "/auth", ["challenge": .string(challenge)], fields: [("prefer", "wait=30")]))
        guard case .held(let hold) = outcome else { throw RigFailure("not held") }

        try rig.relay.execute("UPDATE device SET state = 'revoked'")
        #expect(await phone.send("POST", "/failure", ["challenge": .string(challenge)]).status == 401)
        try rig.relay.execute("UPDATE website SET state = 'disabled'")
        #expect(await rig.giveUp(hold).status == 401)
        #expect(await shop.send("GET", "/user/bob").status == 401)
    }

    @Test func challengeKeepsThePolicyOfItsCreation() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "website"])
        let (token, phone) = try await shop.enrol("bob")
        let about: JSONObject = ["token": .string(token)]
        let (old, _) = try await shop.login("bob")
        try rig.relay.execute(#"UPDATE website SET policy = '{"answers":"certificate","number":"0"}'"#)
        #expect(await phone.send("POST", "/success", ["challenge": .string(old)]).status == 403)
        #expect(await shop.send("POST", "/success", about)["login"] == "success")
        let (new, _) = try await shop.login("bob")
        #expect(await shop.send("POST", "/success", about).status == 403)
        #expect(await phone.send("POST", "/success", ["challenge": .string(new)])["login"] == "success")
        // A token no longer selects a challenge.
        #expect(await shop.send("POST", "/auth", about).status == 403)
        #expect(await shop.send("POST", "/backup", ["token": .string(token), "otp": "123456"]).status == 403)
    }

    /// A bound that an earlier version stored without its currency does not stop the website: the
    /// number is always asked for. A value without such a reading stops it, and the log says why.
    @Test func outdatedPolicyDoesNotStopItsWebsite() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        try rig.relay.execute(#"UPDATE website SET policy = '{"answers":"certificate","number-below":"30"}'"#)
        let cheap: JSONObject = [
            "username": "bob", "details": [["label": "amount", "value": "1.00 EUR"]],
        ]
        for _ in 0..<2 {
            let asked = await shop.send("POST", "/login", cheap)
            #expect(asked.status == 201 && asked["number"]?.string?.utf8.count == 2, "\(asked.text)")
        }
        let warned = rig.relay.sink.drain().filter { $0.contains("event=website.policy") }
        #expect(warned.count == 1 && warned[0].contains("level=warning") && warned[0].contains("number-below"))

        try rig.relay.execute(#"UPDATE website SET policy = '{"answers":"certificate","number":"3"}'"#)
        #expect(await shop.send("POST", "/login", cheap).status == 500)
        let broken = rig.relay.sink.drain().filter { $0.contains("event=website.policy") }
        #expect(
            broken.count == 1 && broken[0].contains("level=error") && broken[0].contains("number must be 0, 2 or 6"))
    }

    @Test func foreignResourceReadsAsNotFound() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "website"])
        let bank = try await rig.site("bank", ["answers": "website"])
        let (token, phone) = try await bank.enrol("alice")
        let (challenge, _) = try await bank.login("alice")
        let (_, other) = try await shop.enrol("bob")
        let wrong = String(repeating: "0", count: 32)

        let nobody = await shop.send("GET", "/user/no-such-user").withoutID
        #expect(nobody.status == 404)
        func expectNothing(_ response: Response, _ what: String) {
            #expect(response.withoutID == nobody, "\(what): \(response.text)")
        }
        for user in ["alice", "nobody", "%00", String(repeating: "a", count: 65)] {
            expectNothing(await shop.send("GET", "/user/\(user)"), "GET \(user)")
            expectNothing(await shop.send("DELETE", "/user/\(user)"), "DELETE \(user)")
            expectNothing(await shop.send("POST", "/user/\(user)/activation"), "activation \(user)")
        }
        expectNothing(await shop.send("POST", "/login", ["username": "alice"]), "login alice")
        for id in [token, wrong] {
            expectNothing(await shop.send("POST", "/login", ["token": .string(id)]), "login \(id)")
        }
        for id in [token, wrong, "not an id".filter { $0 != " " }] {
            expectNothing(await shop.send("POST", "/auth", ["token": .string(id)]), "auth \(id)")
            expectNothing(await shop.send("POST", "/success", ["token": .string(id)]), "success \(id)")
            expectNothing(await shop.send("POST", "/failure", ["token": .string(id)]), "failure \(id)")
            expectNothing(
                await shop.send("POST", "/backup", ["token": .string(id), "otp": "123456"]), "backup \(id)")
            expectNothing(
                await shop.send("POST", "/verify", ["id_token": .string(id), "dev_token": "x"]), "verify \(id)")
        }
        for id in [challenge, wrong, "x"] {
            expectNothing(await shop.send("POST", "/auth", ["challenge": .string(id)]), "auth \(id)")
            expectNothing(
                await shop.send("POST", "/auth", ["challenge": .string(id)], fields: [("prefer", "wait=9")]),
                "held auth \(id)")
            expectNothing(
                await shop.send("POST", "/backup", ["challenge": .string(id), "otp": "123456"]), "backup \(id)")
            expectNothing(await shop.send("DELETE", "/challenge/\(id)"), "cancel \(id)")
            expectNothing(await other.send("POST", "/success", ["challenge": .string(id)]), "success \(id)")
            expectNothing(await other.send("POST", "/failure", ["challenge": .string(id)]), "failure \(id)")
        }
        #expect(rig.relay.relay.heldRequests.count == 0)
        // The bank's data is unchanged.
        #expect(await bank.send("POST", "/auth", ["challenge": .string(challenge)])["login"] == "wait")
        #expect(await bank.send("GET", "/user/alice").status == 200)
        _ = phone
    }

    @Test func failedEnrolmentDoesNotRevealTheWrongElement() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (token, code) = try await shop.register("bob")
        let phone = try TestPhone(pushToken: "push")
        func proof(_ token: String, _ code: String, _ website: String) throws -> String {
            try phone.proof(
                token: token, code: code, origin: RelayRig.origin, website: website, at: rig.relay.time.now())
        }
        let wrong = String(repeating: "0", count: 32)
        let attempts = [
            ("token", wrong, code, try proof(wrong, code, "shop")),
            ("malformed token", "x", code, try proof("x", code, "shop")),
            ("code", token, "wrong", try proof(token, "wrong", "shop")),
            ("audience", token, code, try proof(token, code, "bank")),
            ("proof", token, code, "a.b.c"),
        ]
        var answers: [Response] = []
        for (_, token, code, proof) in attempts {
            answers.append(
                await rig.stranger.send(
                    "POST", "/verify",
                    [
                        "id_token": .string(token), "dev_token": "push", "activation_code": .string(code),
                        "proof": .string(proof),
                    ]))
        }
        #expect(answers[0].status == 401)
        for (answer, attempt) in zip(answers, attempts) {
            #expect(answer.withoutID == answers[0].withoutID, "\(attempt.0)")
        }
    }
}
