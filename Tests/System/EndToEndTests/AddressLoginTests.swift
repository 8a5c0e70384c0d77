import JSON
import TestSupport
import Testing

/// Addresses of users: an address can be used for logins once a code sent to it has confirmed it, and not before.
@Suite("A user's address", .timeLimit(.minutes(15)), .mayBlock) struct AddressLoginTests {
    private func run(
        _ kind: StoreKind, _ policies: [String] = [],
        _ test: (Fixture, APIClient, TestGateway, TestMailServer) async throws -> Void
    ) async throws {
        let (texts, mails) = (try await TestGateway.taking(), try await TestMailServer.start())
        let files = try TemporaryDirectory()
        try await Fixture.run(kind) { text throws in
            try Outgoing.set(gateways: [Outgoing.gateway("one", texts.url, files)], mail: mails, files, in: &text)
        } _: { fixture in
            try await test(fixture, try await fixture.website("shop", policies), texts, mails)
        }
    }

    private func confirm(_ shop: APIClient, _ name: String, _ address: String, _ code: String? = nil) async throws
        -> CurlCaller.Answer
    {
        var body: JSONObject = ["address": .string(address)]
        if let code { body.set("otp", .string(code)) }
        return try await shop.curl("POST", "/user/\(name)/confirm", body)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func newAddressCountsOnceConfirmed(_ kind: StoreKind) async throws {
        try await run(kind) { fixture, shop, texts, mails in
            let (mail, number) = ("ana.new@example.org", "+4915112345678")
            try await shop.register("ana.new", with: [:])
            let none = try await CodeLogin(shop, "ana.new").result()
            #expect(none["login"] == "failure" && none["reason"] == "undeliverable", "\(none)")
            let changed = try await shop.curl(
                "PATCH", "/user/ana.new", ["email": .string(mail), "phone": .string(number), "language": "de"])
            #expect(changed.status == 200 && changed["email"] == .null && changed["phone"] == .null, "\(changed)")
            #expect(Set(changed["waiting"]?.array?.compactMap(\.string) ?? []) == [mail, number])
            let (mailed, texted) = (try await mails.code(1, to: mail), try await texts.code(1))
            #expect(texts.asked[0].query["text"]?.hasPrefix("\(texted) bestätigt diese Nummer für shop, ") == true)
            // A waiting address cannot be used for a login.
            #expect(try await CodeLogin(shop, "ana.new").result()["reason"] == "undeliverable")
            // Each address needs its own code.
            #expect(try await confirm(shop, "ana.new", number, mailed).text == #"{"confirmed":false}"#)
            // The delay is longer than the next requests take.
            try fixture.relay.execute("UPDATE user SET code_failures = code_failures + 8")
            let early = try await confirm(shop, "ana.new", number, texted)
            #expect(early.status == 429 && early.field("retry-after") != nil, "\(early)")
            // All codes of a user share one delay.
            #expect(try await confirm(shop, "ana.new", mail, mailed).status == 429)
            try fixture.relay.execute(
                "UPDATE user SET code_failures = code_failures - 8, code_failed_at = '2026-01-01 00:00:00.000'")
            #expect(try await confirm(shop, "ana.new", mail, mailed).text == #"{"confirmed":true}"#)
            #expect(try await confirm(shop, "ana.new", mail, mailed).status == 409)
            // After a resend the earlier code is still valid.
            #expect(try await confirm(shop, "ana.new", number).status == 202)
            let again = try await texts.code(2)
            #expect(again != texted)
            #expect(try await confirm(shop, "ana.new", number, texted).text == #"{"confirmed":true}"#)
            let login = try await CodeLogin(shop, "ana.new")
            #expect(login.factor == "sms")
            try await login.succeeds(by: "sms", worth: "restricted", try await texts.code(3))
            #expect(texts.asked.last?.query["to"] == number)
            let byMail = try await CodeLogin(shop, "ana.new", ["factors": ["mail"]])
            try await byMail.succeeds(by: "mail", worth: "low", try await mails.code(2, to: mail))
            // No other user can have the address.
            try await shop.register("ben.new", with: [:])
            let taken = try await shop.curl("PATCH", "/user/ben.new", ["email": .string(mail)])
            #expect(taken.status == 409 && taken.faults.count == 1, "\(taken)")
            // A removed address cannot be used for a login.
            #expect(try await shop.curl("PATCH", "/user/ana.new", ["email": .null])["email"] == .null)
            let without = try await CodeLogin(shop, "ana.new", ["factors": ["mail"]])
            #expect(try await without.result()["reason"] == "undeliverable")
        }
    }

    /// If the website's word is not enough, even an address from /register has to be confirmed.
    @Test func registeredAddressWaitsWhenThePolicyRequiresConfirmation() async throws {
        try await run(.file, ["--addresses", "confirmed"]) { _, shop, _, mails in
            let mail = "ana.waits@example.org"
            try await shop.register("ana.waits", with: ["email": .string(mail)])
            let code = try await mails.code(1, to: mail)
            #expect(try await CodeLogin(shop, "ana.waits").result()["reason"] == "undeliverable")
            #expect(try await confirm(shop, "ana.waits", mail, code).text == #"{"confirmed":true}"#)
            let login = try await CodeLogin(shop, "ana.waits")
            try await login.succeeds(by: "mail", worth: "low", try await mails.code(2, to: mail))
        }
    }

    /// A person who has only the password cannot add an address.
    @Test func newAddressNeedsPhoneApproval() async throws {
        try await run(.file) { fixture, shop, _, mails in
            let (token, code) = try await shop.register("kim.bound", with: [:])
            let phone = try await Phone(in: fixture, token: token, code: code)
            var change: JSONObject = ["email": "kim.bound@example.org"]
            let refused = try await shop.curl("PATCH", "/user/kim.bound", change)
            #expect(refused.status == 403 && refused["code"] == "approval_required", "\(refused)")
            let challenge = try #require(refused["challenge"]?.string)
            change.set("approval", .string(challenge))
            #expect(try await shop.curl("PATCH", "/user/kim.bound", change).status == 403)
            #expect(mails.said.isEmpty)
            var answer: JSONObject = ["challenge": .string(challenge)]
            if let number = refused["number"]?.string { answer.set("number", .string(number)) }
            #expect(try await phone.client.curl("POST", "/success", answer)["login"] == "success")
            let changed = try await shop.curl("PATCH", "/user/kim.bound", change)
            #expect(changed["waiting"] == ["kim.bound@example.org"], "\(changed)")
            let mailed = try await mails.code(1, to: "kim.bound@example.org")
            #expect(try await confirm(shop, "kim.bound", "kim.bound@example.org", mailed)["confirmed"] == true)
            let login = try await CodeLogin(shop, "kim.bound", ["factors": ["mail"]])
            try await login.succeeds(
                by: "mail", worth: "low", try await mails.code(2, to: "kim.bound@example.org"))
        }
    }
}
