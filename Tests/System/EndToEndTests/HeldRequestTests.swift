import JSON
import TestSupport
import Testing

/// Held requests, and changes by another process meanwhile.
@Suite("A held request", .timeLimit(.minutes(15)), .mayBlock) struct HeldRequestTests {
    @Test(arguments: [StoreKind.file, .mariadb]) func operatorLockEndsTheHeldRequest(_ kind: StoreKind) async throws {
        try await Fixture.run(kind) { fixture in
            let shop = try await fixture.website("shop", ["--number", "0", "--answers", "website"])
            var held: [Child] = []
            var tokens: [String] = []
            // If only the time-out answered them, the first would be answered first.
            for (count, name) in ["carol.first", "bob.second"].enumerated() {
                let (token, _) = try await shop.register(name)
                _ = try await shop.curl("POST", "/verify", ["id_token": .string(token), "dev_token": "aabbccdd"])
                let asked = try await shop.curl("POST", "/login", ["token": .string(token)])
                #expect(asked.status == 201, "\(asked)")
                let about: JSONObject = ["token": .string(token)]
                held.append(try shop.begin("POST", "/auth", about, fields: ["Prefer": "wait=60"]))
                try await fixture.relay.logged("event=request.held", number: count + 1)
                tokens.append(token)
            }
            try await fixture.relay.tool("user", "lock", "bob.second", "--website", "shop")
            let result = try await shop.end(held[1])
            #expect(result["login"] == "failure" && result["reason"] == "locked", "\(result)")
            #expect(result.field("preference-applied") == "wait=60")
            // The other request is still held, and is woken by its own answer.
            #expect(held[0].written.output.isEmpty)
            #expect(try await shop.curl("POST", "/success", ["token": .string(tokens[0])]).status == 200)
            #expect(try await shop.end(held[0])["login"] == "success")
        }
    }
}
