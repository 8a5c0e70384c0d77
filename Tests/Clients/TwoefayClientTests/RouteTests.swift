import Bytes
import JSON
import TestSupport
import Testing
import TwoefayClient
import World

/// The requests of each function, and its results from the answers of docs/websites/api.md.
@Suite("Requests of RelayClient") struct RouteTests {
    /// Returns the requests in the form `POST /login {"username":"ada"}`. Checks that every POST
    /// except /auth has an idempotency key.
    private func lines(_ carrier: ScriptedCarrier) -> [String] {
        for call in carrier.calls where call.path != "/auth" {
            #expect((call.fields["idempotency-key"] != nil) == (call.method == "POST"))
            #expect((call.fields["content-type"] == "application/json") == (call.body != nil))
        }
        return carrier.calls.map { call in
            "\(call.method) \(call.path)" + (call.body.map { " \(JSONWriter.text(.object($0)))" } ?? "")
        }
    }

    private static let activation: JSONObject = [
        "code": "ABCD", "uri": "twoefay://enrol?relay=https://r&code=ABCD", "qr": "<svg/>",
        "expires_at": "2026-11-21T08:32:34.123Z",
    ]
    private static let phone: JSONObject = [
        "device": "d1", "name": "Ada's", "platform": "ios", "state": "active", "jwk": ["kty": "EC"],
        "thumbprint": "t1", "binding": "b1", "created_at": "2026-11-21T08:22:34.123Z", "last_seen_at": .null,
    ]

    @Test func registerRoutesAreCalled() async throws {
        let carrier = ScriptedCarrier(
            .reply(201, ["token": "t", "activation": .object(Self.activation)]),
            .reply(201, ["token": "t", "activation": .object(Self.activation)]), .reply(201, Self.activation),
            .reply(403, ["code": "approval_required", "challenge": "c9", "number": "12"]),
            .reply(201, Self.activation))
        let client = carrier.client()
        let registered = try await client.register("ada")
        #expect(registered.token == "t" && registered.activation?.code == "ABCD")
        #expect(registered.mailed == nil && !registered.awaitsIdentity)
        #expect(registered.activation?.qr == "<svg/>")
        #expect(registered.activation?.expiresAt == Timestamp(rfc3339: "2026-11-21T08:32:34.123Z"))
        _ = try await client.register(
            "eve", email: "eve@example.com", phone: "+4312345", displayName: "Eve", language: "de")
        let k = Secret([UInt8](repeating: 1, count: 32))
        #expect(
            try await client.activation(for: "zoë/1").uri(with: k)
                == "twoefay://enrol?relay=https://r&code=ABCD&k=AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE")
        let fault = await #expect(throws: CallFault.self) { try await client.activation(for: "ada") }
        #expect(fault?.problem?.code == .approvalRequired)
        #expect(fault?.problem?.approval?.challenge == "c9" && fault?.problem?.approval?.number == "12")
        _ = try await client.activation(for: "ada", approval: "c9")
        #expect(
            lines(carrier) == [
                #"POST /register {"username":"ada"}"#,
                #"POST /register {"username":"eve","email":"eve@example.com","phone":"+4312345","#
                    + #""display_name":"Eve","language":"de"}"#,
                "POST /user/zo%C3%AB%2F1/activation {}", "POST /user/ada/activation {}",
                #"POST /user/ada/activation {"approval":"c9"}"#,
            ])
    }

    @Test func recoveryCodesAreTypedBack() async throws {
        let carrier = ScriptedCarrier(
            .reply(201, ["codes": ["a", "b"], "position": 2]), .reply(200, ["confirmed": false]),
            .reply(200, ["confirmed": true]))
        let client = carrier.client()
        let new = try await client.recoveryCodes(for: "ada")
        #expect(new.codes == ["a", "b"] && new.position == 2)
        #expect(try await !client.confirmRecoveryCodes(of: "ada", code: "a"))
        #expect(try await client.confirmRecoveryCodes(of: "ada", code: "b"))
        #expect(lines(carrier).last == #"POST /user/ada/recovery-codes/confirm {"otp":"b"}"#)
    }

    @Test func mailedActivationsAreRead() async throws {
        let mailed: JSONObject = ["sent_to": "a…@example.com", "expires_at": "2026-11-21T08:32:34.123Z"]
        let carrier = ScriptedCarrier(
            .reply(201, ["token": "t", "activation": .object(mailed)]),
            .reply(201, ["token": "t", "activation": ["awaits": "identity"]]), .reply(202, mailed))
        let client = carrier.client()
        let expiry = try #require(Timestamp(rfc3339: "2026-11-21T08:32:34.123Z"))
        let first = try await client.register("ada", email: "a@example.com")
        #expect(first.activation == nil && !first.awaitsIdentity)
        #expect(first.mailed?.sentTo == "a…@example.com" && first.mailed?.expiresAt == expiry)
        let second = try await client.register("bob", email: "b@example.com")
        #expect(second.activation == nil && second.mailed == nil && second.awaitsIdentity && second.token == "t")
        #expect(try await client.mailActivation(to: "ada", approval: "c9", languages: "de") == first.mailed)
        #expect(lines(carrier).last == #"POST /user/ada/activation {"approval":"c9"}"#)
    }

    @Test func userRoutesAreCalled() async throws {
        let user: JSONObject = [
            "token": "t", "email": "a@example.com", "phone": .null, "state": "locked", "stopped_by": "phone",
            "codes": "locked",
            "factors": [
                ["kind": "push", "state": "locked"],
                ["kind": "mail", "state": "locked", "address": "a…@example.com", "failures": 10],
            ],
            "devices": [.object(Self.phone)],
        ]
        let carrier = ScriptedCarrier(
            .reply(200, user), .reply(200, ["email": "b@example.com", "waiting": ["b@example.com"]]),
            .reply(200, ["waiting": []]), .reply(200, ["confirmed": false]), .reply(202, ["address": "b@example.com"]),
            .reply(204), .reply(204), .reply(200, ["unlocked": false]), .reply(204))
        let client = carrier.client()
        let ada = try await client.user("ada")
        #expect(ada.token == "t" && ada.email == "a@example.com" && ada.phone == nil && ada.state == .locked)
        #expect(ada.stoppedBy == "phone" && ada.areCodesLocked && ada.factors.map(\.kind) == [.push, .mail])
        #expect(ada.factors.map(\.failures) == [0, 10] && ada.factors[1].address == "a…@example.com")
        let device = try #require(ada.devices.first)
        #expect(device.id == "d1" && device.name == "Ada's" && device.platform == "ios" && device.state == .active)
        #expect(device.thumbprint == "t1" && device.lastSeenAt == nil && device.json == Self.phone)
        #expect(device.createdAt == Timestamp(rfc3339: "2026-11-21T08:22:34.123Z"))
        #expect(
            try await client.change("ada", .init(email: .to("b@example.com"), phone: .removed))
                == ["b@example.com"])
        #expect(try await client.change("ada", .init(language: .to("de")), approval: "c9") == [])
        #expect(try await client.confirm("b@example.com", of: "ada", code: "123456") == false)
        try await client.sendCode(to: "b@example.com", of: "ada")
        try await client.forget("ada")
        #expect(try await client.unlock("ada"))
        #expect(try await client.unlock("ada", recoveryCode: "abcd") == false)
        #expect(try await client.unlock("ada", approval: "c9"))
        #expect(
            lines(carrier) == [
                "GET /user/ada", #"PATCH /user/ada {"email":"b@example.com","phone":null}"#,
                #"PATCH /user/ada {"language":"de","approval":"c9"}"#,
                #"POST /user/ada/confirm {"address":"b@example.com","otp":"123456"}"#,
                #"POST /user/ada/confirm {"address":"b@example.com"}"#, "DELETE /user/ada",
                "POST /user/ada/unlock {}", #"POST /user/ada/unlock {"otp":"abcd"}"#,
                #"POST /user/ada/unlock {"approval":"c9"}"#,
            ])
    }

    @Test func deviceRoutesAreCalled() async throws {
        let carrier = ScriptedCarrier(
            .reply(200, Self.phone), .reply(200, Self.phone), .reply(200, Self.phone), .reply(200, Self.phone),
            .reply(204))
        let client = carrier.client()
        #expect(try await client.suspend("d1", of: "ada").id == "d1")
        try await client.resume("d1", of: "ada")
        try await client.rename("d1", of: "ada", to: "Old one")
        try await client.markVerified("d1", of: "ada")
        try await client.unbind("d1", of: "ada")
        #expect(
            lines(carrier) == [
                #"PATCH /user/ada/devices/d1 {"state":"suspended"}"#,
                #"PATCH /user/ada/devices/d1 {"state":"active"}"#,
                #"PATCH /user/ada/devices/d1 {"name":"Old one"}"#,
                #"PATCH /user/ada/devices/d1 {"verified":true}"#, "DELETE /user/ada/devices/d1",
            ])
    }

    @Test func messageRoutesAreCalled() async throws {
        let message: JSONObject = [
            "message": "m1", "from": "operator", "title": "Maintenance", "text": "On Sunday.",
            "created_at": "2026-11-21T08:22:34.123Z", "read_at": .null,
        ]
        let carrier = ScriptedCarrier(
            .reply(201, ["message": "m1", "created_at": "2026-11-21T08:22:34.123Z"]),
            .reply(200, ["messages": [.object(message)]]), .reply(204),
            .reply(200, ["messages": [["message": "m1", "from": "nobody"]]]))
        let client = carrier.client()
        #expect(try await client.leaveMessage("Maintenance", "On Sunday.", for: "ada") == "m1")
        let read = try #require(try await client.messages(for: "ada").first)
        #expect(read.id == "m1" && read.author == .operator && read.title == "Maintenance" && read.readAt == nil)
        #expect(read.text == "On Sunday." && read.createdAt == Timestamp(rfc3339: "2026-11-21T08:22:34.123Z"))
        try await client.deleteMessage("m1", for: "ada")
        await #expect(throws: CallFault.self) { try await client.messages(for: "ada") }
        #expect(
            lines(carrier) == [
                #"POST /user/ada/messages {"title":"Maintenance","text":"On Sunday."}"#, "GET /user/ada/messages",
                "DELETE /user/ada/messages/m1", "GET /user/ada/messages",
            ])
    }

    @Test func webhookSecretsAreFetched() async throws {
        let (time, end) = ("2026-11-21T08:22:34.123Z", "2026-11-22T08:22:34.123Z")
        let carrier = ScriptedCarrier(
            .reply(
                200,
                [
                    "secrets": [["secret": "whsec_Mg=="], ["secret": "whsec_MQ==", "until": .string(end)]],
                    "made_at": .string(time), "next_at": .null,
                ]),
            .reply(200, ["secrets": [], "made_at": .string(time), "next_at": .null]))
        let client = carrier.client()
        let found = try await client.webhookSecrets()
        #expect(found.secrets == ["whsec_Mg==", "whsec_MQ=="] && found.previousUntil == Timestamp(rfc3339: end))
        #expect(found.madeAt == Timestamp(rfc3339: time) && found.nextAt == nil)
        await #expect(throws: CallFault.self) { try await client.webhookSecrets() }
        #expect(lines(carrier) == ["GET /webhook/secrets", "GET /webhook/secrets"])
    }

    @Test func certificateIsRenewed() async throws {
        let time = "2028-11-21T08:22:34.123Z"
        let carrier = ScriptedCarrier(
            .reply(200, ["certificate": "PEM", "expires_at": .string(time)]), .reply(200, ["certificate": "PEM"]))
        let renewed = try await carrier.client().renewCertificate(request: "CSR")
        #expect(renewed.certificate == "PEM" && renewed.expiresAt == Timestamp(rfc3339: time))
        await #expect(throws: CallFault.self) { try await carrier.client().renewCertificate(request: "CSR") }
        #expect(lines(carrier).first == #"POST /website/certificate {"csr":"CSR"}"#)
    }

    @Test func codeRoutesAreCalled() async throws {
        let setup: JSONObject = [
            "secret": "GEZDGNBV", "uri": "otpauth://totp/x", "qr": "<svg/>",
            "expires_at": "2026-11-21T08:32:34.123Z",
        ]
        let carrier = ScriptedCarrier(
            .reply(201, setup), .reply(201, setup), .reply(200, ["confirmed": true]), .reply(204),
            .reply(201, ["kind": "hotp"]), .reply(200, ["resynced": true]), .reply(204),
            .reply(201, ["codes": ["a", "b"]]))
        let client = carrier.client()
        #expect(try await client.addTOTP(for: "ada").secret == "GEZDGNBV")
        let shape = RelayClient.CodeShape(algorithm: "SHA256", digits: 8, period: 60)
        #expect(try await client.addTOTP(for: "ada", shape, approval: "c9").uri == "otpauth://totp/x")
        #expect(try await client.confirmTOTP(of: "ada", code: "123456"))
        try await client.dropTOTP(of: "ada")
        try await client.addHOTP(for: "ada", secret: "GEZDGNBV", counter: 7)
        #expect(try await client.resynchroniseHOTP(of: "ada", codes: ("1", "2")))
        try await client.dropHOTP(of: "ada")
        #expect(try await client.recoveryCodes(for: "ada").codes == ["a", "b"])
        #expect(
            lines(carrier) == [
                "POST /user/ada/totp {}",
                #"POST /user/ada/totp {"approval":"c9","algorithm":"SHA256","digits":8,"period":60}"#,
                #"POST /user/ada/totp/confirm {"otp":"123456"}"#, "DELETE /user/ada/totp",
                #"POST /user/ada/hotp {"secret":"GEZDGNBV","counter":7}"#,
                #"POST /user/ada/hotp/resync {"otps":["1","2"]}"#, "DELETE /user/ada/hotp",
                "POST /user/ada/recovery-codes {}",
            ])
    }

    @Test func loginRoutesAreCalled() async throws {
        let steps: JSONValue = [
            ["factor": "push", "state": "undeliverable", "at": "2026-11-21T08:22:34.123Z", "reason": "410"],
            ["factor": "a new one", "state": "sent", "at": "2026-11-21T08:22:35.000Z"],
        ]
        let carrier = ScriptedCarrier(
            .asked,
            .reply(
                201,
                ["login": "unverified", "challenge": "c2", "factor": .null, "expires_at": "2026-11-21T10:09:47.940Z"]
            ),
            .reply(
                200,
                [
                    "login": "success", "challenge": "c1", "factor": "push", "assurance": "high", "proof": "signed",
                    "steps": steps, "device": "d1", "receipt": "a.b.c", "context": "e30",
                ]),
            .reply(200, ["login": "", "steps": []]), .denied, .reply(202, ["state": "sent"]), .reply(204))
        let client = carrier.client()
        let full = LoginRequest(
            username: "ada", ip: "203.0.113.7", userAgent: "Firefox", service: "Payments", action: "transfer",
            details: [.init(label: "amount", value: "12 €")], number: "47", languages: "de, en;q=0.5",
            factors: [.push, .totp], leastAssurance: .substantial, life: .seconds(120))
        let login = try await client.ask(full)
        let request = try #require(carrier.calls[0].body?["request"]?.string)
        #expect(request.count == 32)
        #expect(
            login.asked
                == LoginRecord(
                    challenge: "c1", username: "ada", request: request, number: "47", service: "Payments",
                    action: "transfer", details: full.details, ip: "203.0.113.7", userAgent: "Firefox",
                    askedAt: carrier.time.now().seconds))
        #expect(login.hasPhone && login.factor == .push && login.number == "47")
        #expect(login.expiresAt == Timestamp(rfc3339: "2026-11-21T10:09:47.940Z"))
        // A session stores this form.
        #expect(LoginRecord(login.asked.json) == login.asked && LoginRecord(["challenge": "c1"]) == nil)
        let bare = try await client.ask(LoginRequest(username: "ada"))
        #expect(!bare.hasPhone && bare.factor == nil && bare.number == nil)

        let outcome = try await client.result(of: "c1")
        #expect(outcome.isSuccess && outcome.isDecided && outcome.proof == .signed && outcome.assurance == .high)
        #expect(outcome.steps.map(\.factor.rawValue) == ["push", "a new one"])
        #expect(outcome.steps.map(\.reason) == ["410", nil] && outcome.steps[0].state == "undeliverable")
        #expect(try LoginEvidence(outcome) == LoginEvidence(device: "d1", receipt: "a.b.c", context: "e30"))
        let nothing = try await client.result(of: "c0")
        #expect(nothing.login == .nothing && !nothing.isDecided)
        let wrong = try await client.enter("123456", for: "c1")
        #expect(wrong.login == .failure && wrong.reason == .denied)
        try await client.begin(.sms, of: "c1")
        try await client.cancel("c1")

        #expect(carrier.calls[0].fields["accept-language"] == "de, en;q=0.5")
        let sent = lines(carrier)
        #expect(
            sent[0]
                == #"POST /login {"username":"ada","request":"\#(request)","ip":"203.0.113.7","user_agent":"Firefox","#
                + #""service":"Payments","action":"transfer","number":"47","details":[{"label":"amount","value":"12 €"}],"#
                + #""factors":["push","totp"],"min_assurance":"substantial","expires_in":120}"#)
        #expect(
            sent[2...] == [
                #"POST /auth {"challenge":"c1"}"#, #"POST /auth {"challenge":"c0"}"#,
                #"POST /backup {"challenge":"c1","otp":"123456"}"#, #"POST /challenge/c1/factor {"factor":"sms"}"#,
                "DELETE /challenge/c1",
            ])
    }

    @Test func genericCallReachesOtherRoutes() async throws {
        let carrier = ScriptedCarrier(.reply(200, ["login": "success"]), .reply(204))
        let client = carrier.client()
        #expect(
            try await client.call("POST", "/success", ["token": "t"], fields: ["x": "y"])["login"] == "success")
        #expect(try await client.call("DELETE", "/x") == [:])
        #expect(lines(carrier) == [#"POST /success {"token":"t"}"#, "DELETE /x"])
        #expect(carrier.calls[0].fields["x"] == "y")
    }
}
