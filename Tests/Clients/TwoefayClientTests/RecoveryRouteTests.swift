import JSON
import TestSupport
import Testing
import TwoefayClient
import World

/// The requests for a recovery, and their answers as docs/websites/recovery.md describes them.
@Suite("Recoveries of RelayClient") struct RecoveryRouteTests {
    private func lines(_ carrier: ScriptedCarrier) -> [String] {
        carrier.calls.map { call in
            "\(call.method) \(call.path)" + (call.body.map { " \(JSONWriter.text(.object($0)))" } ?? "")
        }
    }

    private func state(_ word: String, _ more: JSONObject = [:]) -> JSONObject {
        var object: JSONObject = [
            "recovery": "r1", "username": "ada", "factor": "totp", "state": .string(word),
            "expires_at": "2026-11-21T08:32:34.123Z", "proofs": [],
        ]
        for member in more.members { object.set(member.name, member.value) }
        return object
    }

    @Test func recoveryRoutesAreCalled() async throws {
        let carrier = ScriptedCarrier(
            .reply(202, ["expires_at": "2026-11-21T08:32:34.123Z"]),
            .reply(201, state("opened", ["handle": "h", "spoken_code": "042199", "proofs": ["push", "recovery"]])),
            .reply(403, ["code": "approval_required", "challenge": "c9", "number": "12"]),
            .reply(200, state("waiting", ["ready_at": "2026-11-22T08:00:00.000Z", "challenge": "c2", "number": "34"])),
            .reply(200, state("waiting")), .reply(200, state("ready")),
            .reply(
                201,
                [
                    "secret": "GEZD", "uri": "otpauth://totp/x", "qr": "<svg/>",
                    "expires_at": "2026-11-21T08:32:34.123Z",
                ]))
        let client = carrier.client()
        #expect(
            try await client.startRecovery(of: .totp, for: "ada") == Timestamp(rfc3339: "2026-11-21T08:32:34.123Z"))
        let (handle, opened) = try await client.openRecovery("t")
        #expect(handle == "h" && opened.state == .opened && opened.proofs == [.push, .recovery])
        #expect(opened.username == "ada" && opened.factor == .totp && opened.readyAt == nil)
        #expect(opened.spokenCode == "042199")
        let fault = await #expect(throws: CallFault.self) { try await client.proveRecovery("h") }
        #expect(fault?.problem?.approval?.challenge == "c9")
        let waiting = try await client.proveRecovery("h", approval: "c9")
        #expect(waiting.state == .waiting && waiting.challenge == "c2" && waiting.number == "34")
        #expect(waiting.readyAt == Timestamp(rfc3339: "2026-11-22T08:00:00.000Z"))
        #expect(try await client.askPhones(about: "h").state == .waiting)
        #expect(try await client.recovery("h").state == .ready)
        #expect(try await client.finishRecoveryOfTOTP("h").secret == "GEZD")
        #expect(
            lines(carrier) == [
                #"POST /user/ada/recovery {"factor":"totp"}"#, #"POST /recovery {"token":"t"}"#,
                #"POST /recovery/proof {"handle":"h"}"#, #"POST /recovery/proof {"approval":"c9","handle":"h"}"#,
                #"POST /recovery/approval {"handle":"h"}"#, #"POST /recovery/state {"handle":"h"}"#,
                #"POST /recovery/finish {"handle":"h"}"#,
            ])
    }

    @Test func endsAndListsAreCalled() async throws {
        let activation: JSONObject = [
            "code": "ABCD", "uri": "twoefay://enrol?relay=https://r&code=ABCD", "qr": "<svg/>",
            "expires_at": "2026-11-21T08:32:34.123Z",
        ]
        let carrier = ScriptedCarrier(
            .reply(201, ["kind": "hotp"]), .reply(201, activation), .reply(204), .reply(204),
            .reply(
                200,
                [
                    "recoveries": [
                        [
                            "recovery": "r1", "factor": "push", "state": "sent", "started_by": "operator",
                            "created_at": "2026-11-21T08:22:34.123Z", "expires_at": "2026-11-21T08:32:34.123Z",
                        ]
                    ]
                ]))
        let client = carrier.client()
        try await client.finishRecoveryOfHOTP("h", secret: "GEZD", counter: 5)
        #expect(try await client.finishRecoveryOfPhones("h").code == "ABCD")
        try await client.cancelRecovery(token: "t")
        try await client.cancelRecovery("r1", of: "ada")
        let open = try #require(try await client.recoveries(of: "ada").first)
        #expect(open.id == "r1" && open.factor == .push && open.state == .sent && open.isByOperator)
        #expect(
            lines(carrier) == [
                #"POST /recovery/finish {"handle":"h","secret":"GEZD","counter":5}"#,
                #"POST /recovery/finish {"handle":"h"}"#, #"POST /recovery/cancel {"token":"t"}"#,
                "DELETE /user/ada/recovery/r1", "GET /user/ada/recovery",
            ])
    }
}
