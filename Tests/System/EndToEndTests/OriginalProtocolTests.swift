import JSON
import TestSupport
import Testing

/// The protocol of the original, as its documentation shows it, with curl.
@Suite("The original protocol", .timeLimit(.minutes(15)), .mayBlock) struct OriginalProtocolTests {
    static let stores: [StoreKind] = [.file, .mariadb]

    /// Adds a website that answers for its users.
    private func shop(in fixture: Fixture) async throws -> APIClient {
        try await fixture.website("shop", ["--answers", "website", "--number", "0"])
    }

    @Test(arguments: stores) func originalRequestsGetTheOriginalAnswers(_ kind: StoreKind) async throws {
        try await Fixture.run(kind) { fixture in
            let shop = try await shop(in: fixture)
            let registered = try await shop.curl(
                "POST", "/register",
                ["username": "bob.original", "email": "bob.secret@example.com", "phone": "+4915112345678"])
            #expect(registered.status == 201)
            #expect(registered.json?.object?.names == ["token", "activation"])
            #expect(registered.field("content-type") == "application/json")
            #expect(registered.field("cache-control") == "no-store")
            let token = try #require(registered["token"]?.string)

            let user = try await shop.curl("GET", "/user/bob.original")
            #expect(user.status == 200)
            #expect(user["token"]?.string == token)
            #expect(user["email"] == "bob.secret@example.com")
            #expect(user["phone"] == "+4915112345678")

            // Byte for byte, as the original's clients send it.
            func post(_ path: String, _ body: String) async throws -> CurlCaller.Answer {
                try await shop.curl("POST", path, raw: body)
            }
            #expect(try await post("/auth", #"{"token":"\#(token)"}"#).text == #"{"login":""}"#)

            let unbound = try await post("/login", #"{"token":"\#(token)"}"#)
            #expect(unbound.status == 201)
            #expect(unbound["login"] == "unverified")

            fixture.record("abcdef0123456789")
            let bound = try await post("/verify", #"{"id_token":"\#(token)","dev_token":"abcdef0123456789"}"#)
            #expect(bound.status == 200)
            #expect(bound.text == #"{"login":"verified"}"#)

            for (path, word) in [("/success", "success"), ("/failure", "failure")] {
                let asked = try await post("/login", #"{"token":"\#(token)","service":"Shop","ip":"192.0.2.177"}"#)
                #expect(asked.status == 201)
                #expect(asked["login"] == "verified")
                #expect(try await post("/auth", #"{"token":"\#(token)"}"#)["login"] == "wait")
                #expect(try await post(path, #"{"token":"\#(token)"}"#).text == #"{"login":"\#(word)"}"#)
                let result = try await post("/auth", #"{"token":"\#(token)"}"#)
                #expect(result["login"]?.string == word)
                #expect(result["challenge"] == asked["challenge"])
                #expect(result["proof"] == "website")
                let again = try await post(path, #"{"token":"\#(token)"}"#)
                #expect(again.status == 409)
                #expect(again["code"] == "already_decided")
                #expect(again["login"]?.string == word)
            }
            fixture.record("192.0.2.177")

            #expect(try await shop.curl("DELETE", "/user/bob.original").status == 204)
            #expect(try await shop.curl("GET", "/user/bob.original").status == 404)
            #expect(try await post("/auth", #"{"token":"\#(token)"}"#).status == 404)
        }
    }

    @Test(arguments: stores) func customHeaderFieldsAreAccepted(_ kind: StoreKind) async throws {
        try await Fixture.run(kind) { fixture in
            let shop = try await shop(in: fixture)
            let (token, _) = try await shop.register("bob.header")
            let (other, _) = try await shop.register("eve.header")
            let bound = try await shop.curl("POST", "/verify", ["id_token": .string(token), "dev_token": "aabbccdd"])
            #expect(bound.text == #"{"login":"verified"}"#)

            // With an empty body, and without a body.
            #expect(try await shop.curl("POST", "/login", [:], fields: ["token": token]).status == 201)
            #expect(try await shop.curl("POST", "/auth", fields: ["token": token])["login"] == "wait")
            #expect(try await shop.curl("POST", "/failure", fields: ["token": token]).text == #"{"login":"failure"}"#)
            #expect(try await shop.curl("POST", "/login", fields: ["username": "bob.header"]).status == 201)
            #expect(try await shop.curl("POST", "/success", fields: ["token": token]).text == #"{"login":"success"}"#)
            let registered = try await shop.curl("POST", "/register", [:], fields: ["username": "carol.header"])
            #expect(registered.status == 201)

            let unlike = try await shop.curl("POST", "/auth", ["token": .string(token)], fields: ["token": other])
            #expect(unlike.status == 400)
            #expect(unlike.isProblem)
            #expect(unlike.faults == ["token mismatch"])
            let apart = try await shop.curl("POST", "/login", fields: ["token": token, "username": "eve.header"])
            #expect(apart.status == 409)
            #expect(apart.faults == ["username mismatch"])
            let place = try await shop.curl("GET", "/user/bob.header", fields: ["username": "eve.header"])
            #expect(place.faults == ["username mismatch"])
        }
    }

    /// The answer arrives on another connection, from another curl process.
    @Test(arguments: stores) func authHoldsWithPreferWait(_ kind: StoreKind) async throws {
        try await Fixture.run(kind) { fixture in
            let shop = try await shop(in: fixture)
            let (token, _) = try await shop.register("bob.held")
            let about: JSONObject = ["token": .string(token)]
            _ = try await shop.curl("POST", "/verify", ["id_token": .string(token), "dev_token": "aabbccdd"])
            for word in ["success", "failure"] {
                _ = try await shop.curl("POST", "/login", about)
                let held = try shop.begin("POST", "/auth", about, fields: ["prefer": "wait=30"])
                try await fixture.relay.logged("event=request.held", number: word == "success" ? 1 : 2)
                #expect(held.written.output.isEmpty)
                #expect(try await shop.curl("POST", "/\(word)", about).status == 200)
                let result = try await shop.end(held)
                #expect(result.status == 200)
                #expect(result["login"]?.string == word)
                #expect(result.field("preference-applied") == "wait=30")
            }
            _ = try await shop.curl("POST", "/login", about)
            let patient = try await shop.curl("POST", "/auth", about, fields: ["prefer": "wait=1"])
            #expect(patient["login"] == "wait")
            #expect(patient.field("preference-applied") == "wait=1")
        }
    }

    @Test(arguments: stores) func wrongCodesAreCountedAndChallengesCancelled(_ kind: StoreKind) async throws {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website(
                "shop", ["--answers", "website", "--number", "0"])
            let (token, _) = try await shop.register("bob.codes")
            let about: JSONObject = ["token": .string(token)]

            let asked = try await shop.curl("POST", "/login", about)
            let challenge = try #require(asked["challenge"])
            for subject in [("token", JSONValue.string(token)), ("challenge", challenge)] {
                var guess: JSONObject = ["otp": "918273"]
                guess.set(subject.0, subject.1)
                let wrong = try await shop.curl("POST", "/backup", guess)
                #expect(wrong.status == 200)
                #expect(wrong["login"] == "failure")
            }

            let path = "/challenge/\(challenge.string ?? "")"
            #expect(try await shop.curl("DELETE", path).status == 204)
            #expect(try await shop.curl("DELETE", path).status == 204)
            let result = try await shop.curl("POST", "/auth", ["challenge": challenge])
            #expect(result["login"] == "failure")
            #expect(result["reason"] == "cancelled")

            let activation = try await shop.curl("POST", "/user/bob.codes/activation")
            #expect(activation.status == 201)
            #expect(activation.json?.object?.names == ["code", "uri", "qr", "expires_at"])
            let uri = try #require(activation["uri"]?.string)
            #expect(uri.hasPrefix("twoefay://enrol?relay="))
            #expect(uri.contains(token))
            #expect(uri.contains(try #require(activation["code"]?.string)))
            #expect(activation["qr"]?.string?.contains("<svg") == true)
        }
    }
}
