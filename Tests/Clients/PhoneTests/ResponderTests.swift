import Bytes
import Crypto
import EventLoop
import HTTP
import JSON
import TLS
import TestSupport
import Testing
import World

@testable import Phone

@Suite(.timeLimit(.minutes(15))) struct ResponderTests {
    @Test func responderAuthenticatesByCertificate() async throws {
        let relay = try FakeRelay((200, Listed.answer([Listed()])), (200, Listed.answer([])))
        try await relay.run { loop, address in
            let phone = try Responder(try relay.bound(address), loop: loop)
            defer { phone.close() }
            let first = try await phone.pending(waiting: 60)
            #expect(try await phone.pending(waiting: 60, knowing: first.challenges).isEmpty)
        }
        let pins = JSONValue.array([.string(Base64URL.encode(relay.authority.keyThumbprint))])
        #expect(
            relay.asked.map(\.body) == [
                ["pins": pins, "pins_seq": 0], ["pins": pins, "pins_seq": 0, "known": ["c1"]],
            ])
        let asked = try #require(relay.asked.first)
        #expect(asked.path == "/pending" && asked.fields["prefer"] == "wait=60")
        #expect(asked.certificate?.uris == ["twoefay:device:d1"])
        #expect(asked.fields["dpop"] == nil)
    }

    /// RFC 9449: the first proof has no nonce, and the refusal contains one. The phone repeats the
    /// request once with it.
    @Test func responderAuthenticatesByDPoP() async throws {
        let relay = try FakeRelay()
        let nonce = { (text: String) in [Fields.Field("dpop-nonce", text)] }
        relay.answer(401, ["code": "unauthenticated"], fields: nonce("n1"))
        relay.answer(200, Listed.answer([]), fields: nonce("n2"))
        relay.answer(200, Listed.answer([]))
        relay.answer(401, ["code": "unauthenticated"], fields: nonce("n2"))
        relay.answer(200, ["bound": true])
        relay.answer(401, ["code": "unauthenticated"], fields: nonce("n3"))
        relay.answer(401, ["code": "unauthenticated"], fields: nonce("n4"))
        relay.answer(200, ["bound": true])
        let (origin, key) = try await relay.run { loop, address in
            let enrolment = try relay.bound(address)
            let phone = try Responder(enrolment, by: .dpop, loop: loop)
            defer { phone.close() }
            _ = try await phone.pending()
            _ = try await phone.pending()
            // A refusal is final if its nonce is not new. With a new nonce, the request is repeated
            // once.
            for _ in 0..<2 {
                await #expect(throws: CallFailure.self) { try await phone.pending() }
            }
            return (address.text, enrolment.key.publicKey)
        }
        // After a refusal, the phone also asks whether it was unbound.
        let asked = relay.asked.filter { $0.path == "/pending" }
        #expect(asked.allSatisfy { $0.certificate == nil })
        let proofs = try asked.map { try JWS.parse(try #require($0.fields["dpop"])) }
        let claims = try proofs.map { try #require(try JSONReader.read($0.payload).object) }
        #expect(claims.map { $0["nonce"]?.string } == [nil, "n1", "n2", "n2", "n2", "n3"])
        #expect(Set(claims.compactMap { $0["jti"]?.string }).count == claims.count)
        for (proof, claims) in zip(proofs, claims) {
            #expect(proof.header == ["alg": "ES256", "typ": "dpop+jwt", "jwk": .object(key.jwk)])
            #expect(proof.verify(key))
            #expect(claims["htm"] == "POST" && claims["htu"]?.string == "\(origin)/pending")
            #expect(claims["iat"]?.integer != nil)
        }
    }

    /// A wrong PIN that is signed anew is a further try, so an answer that got no answer is sent
    /// again as it was.
    @Test func unansweredDecisionIsSentAgainAsItWas() async throws {
        var listed = Listed()
        listed.demands = ["pin": "sign"]
        let relay = try FakeRelay((200, Listed.answer([listed])), (503, ["code": "unavailable"]))
        relay.answer(500, ["code": "internal"])
        relay.answer(403, ["code": "pin_wrong", "tries_left": 2])
        relay.answer(503, ["code": "unavailable"])
        relay.answer(409, ["code": "already_decided", "login": "success"])
        relay.answer(409, ["code": "already_decided", "login": "success"])
        try await relay.run { loop, address in
            var enrolment = try relay.bound(address)
            enrolment.pinSecret = PINSecret()
            let phone = try Responder(enrolment, loop: loop)
            defer { phone.close() }
            let question = try #require(try await phone.pending().questions.first)
            await #expect(throws: CallFailure.self) {
                try await phone.answer(
                    .approve(number: "47"), to: question, posture: PhonePosture(osVersion: "18.1"), pin: "2580")
            }
            // The first sending has arrived.
            #expect(try await phone.answer(.approve(number: "47"), to: question, pin: "2580") == "success")
            // The relay has decided this challenge, and the phone has never sent a denial that it
            // could repeat.
            await #expect(throws: CallFailure.self) { try await phone.answer(.deny, to: question) }
        }
        let sent = relay.asked.dropFirst().map { [$0.body["answer"], $0.body["pin_signature"]] }
        try #require(sent.count == 6)
        #expect(sent[0][1] != nil && sent[0] == sent[1] && sent[1] == sent[2])
        // A website that demands only the PIN does not get the state of the phone.
        let signed = try JWS.parse(try #require(sent[0][0]?.string))
        #expect(try JSONReader.read(signed.payload).object?["posture"] == nil)
        #expect(sent[3] == sent[4] && sent[3] != sent[0] && sent[5][1] == nil)
    }

    @Test func responderSignsTheShownContext() async throws {
        let listed = Listed()
        let relay = try FakeRelay(
            (200, Listed.answer([listed])), (200, ["login": "success"]), (200, ["login": "failure"]),
            (200, ["login": "failure"]))
        let (origin, key) = try await relay.run { loop, address in
            let enrolment = try relay.bound(address)
            let phone = try Responder(enrolment, loop: loop)
            defer { phone.close() }
            let question = try #require(try await phone.pending().questions.first)
            #expect(question.bytes == listed.bytes)
            #expect(question.timeLeft == .seconds(240))
            #expect(try await phone.answer(.approve(number: "47"), to: question, uv: .biometric) == "success")
            #expect(try await phone.answer(.deny, to: question) == "failure")
            #expect(try await phone.answer(.fraud, to: question, uv: .passcode) == "failure")
            return (address.text, enrolment.key.publicKey)
        }
        let answers = relay.asked.dropFirst()
        #expect(answers.map(\.path) == ["/success", "/failure", "/failure"])
        #expect(answers.allSatisfy { $0.body.names == ["challenge", "answer"] && $0.body["challenge"] == "c1" })
        let signed = try answers.map { try JWS.parse(try #require($0.body["answer"]?.string)) }
        let words: [(decision: JSONValue, number: JSONValue?, uv: JSONValue)] = [
            ("approve", "47", "biometric"), ("deny", nil, "none"), ("fraud", nil, "passcode"),
        ]
        for (object, words) in zip(signed, words) {
            #expect(object.header == ["alg": "ES256", "typ": "twoefay-decision+jwt", "kid": "d1"])
            #expect(object.verify(key))
            var expected: JSONObject = [
                "v": 1, "aud": .string("\(origin)#shop"), "challenge": "c1", "request": "r-1",
                "decision": words.decision, "context": .string(Base64URL.encode(SHA256.hash(listed.bytes))),
                "nonce": .string(listed.nonce), "uv": words.uv,
            ]
            expected.set("number", words.number)
            var claims = try #require(try JSONReader.read(object.payload).object)
            #expect(claims["iat"]?.integer != nil)
            claims.set("iat", nil)
            #expect(claims == expected)
        }
    }

    /// The clock was ahead at the last report and was corrected since, or both reports are of one
    /// second. The relay then keeps the other report, and the phone sends its own once more.
    @Test func laterReportInTheStoreIsReplaced() async throws {
        var status = PhoneStatus()
        status.battery = 50
        let later = Timestamp(seconds: SystemTime().now().seconds + 200)
        func stored(_ battery: Int64, _ at: Timestamp) -> JSONObject {
            let time = JSONValue.string(at.rfc3339)
            return ["report": ["battery": .integer(battery), "reported_at": time, "received_at": time]]
        }
        let relay = try FakeRelay(
            (200, stored(90, later)), (200, stored(50, later + .seconds(1))), (200, stored(50, Timestamp(seconds: 0))))
        let found = try await relay.run { [status] loop, address in
            let phone = try Responder(try relay.bound(address), loop: loop)
            defer { phone.close() }
            return [try await phone.report(status), try await phone.report(status)]
        }
        #expect(found.map(\.status) == [status, status])
        let times = try relay.asked.map { request in
            let statement = try JWS.parse(try #require(request.body["status"]?.string))
            return try #require(try JSONReader.read(statement.payload).object?["iat"]?.integer)
        }
        #expect(times.count == 3 && times[1] == later.seconds + 1)
        #expect(times[0] < later.seconds && times[2] < later.seconds)
    }

    @Test func unanswerableChallengesAreListedSeparately() async throws {
        var newer = Listed { $0["v"] = 2 }
        newer.challenge = "c2"
        var other = Listed { $0["website"] = "bank" }
        other.challenge = "c3"
        let relay = try FakeRelay((200, Listed.answer([newer, Listed(), other])))
        let pending = try await relay.run { loop, address in
            let phone = try Responder(try relay.bound(address), loop: loop)
            defer { phone.close() }
            return try await phone.pending()
        }
        #expect(pending.questions.map(\.challenge) == ["c1"])
        #expect(pending.refused.map(\.challenge) == ["c2", "c3"])
    }

    @Test func responderUpdatesItsNameAndPushToken() async throws {
        let relay = try FakeRelay((200, [:]), (204, [:]))
        let (origin, before, after, key) = try await relay.run { loop, address in
            let enrolment = try relay.bound(address, days: 29)
            relay.answer(200, ["certificate": try relay.certificate("d1", enrolment.key.publicKey)])
            let phone = try Responder(enrolment, loop: loop)
            defer { phone.close() }
            #expect(phone.isToRenew)
            let changed = try await phone.change(pushToken: "efgh", name: "New")
            #expect(changed.pushToken == "efgh" && changed.name == "New")
            try await phone.unbind()
            let renewed = try await phone.change(renews: true)
            let fresh = try Responder(renewed, loop: loop)
            #expect(!fresh.isToRenew)
            return (address.text, enrolment.certificate, renewed.certificate, enrolment.key.publicKey)
        }
        #expect(before != nil && after != nil && before != after)
        let asked = relay.asked
        #expect(asked.map { "\($0.method) \($0.path)" } == ["POST /device", "DELETE /device", "POST /device"])
        #expect(asked[0].body.names == ["dev_token", "name"])
        #expect(asked[2].body.names == ["certificate", "csr"] && asked[2].body["certificate"] == true)
        let request = try SigningRequest(pem: Array(try #require(asked[2].body["csr"]?.string).utf8))
        #expect(request.key == key)
        let token = try JWS.parse(try #require(asked[0].body["dev_token"]?.string))
        #expect(token.header == ["alg": "ES256", "typ": "twoefay-token+jwt", "kid": "d1"])
        #expect(token.verify(key))
        let claims = try #require(try JSONReader.read(token.payload).object)
        #expect(claims.names == ["v", "aud", "dev_token", "iat"])
        #expect(claims["dev_token"] == "efgh" && claims["aud"]?.string == "\(origin)#shop")
    }

    /// TLS would refuse an expired certificate, so the phone authenticates with its key.
    @Test func expiredCertificateIsRenewed() async throws {
        let relay = try FakeRelay((200, Listed.answer([])))
        try await relay.run { loop, address in
            let phone = try Responder(try relay.bound(address, days: -1), loop: loop)
            defer { phone.close() }
            #expect(phone.isToRenew)
            _ = try await phone.pending()
        }
        let asked = try #require(relay.asked.first)
        #expect(asked.certificate == nil && asked.fields["dpop"] != nil)
    }

    @Test func revocationNeedsNoEnrolment() async throws {
        let relay = try FakeRelay((200, [:]), (401, ["code": "unauthenticated", "detail": "a\u{1b}[31mb"]))
        try await relay.run { loop, address in
            let roots = [UInt8](relay.authority.keyThumbprint)
            try await Revocation.revoke("r-c", at: address, believing: .pinned(roots), loop: loop)
            let failure = await #expect(throws: CallFailure.self) {
                try await Revocation.revoke("no", at: address, believing: .pinned(roots), loop: loop)
            }
            #expect(failure?.description == "the relay answered 401, unauthenticated: a\\u{1b}[31mb")
        }
        #expect(relay.asked.map(\.path) == ["/revoke", "/revoke"])
        #expect(relay.asked[0].body == ["revocation_code": "r-c"])
        #expect(relay.asked.allSatisfy { $0.certificate == nil && $0.fields["dpop"] == nil })
    }
}
