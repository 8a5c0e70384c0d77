import JSON
import TestSupport
import Testing
import TwoefayClient
import World

/// The requests about codes outside a login and about the expiry of users, and their results.
@Suite("Requests of RelayClient: checks and expiry") struct VerifyRouteTests {
    private func lines(_ carrier: ScriptedCarrier) -> [String] {
        carrier.calls.map { call in
            "\(call.method) \(call.path)" + (call.body.map { " \(JSONWriter.text(.object($0)))" } ?? "")
        }
    }

    @Test func verifyRouteIsCalled() async throws {
        let carrier = ScriptedCarrier(
            .reply(200, ["valid": true, "factor": "totp"]), .reply(200, ["valid": false]),
            .reply(403, ["code": "codes_locked"]))
        let client = carrier.client()
        #expect(try await client.verify("123456", of: "ada") == .totp)
        #expect(try await client.verify("123456", ofUserOf: "d1") == nil)
        let fault = await #expect(throws: CallFault.self) { try await client.verify("123456", of: "ada") }
        #expect(fault?.problem?.code == .codesLocked)
        #expect(
            lines(carrier) == [
                #"POST /verify-otp {"username":"ada","otp":"123456"}"#,
                #"POST /verify-otp {"device":"d1","otp":"123456"}"#,
                #"POST /verify-otp {"username":"ada","otp":"123456"}"#,
            ])
        #expect(carrier.calls.allSatisfy { $0.fields["idempotency-key"] != nil })
    }

    @Test func signatureRouteIsCalled() async throws {
        let certificate: JSONObject = [
            "tag": "sign", "raw": false, "serial": "4f", "certificate": "PEM",
            "created_at": "2026-11-21T08:22:34.123Z", "expires_at": "2027-02-19T08:22:34.123Z",
        ]
        let carrier = ScriptedCarrier(
            .reply(
                200,
                [
                    "valid": true, "label": "Contract 7", "signed_at": "2026-11-21T08:22:34.000Z", "username": "ada",
                    "certificate": .object(certificate),
                ]),
            .reply(
                200,
                ["valid": false, "fault": "digest", "username": "ada", "certificate": .object(certificate)]))
        let client = carrier.client()
        let hash = [UInt8](repeating: 1, count: 32)
        let valid = try await client.verifySignature(of: hash, by: "d1", tag: "sign", .statement("a.b.c"))
        #expect(valid.isValid && valid.label == "Contract 7" && valid.username == "ada")
        #expect(valid.signedAt == Timestamp(rfc3339: "2026-11-21T08:22:34.000Z"))
        #expect(valid.certificate.serial == "4f" && !valid.certificate.isRaw)
        let wrong = try await client.verifySignature(of: hash, by: "d1", tag: "sign", .raw([1, 2, 3]))
        #expect(!wrong.isValid && wrong.fault == "digest" && wrong.label == nil)
        let same = #"{"device":"d1","tag":"sign","hash":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE""#
        #expect(
            lines(carrier) == [
                #"POST /verify-signature \#(same),"statement":"a.b.c"}"#,
                #"POST /verify-signature \#(same),"signature":"AQID"}"#,
            ])
    }

    @Test func expiryIsSent() async throws {
        let user: JSONObject = [
            "email": .null, "phone": .null, "display_name": .null, "language": .null, "waiting": [],
        ]
        let carrier = ScriptedCarrier(.reply(200, user), .reply(200, user))
        let client = carrier.client()
        _ = try await client.change("ada", .init(expiry: .at(Timestamp(seconds: 1_798_758_000))))
        _ = try await client.change("ada", .init(expiry: .never))
        #expect(
            lines(carrier) == [
                #"PATCH /user/ada {"expires_at":"2026-12-31T23:00:00.000Z"}"#, #"PATCH /user/ada {"expires_at":null}"#,
            ])
    }
}
