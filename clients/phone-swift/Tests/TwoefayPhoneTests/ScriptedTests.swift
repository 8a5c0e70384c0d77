import Foundation
import LinuxPhone
import Synchronization
import Testing
import TwoefayPhone

/// A relay that lies, or that says what a real one says only rarely.
struct ScriptedTests {
    private let relay = ScriptedRelay()
    private let certificate: TestCertificate
    private let app: App

    init() throws {
        certificate = try TestCertificate(.p256)
        app = App(transport: relay)
    }

    private func bound() throws -> Phone {
        let key = try SoftwareKey()
        let stored: JSONObject = [
            "v": 1, "id": "e", "relay": "https://login.example.com:8080", "website": "shop", "token": "ab12",
            "key": .string(Base64URL.encode(key.stored)), "platform": "ios", "environment": "sandbox", "device": "d1",
            "pins": .array([.string(Base64URL.encode([UInt8](0...31)))]),
        ]
        let phone = try Phone(try Enrolment(stored: stored.bytes), app.parts)
        try app.storage.store(try Enrolment(stored: stored.bytes))
        return phone
    }

    /// Answers a goodbye as the relay does, with changes.
    private func sayFarewell(
        to phone: Phone, by other: TestCertificate? = nil, type: String = "twoefay-farewell+jwt",
        _ change: @escaping @Sendable (inout JSONObject) -> Void = { _ in }
    ) {
        let (certificate, signer) = (certificate, other ?? certificate)
        relay.answer { request, _ in
            let goodbye = try #require(request.body?["goodbye"]?.string.flatMap { JWS($0) })
            var claims: JSONObject = [
                "v": 1, "aud": "https://login.example.com:8080#shop", "device": "d1",
                "thumbprint": .string(phone.thumbprint),
                "by": "website", "time": "2026-11-21T10:04:47.250Z",
            ]
            claims["nonce"] = goodbye.claims["nonce"]
            change(&claims)
            let body: JSONObject = ["device": "d1", "farewell": .string(try signer.statement(type, claims))]
            return RelayReply(status: 200, fields: [:], body: body.bytes, certificate: certificate.der)
        }
    }

    @Test func onlyAFarewellForThisPhoneIsBelieved() async throws {
        let phone = try bound()
        let changes: [(String, JSONValue)] = [
            ("aud", "https://login.example.com:8080#bank"), ("device", "d2"), ("thumbprint", "x"), ("nonce", "x"),
            ("by", 1), ("time", "now"),
        ]
        for (name, value) in changes {
            sayFarewell(to: phone) { $0[name] = value }
            await #expect(throws: PhoneError.self, "\(name)") { try await phone.leave() }
        }
        // Another certificate, kind or version: the phone opens another connection, and asks once
        // more.
        let other = try TestCertificate(.p256)
        for round in 0..<2 {
            sayFarewell(to: phone, by: other)
            if round == 0 {
                sayFarewell(to: phone, type: "twoefay-time+jwt")
            } else {
                sayFarewell(to: phone) { $0["v"] = 2 }
            }
            await #expect(throws: PhoneError.self) { try await phone.leave() }
        }
        relay.answer(200, ["device": "d1", "bound": true])
        await #expect(throws: PhoneError.self) { try await phone.leave() }
        #expect(app.storage.stored.count == 1)
        sayFarewell(to: phone, by: other)
        sayFarewell(to: phone)
        #expect(try await phone.leave().by == "website")
        #expect(app.storage.stored.isEmpty)
        let claims = try relay.asked.map {
            try #require($0.request.body?["goodbye"]?.string.flatMap { JWS($0) }).claims
        }
        #expect(claims.allSatisfy { $0.members.map(\.name) == ["v", "aud", "nonce", "leaves", "iat"] })
    }

    @Test func unboundPhoneLearnsItAtItsNextCall() async throws {
        let phone = try bound()
        relay.answer(401, ["code": "unauthenticated"])
        sayFarewell(to: phone)
        do throws(PhoneError) {
            _ = try await phone.pending()
            Issue.record("answered")
        } catch {
            guard case .unbound(let farewell) = error else { throw error }
            #expect(farewell.by == "website")
        }
        // A relay that signs nothing proves nothing.
        relay.answer(401, ["code": "unauthenticated"])
        relay.answer(200, ["bound": true])
        await expectRefusal(401, "unauthenticated") { try await phone.pending() }
    }

    @Test func nonceIsUsedAndAskedForOnce() async throws {
        let phone = try bound()
        relay.answer(401, ["code": "unauthenticated"], ["dpop-nonce": "n1"])
        relay.answer(200, ["pending": .array([]), "time": "2026-11-21T10:04:31.002Z"], ["dpop-nonce": "n2"])
        #expect(try await phone.pending().isEmpty)
        relay.answer(401, ["code": "unauthenticated"], ["dpop-nonce": "n3"])
        relay.answer(401, ["code": "unauthenticated"], ["dpop-nonce": "n4"])
        relay.answer(401, ["code": "unauthenticated"])
        await expectRefusal(401, "unauthenticated") { try await phone.pending() }
        let proofs = try relay.asked.prefix(4).map { try #require($0.request.fields["dpop"].flatMap { JWS($0) }) }
        #expect(proofs.map { $0.claims["nonce"]?.string } == [nil, "n1", "n2", "n3"])
        #expect(Set(proofs.map { $0.claims["jti"]?.string }).count == 4)
        #expect(proofs.allSatisfy { $0.claims["htu"]?.string == "https://login.example.com:8080/pending" })
        #expect(
            proofs.allSatisfy {
                $0.isSigned(as: "dpop+jwt", by: VerificationKey(phone.publicKey), OpenSSLCryptography())
            })
    }

    private func entry(_ id: String, website: String = "shop") throws -> JSONValue {
        var context = try ProtocolPage("device-protocol.md").members("context")
        context["website"] = .string(website)
        return .object([
            "challenge": .string(id), "nonce": "n", "context": .string(Base64URL.encode(context.bytes)),
            "expires_at": "2026-11-21T10:09:30.120Z",
        ])
    }

    /// The relay accepts at most sixteen in `known`, and so answers at once. The phone pauses.
    @Test func moreThanSixteenChallenges() async throws {
        let phone = try bound()
        let entries = try (0..<18).map { try entry("c\($0)") }
        for _ in 0..<3 {
            relay.answer(200, ["pending": .array(entries), "time": "2026-11-21T10:04:31.002Z"])
        }
        relay.answer(200, ["pending": .array([]), "time": "2026-11-21T10:04:31.002Z"])
        let counts = Mutex<[Int]>([])
        try await phone.watch { pending in
            counts.withLock { $0.append(pending.challenges.count) }
            return !pending.isEmpty
        }
        #expect(counts.withLock { $0 } == [18, 0] && app.clock.slept == [2000, 2000])
        let known = relay.asked.map { $0.request.body?["known"]?.array?.count }
        #expect(known == [nil, 16, 16, 16])
    }

    @Test func unanswerableChallengesAreListedSeparately() async throws {
        let phone = try bound()
        let list: [JSONValue] = [
            try entry("c1"), try entry("c2", website: "bank"), .object(["challenge": "c3"]), try entry("a\u{202e}b"), 1,
        ]
        relay.answer(200, ["pending": .array(list), "time": "2026-11-21T10:04:31.002Z"])
        let pending = try await phone.pending()
        #expect(pending.challenges.map(\.id) == ["c1"] && pending.refused.map(\.id) == ["c2", "c3", nil, nil])
    }

    /// After a failure the phone polls again after 2, 4, 8 … seconds, or as the relay says.
    @Test func failuresArePausedFor() async throws {
        let phone = try bound()
        relay.answer { _, _ in throw TransportFailure.noAnswer("lost") }
        relay.answer(503, ["code": "unavailable"], ["retry-after": "7"])
        relay.answer(429, ["code": "limited"], ["retry-after": "60"])
        for _ in 0..<3 { relay.answer { _, _ in throw TransportFailure.notSent("no network") } }
        relay.answer(401, ["code": "unauthenticated"])
        relay.answer(401, ["code": "unauthenticated"])
        await expectRefusal(401, "unauthenticated") { try await phone.watch { _ in true } }
        #expect(app.clock.slept == [2000, 7000, 60_000, 16_000, 30_000, 30_000])
    }

    /// A signed time must not be much earlier than the date of the connection whose dates were
    /// checked.
    @Test(arguments: [0, -12]) func signedTimeMustFitTheDate(hours: Int64) async throws {
        let phone = try bound()
        let certificate = certificate
        let now = SystemClock().now().milliseconds
        // The answer is five hours ahead of the phone.
        let then = Self.text(now + 5 * 3_600_000)
        relay.answer(401, ["code": "unauthenticated"], ["date": then.http])
        relay.answer { request, server in
            #expect(request.path == "/time" && server.dates == .unchecked && request.fields["dpop"] == nil)
            let claims: JSONObject = [
                "v": 1, "aud": "https://login.example.com:8080",
                "nonce": .string(try #require(request.fields["nonce"])),
                "time": .string(Self.text(now + (5 + hours) * 3_600_000).rfc3339),
            ]
            let body: JSONObject = ["time": .string(try certificate.statement("twoefay-time+jwt", claims))]
            return RelayReply(status: 200, fields: [:], body: body.bytes, certificate: certificate.der)
        }
        if hours == 0 {
            relay.answer { request, server in
                // The dates are checked at the time that was learned, before it is stored.
                guard case .checked(let offset) = server.dates else { throw TransportFailure.notSent("unchecked") }
                #expect(request.path == "/push" && abs(offset - 5 * 3_600_000) < 60_000)
                return RelayReply(status: 200, fields: [:], body: [], certificate: [])
            }
            relay.answer(200, ["pending": .array([]), "time": "2026-11-21T10:04:31.002Z"])
            #expect(try await phone.pending().isEmpty)
            #expect(abs(await phone.enrolment.clockOffset - 5 * 3_600_000) < 60_000)
        } else {
            relay.answer(401, ["code": "unauthenticated"])
            await expectRefusal(401, "unauthenticated") { try await phone.pending() }
            #expect(await phone.enrolment.clockOffset == 0)
        }
    }

    private static func text(_ milliseconds: Int64) -> (http: String, rfc3339: String) {
        let time = Date(timeIntervalSince1970: Double(milliseconds / 1000))
        let style = Date.ISO8601FormatStyle()
        let text = time.formatted(style)
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let parts = text.split { "-T:Z".contains($0) }
        let month = months[(Int(parts[1]) ?? 1) - 1]
        return ("Sat, \(parts[2]) \(month) \(parts[0]) \(parts[3]):\(parts[4]):\(parts[5]) GMT", text)
    }

    @Test func noticesThatCannotBeShownAreRefused() async throws {
        let phone = try bound()
        let right: JSONObject = [
            "v": 1, "aud": "https://login.example.com:8080#shop", "id_token": "ab12", "message": "m1",
            "from": "operator",
            "title": "Maintenance", "text": "No logins\non Sunday.", "created_at": "2026-11-21T10:04:30.120Z",
        ]
        func fetch(_ change: (inout JSONObject) -> Void = { _ in }, by other: TestCertificate? = nil) async throws
            -> Notice
        {
            var claims = right
            change(&claims)
            let statement = try (other ?? certificate).statement("twoefay-message+jwt", claims)
            relay.answer(200, ["statement": .string(statement)], certificate: certificate.der)
            return try await phone.notice("m1")
        }
        #expect(try await fetch().text == "No logins\non Sunday.")
        for (name, value) in [
            ("aud", "https://login.example.com:8080#bank"), ("id_token", "cd34"), ("message", "m2"), ("from", "bank"),
            ("title", "a\u{202e}b"), ("text", "a\tb"), ("text", 1), ("created_at", "now"),
            ("text", .string(String(repeating: "x", count: 1001))),
        ] as [(String, JSONValue)] {
            await #expect(throws: PhoneError.self, "\(name)") { try await fetch { $0[name] = value } }
        }
        // The second answer, over another connection, is missing.
        let other = try TestCertificate(.rsa)
        await #expect(throws: PhoneError.self) { try await fetch(by: other) }
        #expect(try await fetch().title == "Maintenance")
        await #expect(throws: PhoneError.self) { try await phone.notice("../device") }
    }

    @Test(arguments: ["\u{1b}[2J", "a\nb", "é", " ", String(repeating: "a", count: 129)])
    func unprintableIdsAreRefused(text: String) async throws {
        let uri = "twoefay://enrol?relay=https://login.example.com:8080&website=shop&token=t&code=c&pin="
        let phone = try Phone.begin(
            try Activation(uri + Base64URL.encode([UInt8](0...31))), EnrolmentOptions(), app.parts)
        for body: JSONObject in [
            ["login": "wait", "device": .string(text)], ["login": "wait", "device": "d1", "number": .string(text)],
            ["login": "verified", "device": "d1", "revocation_code": .string(text)],
            ["login": .string(text), "device": "d1"],
        ] {
            relay.answer(200, body)
            await #expect(throws: PhoneError.self) { try await phone.enrol() }
        }
        #expect(await phone.enrolment.device == nil)
    }

    @Test func refusalIsNotPrintedAsItIs() async throws {
        let phone = try bound()
        relay.answer(403, ["code": "forbidden\u{202e}", "detail": "a\u{200b}b\r\n"])
        let refusal = await expectRefusal(403, #"forbidden\u{202e}"#) { try await phone.pending() }
        #expect(refusal?.detail == #"a\u{200b}b\u{d}\u{a}"#)
    }
}
