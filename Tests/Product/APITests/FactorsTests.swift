import Bytes
import Domain
import HTTP
import JSON
import Log
import TestSupport
import Testing
import World

@testable import API

/// Code factors, over the wire.
struct FactorsTests {
    private func code(_ secret: String, at now: Timestamp, steps: Int64 = 0) throws -> JSONValue {
        let key = Secret(try #require(Base32.decode(secret)))
        let step = UInt64(OTP.step(at: now, period: 30) + steps)
        return .string(OTP.code(secret: key, counter: step, algorithm: .sha1, digits: 6))
    }

    @Test func totpSecretIsShownOnceAndConfirmedByACode() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        let made = await shop.send("POST", "/user/bob/totp", fields: [("idempotency-key", "1")])
        #expect(made.status == 201)
        #expect(made.json.names == ["secret", "uri", "qr", "expires_at"])
        #expect(made["qr"]?.string?.hasPrefix("<svg") == true)
        #expect(await shop.send("POST", "/user/bob/totp", fields: [("idempotency-key", "1")]).code == "shown_once")
        let secret = try #require(made["secret"]?.string)
        #expect(rig.relay.sink.drain().allSatisfy { !$0.contains(secret) })
        let factors = await shop.send("GET", "/user/bob")["factors"]?.array?.compactMap(\.object) ?? []
        #expect(factors.map(\.names) == [["kind", "state", "created_at"]])
        #expect(factors.first?["state"] == "waiting")

        let confirm = "/user/bob/totp/confirm"
        let far = try code(secret, at: rig.relay.time.now(), steps: 9)
        #expect(await shop.send("POST", confirm, ["otp": far]).json == ["confirmed": false])
        let right = try code(secret, at: rig.relay.time.now())
        let paused = await shop.send("POST", confirm, ["otp": right])
        #expect(paused.status == 429 && paused.fields["retry-after"] == "5")
        rig.relay.time.advance(by: .seconds(5))
        let now = try code(secret, at: rig.relay.time.now())
        #expect(await shop.send("POST", confirm, ["otp": now]).json == ["confirmed": true])
        let shown = await shop.send("GET", "/user/bob")["factors"]?.array?.first?.object
        #expect(shown?.names == ["kind", "state", "created_at", "confirmed_at", "last_code_at"])
        #expect(shown?["kind"] == "totp" && shown?["state"] == "active")

        let second = await shop.send("POST", "/user/bob/totp")
        #expect(second.status == 403 && second.code == "approval_required")
        for _ in 0..<2 { #expect(await shop.send("DELETE", "/user/bob/totp").status == 204) }
        #expect(await shop.send("GET", "/user/bob")["factors"] == [])
        #expect(await shop.send("POST", confirm, ["otp": now]).status == 409)
    }

    @Test func hotpTokenIsActiveImmediately() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["further-factors": "website"])
        _ = try await shop.register("bob")
        let seed: JSONObject = ["secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "counter": 4]
        let made = await shop.send("POST", "/user/bob/hotp", seed)
        #expect(made.status == 201)
        #expect(made.json.names == ["kind", "state", "created_at", "confirmed_at"])
        #expect(await shop.send("POST", "/user/bob/hotp", seed).status == 409)
        // RFC 4226 appendix D, counters 8 and 9.
        let found = await shop.send("POST", "/user/bob/hotp/resync", ["otps": ["399871", "520489"]])
        #expect(found.json == ["resynced": true])
        #expect(await shop.send("POST", "/user/bob/hotp/resync", ["otps": ["399871"]]).faults == ["otps length"])
        for (body, fault) in [
            (["secret": "x"], "secret format"), (["secret": "hex:00"], "secret format"), ([:], "secret missing"),
        ] as [(JSONObject, String)] {
            #expect(await shop.send("POST", "/user/bob/hotp", body).faults == [fault])
        }
        #expect(await shop.send("POST", "/user/bob/totp", ["period": 45]).faults == ["period format"])
        #expect(await shop.send("DELETE", "/user/bob/hotp").status == 204)
    }

    @Test func recoveryCodesAreShownOnceAndUnlockTheUser() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.register("bob")
        let path = "/user/bob/recovery-codes"
        let given = await shop.send("POST", path, fields: [("idempotency-key", "1")])
        #expect(given.status == 201 && given.json.names == ["codes"])
        let codes = given["codes"]?.array?.compactMap(\.string) ?? []
        #expect(codes.count == 10)
        #expect(await shop.send("POST", path, fields: [("idempotency-key", "1")]).code == "shown_once")
        #expect(rig.relay.sink.drain().allSatisfy { line in codes.allSatisfy { !line.contains($0) } })
        let factors = await shop.send("GET", "/user/bob")["factors"]?.array?.compactMap { $0.object?["kind"] }
        #expect(factors == ["recovery"])

        try rig.relay.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
        let shown = await shop.send("GET", "/user/bob")["factors"]?.array?.first?.object
        #expect(shown?["state"] == "frozen")
        #expect(await shop.send("POST", "/user/bob/unlock").status == 403)
        let wrong = await shop.send("POST", "/user/bob/unlock", ["otp": "mzxw-6ytb-ojrg-c6tr"])
        #expect(wrong.status == 200 && wrong.json == ["unlocked": false])
        #expect(await shop.send("POST", "/user/bob/unlock", ["otp": .string(codes[0])]).status == 429)
        rig.relay.time.advance(by: .seconds(5))
        #expect(await shop.send("POST", "/user/bob/unlock", ["otp": .string(codes[0])]).status == 204)
        #expect(try await shop.login("bob").challenge.utf8.count == 32)
    }
}
