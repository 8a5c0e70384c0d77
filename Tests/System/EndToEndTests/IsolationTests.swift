import Bytes
import JSON
import TestSupport
import Testing
import World

/// Objects of another website get the same answer as unknown ones: status, header and body are equal.
@Suite("Objects of another website", .timeLimit(.minutes(15)), .mayBlock) struct IsolationTests {
    @Test(arguments: [StoreKind.file, .mariadb]) func foreignResourceIsIndistinguishableFromNotFound(_ kind: StoreKind)
        async throws
    {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website("shop", ["--answers", "website", "--number", "0"])
            let bank = try await fixture.website("bank", ["--answers", "website", "--number", "0"])
            let (token, _) = try await bank.register("alice.bank")
            _ = try await bank.curl("POST", "/verify", ["id_token": .string(token), "dev_token": "aabbccdd"])
            let asked = try await bank.curl("POST", "/login", ["token": .string(token)])
            let challenge = try #require(asked["challenge"]?.string)
            let wrong = String(repeating: "0", count: 32)

            var answers: [(String, String)] = []
            func ask(_ method: String, _ path: String, _ body: JSONObject? = nil) async throws {
                let answer = try await shop.curl(method, path, body)
                #expect(answer.status == 404, "\(method) \(path)")
                answers.append(("\(method) \(path)", answer.comparable))
            }
            for user in ["alice.bank", "nobody", "%00"] {
                try await ask("GET", "/user/\(user)")
                try await ask("DELETE", "/user/\(user)")
                try await ask("POST", "/user/\(user)/activation")
            }
            for id in [token, wrong] { try await ask("POST", "/login", ["token": .string(id)]) }
            for id in [token, wrong, "x"] {
                for path in ["/auth", "/success", "/failure"] {
                    try await ask("POST", path, ["token": .string(id)])
                }
                try await ask("POST", "/backup", ["token": .string(id), "otp": "123456"])
                try await ask("POST", "/verify", ["id_token": .string(id), "dev_token": "aa"])
            }
            for id in [challenge, wrong, "x"] {
                try await ask("POST", "/auth", ["challenge": .string(id)])
                try await ask("POST", "/backup", ["challenge": .string(id), "otp": "123456"])
                try await ask("DELETE", "/challenge/\(id)")
            }
            for (what, answer) in answers { #expect(answer == answers[0].1, "\(what)") }

            // The bank's data is unchanged.
            #expect(try await bank.curl("POST", "/auth", ["token": .string(token)])["login"] == "wait")
            #expect(try await bank.curl("GET", "/user/alice.bank")["token"]?.string == token)
        }
    }

    /// Any body about it, signed or not.
    @Test(arguments: [StoreKind.file, .mariadb], ["signed", "certificate"])
    func foreignResourceIsNotFoundForPhones(_ kind: StoreKind, answers: String) async throws {
        try await Fixture.run(kind) { fixture in
            let policies = ["--number", "0", "--answers", answers]
            let shop = try await fixture.website("shop", policies)
            let bank = try await fixture.website("bank", policies)
            let (bob, bobsCode) = try await shop.register("bob.shop")
            let phone = try await Phone(in: fixture, token: bob, code: bobsCode, pushToken: "0123456789abcdef")
            let (alice, alicesCode) = try await bank.register("alice.bank")
            let others = try await Phone(in: fixture, token: alice, code: alicesCode, website: "bank")
            let asked = try await bank.curl("POST", "/login", ["username": "alice.bank"])
            let challenge = try #require(asked["challenge"]?.string)
            let list = try await others.client.curl("POST", "/pending", [:])["pending"]?.array
            let pending = try #require(list?.first?.object)
            let shown = TestPhone.Shown(
                challenge: challenge, nonce: try #require(pending["nonce"]?.string),
                context: try #require(pending["context"]?.string.flatMap { Base64URL.decode($0) }))
            // The decision that this phone would sign, and the one that the right phone signed.
            var bodies: [JSONObject] = [[:]]
            for signer in [phone, others] {
                let signed = try signer.key.decision(
                    "approve", about: shown, device: signer.device, origin: fixture.relay.origin, at: SystemTime().now()
                )
                fixture.record(signed)
                bodies.append(["answer": .string(signed)])
            }

            var answers: [String] = []
            for path in ["/success", "/failure"] {
                for id in [challenge, String(repeating: "0", count: 32), "x"] {
                    for body in bodies {
                        var body = body
                        body.set("challenge", .string(id))
                        let answer = try await phone.client.curl("POST", path, body)
                        #expect(answer.status == 404)
                        answers.append(answer.comparable)
                    }
                }
            }
            #expect(Set(answers).count == 1)
            let result = try await bank.curl("POST", "/auth", ["challenge": .string(challenge)])
            #expect(result["login"] == "wait")
        }
    }
}
