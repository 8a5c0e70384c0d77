import FakePushServices
import JSON
import TestSupport
import Testing
import World

/// Factors of a login that the website begins by request, while the phone can still answer.
@Suite("A factor that the website starts", .timeLimit(.minutes(15)), .mayBlock) struct FactorRouteTests {
    /// A relay that sends codes by text message and by mail, and a website.
    private struct FactorFixture {
        let base: Fixture
        let shop: APIClient
        let texts: TestGateway
        let mails: TestMailServer

        func person(_ name: String, _ number: String? = nil) async throws -> (token: String, code: String) {
            var about: JSONObject = ["email": .string("\(name)@example.org")]
            if let number { about.set("phone", .string(number)) }
            return try await shop.register(name, with: about)
        }

        /// Moves all earlier steps into the past, so that the next message need not wait.
        func later() throws { try base.relay.execute("UPDATE step SET at = '2026-01-01 00:00:00.000'") }

        func sent(_ kind: String, _ login: CodeLogin, number: Int = 1) async throws {
            try await base.relay.logged("event=\(kind).accepted challenge=\(login.challenge)", number: number)
        }
    }

    private func run(
        _ kind: StoreKind = .file, _ policies: [String] = [], apple: TestAPNs? = nil,
        _ test: (FactorFixture) async throws -> Void
    ) async throws {
        let (texts, mails) = (try await TestGateway.taking(), try await TestMailServer.start())
        let files = try TemporaryDirectory()
        try await Fixture.run(kind) { text throws in
            try apple?.set(in: &text)
            try Outgoing.set(gateways: [Outgoing.gateway("one", texts.url, files)], mail: mails, files, in: &text)
        } _: { base in
            let shop = try await base.website("shop", policies)
            try await test(FactorFixture(base: base, shop: shop, texts: texts, mails: mails))
        }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func everyResentCodeIsAccepted(_ kind: StoreKind) async throws {
        try await run(kind) { fixture in
            _ = try await fixture.person("ana.again", "+4915112345678")
            let login = try await CodeLogin(fixture.shop, "ana.again")
            #expect(login.factor == "sms")
            try await fixture.sent("sms", login)
            let other = try await login.begin("mail")
            #expect(other.status == 202 && other["factor"] == "mail" && other["state"] == "queued", "\(other)")
            // Again, but not at once.
            let soon = try await login.begin("mail")
            #expect(soon.status == 429 && soon["code"] == "limited", "\(soon)")
            #expect(soon.field("retry-after").flatMap { Int($0) }.map { (1...20).contains($0) } == true)
            try await fixture.sent("mail", login)
            #expect(try await login.result().steps == "sms expired, mail sent")
            try fixture.later()
            #expect(try await login.begin("mail").status == 202)
            try await fixture.sent("mail", login, number: 2)
            #expect(try await login.result().steps == "sms expired, mail expired, mail sent")
            // The first code, after the third was sent. Its use also uses up the others.
            let codes = [
                try await fixture.texts.code(1), try await fixture.mails.code(1, to: "ana.again@example.org"),
                try await fixture.mails.code(2, to: "ana.again@example.org"),
            ]
            #expect(Set(codes).count == 3)
            try await login.succeeds(by: "mail", worth: "low", codes[1])
            for code in codes {
                let late = try await login.handIn(code)
                #expect(late.status == 409 && late["code"] == "already_decided", "\(late)")
            }
            for factor in ["mail", "sms"] {
                let over = try await login.begin(factor)
                #expect(over.status == 409 && over["code"] == "already_decided", "\(over)")
            }
            // They are not valid for the next login either.
            let next = try await CodeLogin(fixture.shop, "ana.again")
            try await fixture.sent("sms", next)
            #expect(try await next.handIn(codes[2])["login"] == "failure")
        }
    }

    /// As in the original protocol: after a wrong code of the token the relay sends one, and a wrong code of that
    /// one cancels the login.
    @Test(arguments: [StoreKind.file, .mariadb]) func wrongCodesResendAndThenCancel(_ kind: StoreKind) async throws {
        try await run(kind, ["--code-retries", "resend"]) { fixture in
            _ = try await fixture.person("ana.original", "+4915112345678")
            // The secret of the test vectors of RFC 4226.
            let token: JSONObject = ["secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"]
            #expect(try await fixture.shop.curl("POST", "/user/ana.original/hotp", token).status == 201)
            let login = try await CodeLogin(fixture.shop, "ana.original")
            #expect(login.factor == "hotp")
            // No phone could take the number.
            #expect(login.asked["number"] == nil)
            let wrong = try await login.handIn("000000")
            #expect(wrong["login"] == "failure" && wrong["reason"] == nil && wrong["factor"] == "sms", "\(wrong)")
            try await fixture.sent("sms", login)
            // The delay after a wrong code is over.
            try fixture.base.relay.execute("UPDATE user SET code_failed_at = '2026-01-01 00:00:00.000'")
            let over = try await login.handIn("000000")
            #expect(over["login"] == "failure" && over["reason"] == "wrong_code", "\(over)")
            let result = try await login.result()
            #expect(result["reason"] == "wrong_code" && result.steps == "hotp expired, sms skipped", "\(result)")
            let late = try await login.handIn(try await fixture.texts.code(1))
            #expect(late.status == 409 && late["code"] == "already_decided", "\(late)")
        }
    }

    /// As in the original protocol: a wrong code of a text message cancels the login.
    @Test(arguments: [StoreKind.file, .mariadb]) func wrongCodeCancels(_ kind: StoreKind) async throws {
        try await run(kind, ["--code-retries", "cancel"]) { fixture in
            _ = try await fixture.person("ana.cancelled", "+4915112345678")
            let login = try await CodeLogin(fixture.shop, "ana.cancelled")
            try await fixture.sent("sms", login)
            let over = try await login.handIn("000000")
            #expect(over["login"] == "failure" && over["reason"] == "wrong_code", "\(over)")
            let result = try await login.result()
            #expect(result["login"] == "failure" && result["reason"] == "wrong_code", "\(result)")
            // The right code comes too late, and nothing more is sent.
            let late = try await login.handIn(try await fixture.texts.code(1))
            #expect(late.status == 409 && late["code"] == "already_decided", "\(late)")
            #expect(try await login.begin("mail").status == 409)
        }
    }

    @Test func sendingIsLimitedToFiveTimes() async throws {
        try await run { fixture in
            _ = try await fixture.person("ana.eager", "+4915112345678")
            let login = try await CodeLogin(fixture.shop, "ana.eager")
            for (index, factor) in ["mail", "sms", "mail", "sms"].enumerated() {
                try fixture.later()
                #expect(try await login.begin(factor).status == 202, "\(index)")
            }
            try fixture.later()
            for factor in ["mail", "sms"] {
                let over = try await login.begin(factor)
                #expect(over.status == 429 && over.field("retry-after") != nil, "\(over)")
            }
            await fixture.texts.isAsked(3)
            _ = try await fixture.mails.mail(2)
            #expect(try await login.result().steps.split(separator: ",").count == 5)
            try await login.succeeds(by: "sms", worth: "restricted", try await fixture.texts.code(3))
        }
    }

    @Test func disallowedFactorIsRefused() async throws {
        try await run(.file, ["--factors", "sms, mail, totp"]) { fixture in
            _ = try await fixture.person("ana.bound", "+4915112345678")
            let foreign = try await fixture.base.website("bank")
            let login = try await CodeLogin(fixture.shop, "ana.bound", ["factors": ["sms", "totp"]])
            #expect(login.factor == "sms")
            let answers: [(factor: String, status: Int, code: String)] = [
                // Factors that the website does not accept, or this login does not accept.
                ("push", 403, "forbidden"), ("recovery", 403, "forbidden"), ("mail", 403, "forbidden"),
                // An allowed factor that the user does not have, and an unknown factor.
                ("totp", 409, "conflict"), ("pigeon", 400, "invalid"),
            ]
            for (factor, status, code) in answers {
                let answer = try await login.begin(factor)
                #expect(answer.status == status && answer["code"]?.string == code, "\(factor): \(answer)")
                #expect(answer.isProblem)
            }
            #expect(try await login.begin("sms", by: foreign).status == 404)
            #expect(try await login.begin("sms", by: fixture.base.nobody).status == 401)
            let unknown = try await fixture.shop.curl(
                "POST", "/challenge/00000000000000000000000000000000/factor", ["factor": "sms"])
            #expect(unknown.status == 404)
            // The minimum assurance of a login excludes weaker factors.
            let worth = try await CodeLogin(fixture.shop, "ana.bound", ["min_assurance": "restricted"])
            #expect(worth.factor == "sms")
            #expect(try await worth.begin("mail").status == 403)
            try await fixture.sent("sms", worth)
            try await worth.succeeds(by: "sms", worth: "restricted", try await fixture.texts.code(2))
            let more = try await CodeLogin(fixture.shop, "ana.bound", ["min_assurance": "substantial"])
            let result = try await more.result()
            #expect(
                result["login"] == "failure" && result["reason"] == "undeliverable" && result.steps.isEmpty, "\(result)"
            )
            #expect(try await more.begin("sms").status == 409)
            #expect(fixture.texts.asked.count == 2 && fixture.mails.said.isEmpty)
            // After the cancellation nothing more is sent.
            let gone = try await CodeLogin(fixture.shop, "ana.bound")
            #expect(try await fixture.shop.curl("DELETE", "/challenge/\(gone.challenge)").status == 204)
            #expect(try await gone.begin("mail").status == 409)
        }
    }

    /// The phone answers after the website has begun a mail.
    @Test(arguments: [StoreKind.file, .mariadb]) func phoneCanStillAnswerAfterAFactorChange(_ kind: StoreKind)
        async throws
    {
        let apple = try await TestAPNs.start()
        try await run(kind, apple: apple) { fixture in
            let (token, code) = try await fixture.person("kim.phone")
            let phone = try await Phone(in: fixture.base, token: token, code: code)
            var mails = 0
            func gone() async throws -> (CodeLogin, code: String) {
                let login = try await CodeLogin(fixture.shop, "kim.phone")
                #expect(login.factor == "push" && login.asked["login"] == "verified")
                try await fixture.base.relay.logged("event=push.accepted challenge=\(login.challenge)")
                #expect(try await login.begin("mail").status == 202)
                try await fixture.sent("mail", login)
                let result = try await login.result()
                #expect(result["login"] == "wait" && result["factor"] == "mail", "\(result)")
                #expect(result.steps == "push expired, mail sent")
                // A mail about the bound phone is among them.
                while true {
                    mails += 1
                    let mail = try await fixture.mails.mail(mails)
                    guard let code = mail.data.replacing("\r\n", with: "\n").codeOfAMail else { continue }
                    return (login, code)
                }
            }
            let (approved, unused) = try await gone()
            let body: JSONObject = [
                "challenge": .string(approved.challenge), "number": try #require(approved.asked["number"]),
            ]
            #expect(try await phone.client.curl("POST", "/success", body)["login"] == "success")
            let result = try await approved.result()
            #expect(result["login"] == "success" && result["factor"] == "push", "\(result)")
            #expect(result["proof"] == "certificate" && result["assurance"] == "high")
            #expect(result.steps == "push expired, mail skipped, push answered (late)")
            #expect(result.stepTimes.count == 3 && result.stepTimes == result.stepTimes.sorted())
            #expect(try await approved.handIn(unused).status == 409)
            // A denial ends everything, including the right code.
            let (denied, late) = try await gone()
            let no = try await phone.client.curl("POST", "/failure", ["challenge": .string(denied.challenge)])
            #expect(no["login"] == "failure", "\(no)")
            let ended = try await denied.result()
            #expect(ended["login"] == "failure" && ended["reason"] == "denied", "\(ended)")
            #expect(try await denied.handIn(late).status == 409)
            #expect(try await denied.begin("mail").status == 409)
            // After the code has succeeded, the phone cannot answer any more.
            let (coded, right) = try await gone()
            try await coded.succeeds(by: "mail", worth: "low", right)
            let after = try await phone.client.curl("POST", "/failure", ["challenge": .string(coded.challenge)])
            #expect(after.status == 409 && after["code"] == "already_decided", "\(after)")
        }
        await apple.service.stop()
    }
}
