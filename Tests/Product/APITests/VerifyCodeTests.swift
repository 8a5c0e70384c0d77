import Bytes
import Domain
import HTTP
import JSON
import Log
import TestSupport
import Testing
import World

@testable import API

/// `POST /verify-otp`.
struct VerifyCodeTests {
    /// The codes of the rig's secret for the counters 0 and 1 (RFC 4226, appendix D).
    private static let codes = ["755224", "287082"]

    @Test(arguments: StoreKind.all) func codeIsCheckedByUserOrDevice(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        try await shop.give(.hotp, to: "bob", at: "shop")
        let device = try #require(await shop.devices("bob").first?["device"])
        let named = await shop.send("POST", "/verify-otp", ["username": "bob", "otp": .string(Self.codes[0])])
        #expect(named.status == 200 && named.json == ["valid": true, "factor": "hotp"], "\(named.text)")
        let ofDevice = await shop.send("POST", "/verify-otp", ["device": device, "otp": .string(Self.codes[1])])
        #expect(ofDevice.json == ["valid": true, "factor": "hotp"], "\(ofDevice.text)")
        let again = await shop.send("POST", "/verify-otp", ["device": device, "otp": .string(Self.codes[1])])
        #expect(again.status == 200 && again.json == ["valid": false], "\(again.text)")
        let early = await shop.send("POST", "/verify-otp", ["username": "bob", "otp": "000000"])
        #expect(early.status == 429 && early.fields["retry-after"] == "5", "\(early.text)")
        #expect(rig.relay.sink.drain().allSatisfy { line in Self.codes.allSatisfy { !line.contains($0) } })
    }

    @Test func unsuitableRequestIsRefused() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let device = try #require(await shop.devices("bob").first?["device"])
        for (body, fault) in [
            (["username": "bob"], "otp missing"), (["otp": "123456"], "username missing"),
            (["username": "bob", "otp": "12345"], "otp format"), (["username": "bob", "otp": " 12345"], "otp format"),
            (["username": "bob", "device": device, "otp": "123456"], "device mismatch"),
        ] as [(JSONObject, String)] {
            let answer = await shop.send("POST", "/verify-otp", body)
            #expect(answer.status == 400 && answer.faults.contains(fault), "\(answer.text)")
        }
        let without = await shop.send("POST", "/verify-otp", ["username": "bob", "otp": "123456"])
        #expect(without.status == 409 && without.faults == ["otp state"], "\(without.text)")
        for unknown in [["username": "eve"], ["device": "x"], ["device": .string(String(repeating: "0", count: 32))]]
            as [JSONObject]
        {
            var body = unknown
            body.set("otp", "123456")
            #expect(await shop.send("POST", "/verify-otp", body).status == 404)
        }
        #expect(await phone.send("POST", "/verify-otp", ["username": "bob", "otp": "123456"]).status == 403)
    }
}
