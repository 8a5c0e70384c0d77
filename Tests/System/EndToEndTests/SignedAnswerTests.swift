import Bytes
import Crypto
import JSON
import TestSupport
import Testing
import World

/// The default policy for answers: phones sign them.
@Suite("A phone signs", .timeLimit(.minutes(5)), .mayBlock) struct SignedAnswerTests {
    private func ask(_ shop: APIClient, _ username: String) async throws -> String {
        let asked = try await shop.curl("POST", "/login", ["username": .string(username), "request": "4711"])
        #expect(asked.status == 201, "\(asked)")
        return try #require(asked["challenge"]?.string)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func websiteReceivesTheSignedReceipt(_ kind: StoreKind) async throws {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website("shop", answers: nil)
            let (token, code) = try await shop.register("bob.signs")
            let phone = try await Phone(in: fixture, token: token, code: code)
            let asked = try await shop.curl(
                "POST", "/login", ["username": "bob.signs", "request": "4711", "number": "42"])
            let (challenge, answer) = try await phone.sign("approve", in: fixture, number: "42")
            #expect(asked["challenge"]?.string == challenge)

            // Neither in the plain form nor in both forms.
            let plain: [(JSONObject, String)] = [
                (["challenge": .string(challenge), "number": "42"], "answer missing"),
                (["challenge": .string(challenge)], "answer missing"),
                (["challenge": .string(challenge), "number": "42", "answer": .string(answer)], "number unknown"),
                (["challenge": .string(challenge), "answer": .string(answer + "A")], "answer mismatch"),
            ]
            for (body, fault) in plain {
                let refused = try await phone.client.curl("POST", "/success", body)
                #expect(refused.status == 400 && refused.isProblem && refused.faults == [fault], "\(refused)")
            }
            let waiting = try await shop.curl("POST", "/auth", ["challenge": .string(challenge)])
            #expect(waiting["login"] == "wait" && waiting["receipt"] == nil)

            let body: JSONObject = ["challenge": .string(challenge), "answer": .string(answer)]
            #expect(try await phone.client.curl("POST", "/success", body).text == #"{"login":"success"}"#)
            let result = try await shop.curl("POST", "/auth", ["challenge": .string(challenge)])
            #expect(result["login"] == "success" && result["proof"] == "signed" && result["assurance"] == "high")
            #expect(result["receipt"]?.string == answer && result["device"]?.string == phone.device)
            // Verified with the phone's key that the website knows, and with the reported context.
            let receipt = try JWS.parse(try #require(result["receipt"]?.string))
            #expect(receipt.verify(phone.key.key.publicKey))
            let claims = try #require(try JSONReader.read(receipt.payload).object)
            let context = try #require(result["context"]?.string.flatMap { Base64URL.decode($0) })
            #expect(claims["context"]?.string == Base64URL.encode(SHA256.hash(context)))
            // Again: the challenge has ended, and the phone gets its result.
            let again = try await phone.client.curl("POST", "/success", body)
            #expect(again.status == 409 && again["code"] == "already_decided", "\(again)")
        }
    }

    /// The policy `number-below`: the phone is asked for a number from an amount on, and when the
    /// amount is not clear.
    @Test(arguments: [StoreKind.file, .mariadb]) func smallAmountNeedsNoNumber(_ kind: StoreKind) async throws {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website("shop", ["--number", "6", "--number-below", "30 EUR"], answers: nil)
            let (token, code) = try await shop.register("bob.pays")
            let phone = try await Phone(in: fixture, token: token, code: code)
            func ask(_ amount: String) async throws -> CurlCaller.Answer {
                let asked = try await shop.curl(
                    "POST", "/login",
                    ["username": "bob.pays", "details": [["label": "amount", "value": .string(amount)]]])
                #expect(asked.status == 201, "\(asked)")
                return asked
            }
            // The log must not hold an amount. A shorter one may occur by chance among its times.
            for amount in ["30.00 EUR", "29.99 USD", "29.9900017"] {
                #expect(try await ask(amount)["number"]?.string?.count == 6, "\(amount)")
            }
            let small = try await ask("29.99 EUR")
            #expect(small["number"] == nil, "\(small)")
            let (challenge, answer) = try await phone.sign("approve", in: fixture)
            #expect(small["challenge"]?.string == challenge)
            let said = try await phone.client.curl(
                "POST", "/success", ["challenge": .string(challenge), "answer": .string(answer)])
            #expect(said.text == #"{"login":"success"}"#)
            let result = try await shop.curl("POST", "/auth", ["challenge": .string(challenge)])
            #expect(result["login"] == "success" && result["assurance"] == "substantial", "\(result)")
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func fraudFreezesUntilAnOperatorUnlocks(_ kind: StoreKind)
        async throws
    {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website("shop", answers: nil)
            let (token, code) = try await shop.register("bob.frozen")
            let phone = try await Phone(in: fixture, token: token, code: code)
            let challenge = try await ask(shop, "bob.frozen")
            let (_, answer) = try await phone.sign("fraud", in: fixture)
            let said = try await phone.client.curl(
                "POST", "/failure", ["challenge": .string(challenge), "answer": .string(answer)])
            #expect(said.text == #"{"login":"failure"}"#)
            let result = try await shop.curl("POST", "/auth", ["challenge": .string(challenge)])
            #expect(result["reason"] == "fraud" && result["proof"] == "signed" && result["receipt"]?.string == answer)
            let next = try await ask(shop, "bob.frozen")
            let refused = try await shop.curl("POST", "/auth", ["challenge": .string(next)])
            #expect(refused["login"] == "failure" && refused["reason"] == "frozen")
            let unlock = try await shop.curl("POST", "/user/bob.frozen/unlock")
            #expect(unlock.status == 403 && unlock.isProblem, "\(unlock)")
            let trail = "SELECT count(*) FROM AuditTrail WHERE website = 'shop' AND event = 'user.frozen'"
            #expect(try fixture.relay.count(trail) == 1)
        }
    }

    @Test func wrongNumbersLockUntilTheWebsiteUnlocks() async throws {
        try await Fixture.run { fixture in
            let shop = try await fixture.website("shop", ["--guesses", "1"], answers: nil)
            let (token, code) = try await shop.register("bob.locked")
            let phone = try await Phone(in: fixture, token: token, code: code)
            let asked = try await shop.curl("POST", "/login", ["username": "bob.locked", "number": "42"])
            let (challenge, answer) = try await phone.sign("approve", in: fixture, number: "43")
            #expect(asked["challenge"]?.string == challenge)
            let said = try await phone.client.curl(
                "POST", "/success", ["challenge": .string(challenge), "answer": .string(answer)])
            #expect(said.text == #"{"login":"failure"}"#)
            let refused = try await shop.curl(
                "POST", "/auth", ["challenge": .string(try await ask(shop, "bob.locked"))])
            #expect(refused["login"] == "failure" && refused["reason"] == "locked")
            for _ in 0..<2 {
                #expect(try await shop.curl("POST", "/user/bob.locked/unlock").status == 204)
            }
            let open = try await shop.curl(
                "POST", "/auth", ["challenge": .string(try await ask(shop, "bob.locked"))])
            #expect(open["login"] == "wait")
        }
    }

    /// The phone's request is held until a login, and the website's until the phone has answered.
    @Test(arguments: [StoreKind.file, .mariadb]) func heldPollIsAnsweredWhenAChallengeOpens(_ kind: StoreKind)
        async throws
    {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website("shop", answers: nil)
            let (token, code) = try await shop.register("bob.waits")
            let phone = try await Phone(in: fixture, token: token, code: code)
            for (round, word) in ["approve", "deny", "fraud"].enumerated() {
                let looking = try phone.client.begin(
                    "POST", "/pending", [:], fields: ["prefer": "wait=60"])
                try await fixture.relay.logged("event=request.held", number: 2 * round + 1)
                let asked = try await shop.curl(
                    "POST", "/login", ["username": "bob.waits", "request": "4711", "number": "42"])
                let found = try await phone.client.end(looking)
                #expect(found.status == 200 && found.field("preference-applied") == "wait=60")
                let (challenge, answer) = try phone.sign(
                    word, what: found, in: fixture, number: word == "approve" ? "42" : nil)
                #expect(asked["challenge"]?.string == challenge)

                let waiting = try shop.begin(
                    "POST", "/auth", ["challenge": .string(challenge)], fields: ["prefer": "wait=60"])
                try await fixture.relay.logged("event=request.held", number: 2 * round + 2)
                let said = try await phone.client.curl(
                    "POST", word == "approve" ? "/success" : "/failure",
                    ["challenge": .string(challenge), "answer": .string(answer)])
                let result = try await shop.end(waiting)
                #expect(said["login"] == result["login"] && result["proof"] == "signed", "\(said) \(result)")
                #expect(result["login"] == (word == "approve" ? "success" : "failure"))
                #expect(result["receipt"]?.string == answer)
            }
        }
    }

    /// A known challenge does not wake the phone; its end does.
    @Test(arguments: [StoreKind.file, .mariadb]) func heldPollIsAnsweredWhenTheChallengeEnds(_ kind: StoreKind)
        async throws
    {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website("shop", answers: nil)
            let (token, code) = try await shop.register("bob.knows")
            let phone = try await Phone(in: fixture, token: token, code: code)
            let challenge = try await ask(shop, "bob.knows")
            let (_, answer) = try await phone.sign("approve", in: fixture, number: "42")
            let looking = try phone.client.begin(
                "POST", "/pending", ["known": [.string(challenge)]], fields: ["prefer": "wait=60"])
            try await fixture.relay.logged("event=request.held")
            #expect(try await shop.curl("DELETE", "/challenge/\(challenge)").status == 204)
            #expect(try await phone.client.end(looking)["pending"] == [])
            let late = try await phone.client.curl(
                "POST", "/success", ["challenge": .string(challenge), "answer": .string(answer)])
            #expect(late.status == 409 && late["code"] == "already_decided", "\(late)")
        }
    }
}
