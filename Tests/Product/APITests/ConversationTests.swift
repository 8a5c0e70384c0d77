import Bytes
import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing

/// The original protocol, and the same with phones that authenticate themselves.
struct ConversationTests {
    @Test func originalProtocolRequestsAreAnswered() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "website"])

        let registered = await shop.send("POST", "/register", ["username": "bob", "email": "bob@example.com"])
        #expect(registered.status == 201)
        let token = try #require(registered["token"]?.string)
        #expect(registered.fields["content-type"] == "application/json")
        #expect(registered.fields["cache-control"] == "no-store")

        let user = await shop.send("GET", "/user/bob")
        #expect(user.status == 200)
        #expect(user["token"]?.string == token)
        #expect(user["email"] == "bob@example.com")
        #expect(user["phone"] == .null)
        #expect(user["devices"] == [])

        #expect(await shop.send("POST", "/auth", ["token": .string(token)]).text == #"{"login":""}"#)

        let unbound = await shop.send("POST", "/login", ["token": .string(token)])
        #expect(unbound.status == 201)
        #expect(unbound["login"] == "unverified")

        let verified = await shop.send(
            "POST", "/verify", ["id_token": .string(token), "dev_token": "the phone's device token".withoutSpaces])
        #expect(verified.status == 200)
        #expect(verified.text == #"{"login":"verified"}"#)

        for (path, word) in [("/success", "success"), ("/failure", "failure")] {
            let asked = await shop.send("POST", "/login", ["token": .string(token), "service": "Shop"])
            #expect(asked["login"] == "verified")
            #expect(await rig.relay.pushes.next().service == "Shop")
            let waiting = await shop.send("POST", "/auth", ["token": .string(token)])
            #expect(waiting["login"] == "wait")
            #expect(waiting["challenge"] == asked["challenge"])
            let answered = await shop.send("POST", path, ["token": .string(token)])
            #expect(answered.status == 200)
            #expect(answered["login"]?.string == word)
            let result = await shop.send("POST", "/auth", ["token": .string(token)])
            #expect(result["login"]?.string == word)
            #expect(result["proof"] == "website")
            // An answer counts once.
            let again = await shop.send("POST", "/success", ["token": .string(token)])
            #expect(again.status == 409)
            #expect(again.code == "already_decided")
            #expect(again["login"]?.string == word)
        }

        #expect(await shop.send("DELETE", "/user/bob").status == 204)
        #expect(await shop.send("GET", "/user/bob").status == 404)
        #expect(await shop.send("POST", "/auth", ["token": .string(token)]).status == 404)
    }

    @Test func boundPhoneApprovesWithTheNumber() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (token, phone) = try await shop.enrol("jürgen")

        let user = await shop.send("GET", "/user/j%C3%BCrgen")
        #expect(user["token"]?.string == token)
        #expect(user["factors"] == [["kind": "push", "state": "active"]])
        let device = try #require(user["devices"]?.array?.first?.object)
        #expect(
            device.names == [
                "device", "name", "platform", "state", "jwk", "thumbprint", "created_at", "last_seen_at",
                "login_successes", "login_failures", "wrong_numbers", "pin", "report",
            ])
        #expect(device["platform"] == "ios")
        #expect(device["state"] == "active")
        #expect(device["jwk"]?.object?["crv"] == "P-256")

        let asked = await shop.send(
            "POST", "/login",
            [
                "username": "jürgen", "request": "nonce", "ip": "192.0.2.1", "service": "Shop", "action": "pay",
                "details": [["label": "amount", "value": "5 €"]], "user_agent": "Browser", "expires_in": 60,
            ])
        #expect(asked.status == 201)
        #expect(asked.json.names == ["login", "challenge", "number", "factor", "expires_at"])
        #expect(asked["factor"] == "push")
        let number = try #require(asked["number"]?.string)
        #expect(number.utf8.count == 2)
        let challenge = try #require(asked["challenge"])

        let approved = await phone.send("POST", "/success", ["challenge": challenge, "number": .string(number)])
        #expect(approved.text == #"{"login":"success"}"#)

        let result = await shop.send("POST", "/auth", ["challenge": challenge])
        #expect(result["login"] == "success")
        #expect(result["factor"] == "push")
        #expect(result["assurance"] == "high")
        #expect(result["proof"] == "certificate")
        #expect(result["device"] == device["device"])
        #expect(result["steps"]?.array?.first?.object?["state"] == "answered")
        let context = try #require(result["context"]?.string.flatMap { Base64URL.decode($0) })
        let shown = try #require(try JSONReader.read(context).object)
        #expect(shown["details"] == [["label": "amount", "value": "5 €"]])
        #expect(shown["request"] == "nonce")
    }

    @Test func wrongNumberFailsTheLoginAndCancelSucceeds() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let (first, number) = try await shop.login("bob")
        let wrong = number == "00" ? "01" : "00"
        let answered = await phone.send(
            "POST", "/success", ["challenge": .string(first), "number": .string(wrong)])
        #expect(answered.text == #"{"login":"failure"}"#)
        let result = await shop.send("POST", "/auth", ["challenge": .string(first)])
        #expect(result["login"] == "failure")
        #expect(result["reason"] == "wrong_number")

        let (second, _) = try await shop.login("bob")
        #expect(await shop.send("DELETE", "/challenge/\(second)").status == 204)
        #expect(await shop.send("DELETE", "/challenge/\(second)").status == 204)
        #expect(await shop.send("POST", "/auth", ["challenge": .string(second)])["reason"] == "cancelled")
        #expect(await phone.send("POST", "/failure", ["challenge": .string(second)]).code == "already_decided")
    }

    @Test func wrongCodesAreDelayedAndFinallyLocked() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["guesses": "3"])
        _ = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        func guess() async -> Response {
            await shop.send("POST", "/backup", ["challenge": .string(challenge), "otp": "000000"])
        }
        // A user without codes gets the same answer, and nothing is counted.
        for _ in 0..<5 { #expect(await guess()["login"] == "failure") }
        // A code that is none of the first codes of RFC 4226.
        try await shop.give(.hotp, to: "bob", at: "shop")
        for count in 1...3 {
            let wrong = await guess()
            #expect(wrong.status == 200 && wrong["login"] == "failure")
            #expect(wrong["challenge"]?.string == challenge)
            #expect(wrong["reason"] == nil)
            guard count < 3 else { break }
            let early = await guess()
            #expect(early.status == 429 && early.code == "limited")
            #expect(early.fields["retry-after"] == "\(5 * count)")
            rig.relay.time.advance(by: FailureDelay.pause * count)
        }
        // The guesses are used up: codes are refused, and the phone can still approve.
        let over = await guess()
        #expect(over.status == 403 && over.code == "codes_locked" && over.fields["retry-after"] == nil)
        #expect(await shop.send("POST", "/auth", ["challenge": .string(challenge)])["login"] == "wait")
        let bob = await shop.send("GET", "/user/bob")
        #expect(bob["state"] == "active" && bob["stopped_by"] == nil && bob["codes"] == "locked")
        #expect(bob["factors"]?.array?.map { $0.object?["state"]?.string } == ["active", "locked"])
        #expect(await shop.send("POST", "/login", ["username": "bob"])["codes"] == "locked")
        let asked = await shop.send("POST", "/user/bob/unlock", [:])
        #expect(asked.status == 403 && asked.code == "approval_required" && asked["challenge"] != nil)
        let coded = await shop.send("POST", "/user/bob/unlock", ["otp": "mzxw-6ytb-ojrg-c6tr"])
        #expect(coded.status == 403 && coded.code == "codes_locked")
    }

    /// Another website gets the same answer before and after the lock.
    @Test func codeLockIsVisibleToItsWebsiteOnly() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["guesses": "1"])
        let bank = try await rig.site("bank")
        _ = try await shop.enrol("bob")
        try await shop.give(.hotp, to: "bob", at: "shop")
        let (challenge, _) = try await shop.login("bob")
        func answers() async -> [String] {
            var texts: [String] = []
            for (path, body) in [
                ("/login", ["username": "bob"]), ("/auth", ["challenge": .string(challenge)]),
                ("/backup", ["challenge": .string(challenge), "otp": "000000"]), ("/user/bob/unlock", [:]),
                ("/user/bob/totp/confirm", ["otp": "000000"]),
            ] as [(String, JSONObject)] {
                let answers = [
                    await rig.stranger.send("POST", path, body), await bank.send("POST", path, body),
                ]
                texts += answers.map { "\($0.status) \($0.text)" }
            }
            return texts
        }
        let before = await answers()
        #expect(
            await shop.send("POST", "/backup", ["challenge": .string(challenge), "otp": "000000"])["login"]
                == "failure")
        #expect(await shop.send("GET", "/user/bob")["codes"] == "locked")
        #expect(await answers() == before)
    }

    @Test(arguments: ["12345", "123456789", "12 3456", " 123456", "123456\n", "١٢٣٤٥٦", "abcd-efgh"])
    func malformedCodeIsRefusedAsInvalid(typed: String) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let answer = await shop.send("POST", "/backup", ["challenge": .string(challenge), "otp": .string(typed)])
        #expect(answer.status == 400 && answer.code == "invalid", "\(answer.text)")
        #expect(answer.faults.allSatisfy { $0.hasPrefix("otp ") } && answer.faults.count == 1)
    }

    @Test func headerFieldIsUsedWhenTheBodyOmitsTheParameter() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "website"])
        let (token, _) = try await shop.register("bob")
        let (other, _) = try await shop.register("eve")

        #expect(await shop.send("POST", "/login", fields: [("token", token)]).status == 201)
        #expect(await shop.send("POST", "/login", fields: [("username", "bob")]).status == 201)
        #expect(await shop.send("POST", "/login", [:], fields: [("token", token), ("username", "bob")]).status == 201)
        #expect(await shop.send("POST", "/auth", fields: [("token", token)])["login"] == "wait")

        let apart = await shop.send("POST", "/login", ["token": .string(token)], fields: [("token", other)])
        #expect(apart.status == 400)
        #expect(apart.faults == ["token mismatch"])
        let twice = await shop.send("POST", "/login", fields: [("token", token), ("token", token)])
        #expect(twice.status == 400)
        #expect(twice.faults.contains("token mismatch"))
        let unlike = await shop.send("POST", "/login", fields: [("token", token), ("username", "eve")])
        #expect(unlike.faults == ["username mismatch"])
        let elsewhere = await shop.send("GET", "/user/bob", fields: [("username", "eve")])
        #expect(elsewhere.faults == ["username mismatch"])
        #expect(await shop.send("GET", "/user/bob", fields: [("username", "bob")]).status == 200)
    }
}

extension String {
    fileprivate var withoutSpaces: JSONValue { .string(String(filter { $0 != " " && $0 != "'" })) }
}
