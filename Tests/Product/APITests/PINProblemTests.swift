import Crypto
import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing

@testable import API

/// The PIN of a phone at the API.
struct PINProblemTests {
    @Test func refusalSaysHowToGoOn() {
        let refusals: [(PINRefusal, String, Int64?)] = [
            (.unset, "pin_required", nil), (.unsigned, "pin_required", nil), (.wrong(triesLeft: 2), "pin_wrong", 2),
            (.locked, "pin_locked", nil), (.pukWrong(triesLeft: 4), "puk_wrong", 4), (.pukLocked, "puk_locked", nil),
            (.unlockWrong(triesLeft: 4), "unlock_wrong", 4), (.unlockVoid, "unlock_void", nil),
        ]
        for (refusal, code, tries) in refusals {
            for language in TextLanguage.allCases {
                let body = Problem(.pin(refusal)).body(in: language)
                #expect(body["status"] == 403 && body["code"] == .string(code))
                #expect(body["tries_left"] == tries.map { .integer($0) })
                #expect(body["detail"]?.string?.isEmpty == false)
            }
        }
    }

    @Test(arguments: StoreKind.all) func phoneSetsItsPIN(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop")
        let (token, code) = try await shop.register("bob")
        let key = try TestPhone(pushToken: "push-of-bob")
        let bound = try await shop.verify(key, token: token, code: code)
        let device = try #require(bound["device"]?.string, "\(bound.text)")
        let phone = Site(rig: rig, certificate: key.certificate(device: try #require(DeviceID(device))))
        let none = await phone.send("GET", "/device/pin")
        #expect(none.status == 200 && none["device"] == .string(device), "\(none.text)")
        #expect(
            none["pin"]?.object == ["state": "none", "version": 0, "tries_left": 3, "puk_tries_left": 5])
        #expect(await shop.devices("bob").first?["pin"] == "none")

        let (pin, puk) = (try P256PrivateKey.generate(), try P256PrivateKey.generate())
        let claims: JSONObject = [
            "v": 1, "aud": .string("\(RelayRig.origin)#shop"), "change": "set", "version": 1,
            "pin": .object(pin.publicKey.jwk), "puk": .object(puk.publicKey.jwk), "iat": 1_800_000_000,
        ]
        let statement = try JWS.sign(
            header: ["typ": "twoefay-pin+jwt", "kid": .string(device)], payload: JSONWriter.write(.object(claims)),
            key: key.key)
        let set = await phone.send("POST", "/device/pin", ["pin": .string(statement)])
        #expect(set.status == 200, "\(set.text)")
        #expect(set["pin"]?.object == ["state": "set", "version": 1, "tries_left": 3, "puk_tries_left": 5])
        #expect(await shop.devices("bob").first?["pin"] == "set")
        // No answer holds a key, with which somebody could guess.
        let x = try #require(pin.publicKey.jwk["x"]?.string)
        let user = await shop.send("GET", "/user/bob")
        #expect(!set.text.contains(x) && !user.text.contains(x))
        let website = await shop.send("GET", "/device/pin")
        #expect(website.status == 403, "\(website.text)")
    }
}
