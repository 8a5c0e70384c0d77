import Domain
import HTTP
import JSON
import Log
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import API

/// Temporary codes of the help desk, over the wire.
struct TemporaryCodeTests {
    private let rig: APIRig
    private let shop: Site

    init() async throws {
        rig = try await APIRig()
        shop = try await rig.site("shop", ["factors": "push, totp, operator"])
        _ = try await shop.register("bob")
    }

    private func give(uses: Int = 1) async throws -> String {
        let (relay, now) = (rig.relay, rig.relay.time.now())
        let id = try #require(UserID(try relay.text("SELECT lower(hex(id)) FROM user")))
        return try await relay.on { running in
            let operation = running.operations.new()
            let text = TemporaryCode.text(SystemRandomness().bytes(TemporaryCode.bytes))
            guard
                let new = NewTemporaryCode(
                    text, for: id, uses: uses, mayEnrol: false, life: .seconds(3600), at: now, as: operation,
                    by: try RelayRig.sealer()),
                try await relay.store.run(TemporaryCodes.issue(new, replacing: nil, as: operation))
            else { throw RigFailure("no code is given out") }
            return text
        }
    }

    @Test func anyWayToTypeItIsAccepted() async throws {
        let code = try await give(uses: 3)
        let bare = code.filter { $0 != "-" }
        for typed in [code, bare.lowercased(), bare.map(String.init).joined(separator: " ")] {
            let asked = try await shop.login("bob")
            let answered = await shop.send(
                "POST", "/backup", ["challenge": .string(asked.challenge), "otp": .string(typed)])
            #expect(answered.status == 200 && answered["login"] == "success", "\(typed)")
            #expect(answered["factor"] == "operator" && answered["assurance"] == "low")
        }
        #expect(rig.relay.sink.drain().allSatisfy { !$0.contains(code) && !$0.contains(bare) })
        #expect(rig.relay.registry.number("twoefay_codes_total{outcome=\"right\"}") == 3)
    }

    /// A repetition under one Idempotency-Key uses the code once.
    @Test func repeatedRequestUsesItOnce() async throws {
        let code = try await give(uses: 2)
        let asked = try await shop.login("bob")
        let body: JSONObject = ["challenge": .string(asked.challenge), "otp": .string(code)]
        for _ in 0..<3 {
            let answered = await shop.send("POST", "/backup", body, fields: [("idempotency-key", "1")])
            #expect(answered["login"] == "success")
        }
        #expect(try rig.relay.count("SELECT uses_left FROM temporary_code") == 1)
    }

    @Test func refusalsAreInBothLanguages() async throws {
        let asked = try await shop.login("bob")
        for text in ["7K3MP-X2Q9", "7U3MP-X2Q9R"] {
            let body: JSONObject = ["challenge": .string(asked.challenge), "otp": .string(text)]
            for (language, word) in [("en", "temporary"), ("de", "vorläufiger")] {
                let refused = await shop.send("POST", "/backup", body, fields: [("accept-language", language)])
                #expect(refused.status == 400 && refused.faults == ["otp format"], "\(text)")
                let message = refused["errors"]?.array?.first?.object?["message"]?.string
                #expect(message?.contains(word) == true, "\(message ?? "-")")
            }
        }
    }

    @Test func websiteSeesTheFactorWithoutTheCode() async throws {
        _ = try await give()
        let factors = await shop.send("GET", "/user/bob")["factors"]?.array?.compactMap(\.object) ?? []
        #expect(factors.map { $0["kind"] } == ["operator"])
        #expect(factors.first?.names == ["kind", "state", "created_at", "confirmed_at"])
        let asked = await shop.send("POST", "/login", ["username": "bob", "factors": ["operator"]])
        #expect(asked.status == 201 && asked["factor"] == .null)
        // Another website knows nothing of it.
        let bank = try await rig.site("bank")
        let refused = await bank.send("POST", "/login", ["username": "bob", "factors": ["operator"]])
        #expect(refused.status == 400 || refused.status == 404)
    }
}
