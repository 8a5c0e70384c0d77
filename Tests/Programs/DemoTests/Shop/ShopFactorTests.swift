import Phone
import TestSupport
import Testing

@testable import Demo

@Suite("Factors and payments at the sample website", .timeLimit(.minutes(15)), .mayBlock) struct ShopFactorTests {
    /// Approves the request of the waiting page on the phone. Returns the request and the next
    /// page.
    private func approve(
        _ visitor: Visitor, _ phone: ScriptedPhone, _ shop: RunningShop, _ waiting: Visitor.Page
    ) async throws -> (asked: ChallengePrompt, page: Visitor.Page) {
        let number = try #require(waiting.number, "\(waiting)")
        let asked = try await shop.answer(phone) { _ in .approve(number: number) }
        _ = try await visitor.get("/wait")
        return (asked, try await visitor.go("/wait"))
    }

    @Test func furtherPhoneIsBoundAfterApprovalByTheFirst() async throws {
        try await RunningShop.run { shop in
            let (ada, first) = try await shop.customer("ada")
            let waiting = try await ada.go("/phones/add")
            #expect(waiting.title == "Check your phone")
            let (asked, page) = try await approve(ada, first, shop, waiting)
            #expect(asked.context.action == "enrol")
            let second = try await shop.phone("Tablet", reading: page)
            let phones = try await ada.get("/phones")
            #expect(phones.text.ranges(of: "Active, key verified").count == 2)

            // The new phone can approve a login, and the website accepts its signature.
            let elsewhere = try shop.visitor()
            #expect(
                try await approve(elsewhere, second, shop, try await elsewhere.logIn("ada")).page.title == "Members")

            let id = try #require(phones.between("/phones/remove?device=", "\""))
            _ = try await ada.get("/phones")
            #expect(
                try await ada.go("/phones/rename", ["device": id, "name": "<b>Lost"]).text.contains("&lt;b&gt;Lost"))
            #expect(try await ada.get("/phones/remove?device=\(id)").text.contains("Remove &lt;b&gt;Lost?"))
            #expect(!(try await ada.get("/phones/remove?device=\(id)").text.contains("last phone")))
            let left = try await ada.go("/phones/remove", ["device": id])
            #expect(left.text.ranges(of: "Active, key verified").count == 1)
            #expect(try await ada.post("/phones/rename", ["device": "0", "name": "x"]).location == "/phones")
        }
    }

    @Test func paymentNeedsApprovalOfTheShownOrder() async throws {
        try await RunningShop.run { shop in
            let (ada, phone) = try await shop.customer("ada")
            _ = try await ada.get("/members")
            let waiting = try await ada.go("/pay", ["article": "samovar"])
            // A code cannot confirm a payment, because it does not show the order.
            #expect(!waiting.text.contains("/code"))
            #expect(try await ada.get("/code").location == "/members")
            let (asked, page) = try await approve(ada, phone, shop, waiting)
            #expect(asked.context.action == "Payment")
            #expect(
                asked.context.details.map { "\($0.label): \($0.value)" } == ["article: Samovar", "amount: 249.00 EUR"])
            #expect(page.text.contains("Paid: Samovar, 249.00 EUR."))
            #expect(page.text.contains("<li>Samovar, 249.00 EUR</li>"))

            // The payment completes although no browser polls the waiting page.
            let kettle = try #require(try await ada.go("/pay", ["article": "kettle"]).number)
            #expect(!(try await ada.get("/members").text.contains("<li>Kettle")))
            try await shop.answer(phone) { _ in .approve(number: kettle) }
            try await shop.until { try await ada.get("/members").text.contains("<li>Kettle, 38.00 EUR</li>") }

            _ = try await ada.go("/pay", ["article": "tea"])
            try await shop.answer(phone) { _ in .deny }
            let refused = try await ada.get("/wait")
            #expect(refused.title == "Not confirmed")
            #expect(try await ada.get("/members").title == "Members", "who was logged in is so still")
            #expect(try await ada.go("/pay", ["article": "palace"]).title == "Members")
        }
    }

    /// A fraud report about an order logs the customer out. The browser that placed the order still
    /// shows the reason.
    @Test func fraudReportOfAnOrderEndsSessions() async throws {
        try await RunningShop.run { shop in
            let (ada, phone) = try await shop.customer("ada")
            _ = try await ada.get("/members")
            _ = try await ada.go("/pay", ["article": "tea"])
            try await shop.answer(phone) { _ in .fraud }
            let refused = try await ada.get("/wait")
            #expect(refused.title == "Not confirmed" && refused.text.contains("this was not you"))
            #expect(try await ada.get("/members").location == "/login")
            #expect(try await ada.get("/wait").title == "Not confirmed", "it can be read again")
            #expect(try await ada.post("/phones/add").location == "/login")
        }
    }

    /// The last phone protects the account, so its removal needs a second confirmation.
    @Test func removingTheLastPhoneShowsAWarning() async throws {
        try await RunningShop.run { shop in
            let (ada, _) = try await shop.customer("ada")
            let id = try #require(try await ada.get("/phones").between("/phones/remove?device=", "\""))
            let warning = try await ada.get("/phones/remove?device=\(id)")
            #expect(warning.title == "Remove your last phone")
            // The page lists the remaining factors, and says how strong they are.
            #expect(warning.text.contains("<li>a code by email to") && !warning.text.contains("<li>a recovery code"))
            #expect(warning.text.contains("reads one of your messages can then log in"))
            // A form without the confirmation, such as one from a page that still listed another
            // phone.
            let early = try await ada.post("/phones/remove", ["device": id])
            #expect(early.status == 409 && early.title == "Remove your last phone")
            #expect(try await ada.get("/phones").text.contains("Active, key verified"))
            let gone = try await ada.go("/phones/remove", ["device": id, "last": "yes"])
            #expect(gone.text.contains("The phone is removed.") && gone.text.contains("You have no phone yet."))
            #expect(try await ada.go("/pay", ["article": "tea"]).title == "My phones")
        }
    }

    @Test func lastPhoneWarningIsShownInGerman() async throws {
        try await RunningShop.run { shop in
            let (ada, _) = try await shop.customer("ada")
            _ = try await ada.go("/language", ["language": "de", "back": "/phones"])
            let id = try #require(try await ada.get("/phones").between("/phones/remove?device=", "\""))
            let warning = try await ada.get("/phones/remove?device=\(id)")
            #expect(warning.title == "Ihr letztes Telefon entfernen")
            #expect(warning.text.contains("<li>ein Code per E-Mail an"))
        }
    }

    @Test func totpCodeLogsIn() async throws {
        try await RunningShop.run { shop in
            let (ada, phone) = try await shop.customer("ada")
            _ = try await ada.get("/totp")
            let (_, setup) = try await approve(ada, phone, shop, try await ada.go("/totp"))
            #expect(setup.title == "Set up an app" && setup.text.contains("<svg"))
            let secret = try #require(setup.between(#"<span class="code">"#, "<"))
            // The secret is shown in groups, as a user types it.
            #expect(secret.split(separator: " ").map(\.count) == Array(repeating: 4, count: 8))
            #expect(setup.text.contains(#"<a href="/totp" aria-current="page">Authenticator app</a>"#))
            #expect(setup.text.contains(#"<a href="/phones">"#))
            func code(_ now: String) async throws -> String {
                let shown = try await Child.run("oathtool", ["--totp", "--base32", "--now", now, secret])
                return String(shown.output.prefix(6))
            }
            #expect(try await ada.post("/totp/confirm", ["code": "12345"]).status == 422)
            let spoken = try await code("now").map { String($0) }.joined(separator: " ")
            #expect(try await ada.go("/totp/confirm", ["code": spoken]).text.contains("authenticator app is set up"))

            let elsewhere = try shop.visitor()
            _ = try await elsewhere.logIn("ada")
            let asked = try await elsewhere.get("/code")
            // The phone is asked, but a code from the app is accepted as well.
            #expect(asked.title == "Enter a code" && asked.text.contains("the code that your authenticator app shows"))
            // A code whose length matches none of her factors fails, but does not count as a guess.
            let wrong = try await elsewhere.post("/code", ["code": "12345678"])
            #expect(wrong.status == 422 && wrong.text.contains("That code is wrong."))
            #expect(try await elsewhere.post("/code", ["code": "twelve"]).status == 422)
            // The confirmation used up the current code, so this is the next one.
            let members = try await elsewhere.go("/code", ["code": try await code("now + 30 seconds")])
            #expect(members.title == "Members" && members.text.contains("A code from your authenticator app"))

            // The page warns about intercepted messages only if neither a phone nor an app would
            // remain.
            let id = try #require(try await ada.get("/phones").between("/phones/remove?device=", "\""))
            let phoneGoes = try await ada.get("/phones/remove?device=\(id)").text
            #expect(phoneGoes.contains("<li>your authenticator app"))
            #expect(!phoneGoes.contains("reads one of your messages"))
            #expect(!(try await ada.get("/totp/remove").text.contains("reads one of your messages")))
            _ = try await ada.post("/phones/remove", ["device": id, "last": "yes"])
            #expect(try await ada.get("/totp/remove").text.contains("reads one of your messages"))
            #expect(try await ada.post("/totp/remove").status == 409)
            #expect(try await ada.go("/totp/remove", ["last": "yes"]).text.contains("The app is removed."))
        }
    }

    @Test func recoveryCodeLogsIn() async throws {
        try await RunningShop.run { shop in
            let (ada, phone) = try await shop.customer("ada")
            _ = try await ada.get("/recovery")
            let (_, page) = try await approve(ada, phone, shop, try await ada.go("/recovery"))
            #expect(page.text.ranges(of: "<code>").count == 10)
            let code = try #require(page.between("<code>", "<"))

            let elsewhere = try shop.visitor()
            _ = try await elsewhere.logIn("ada")
            #expect(try await elsewhere.get("/recover").title == "Enter a recovery code")
            let members = try await elsewhere.go("/code", ["code": code.uppercased()])
            #expect(members.title == "Members" && members.text.contains("It is used up."))
            // A recovery code works only once.
            let again = try shop.visitor()
            _ = try await again.logIn("ada")
            _ = try await again.get("/recover")
            #expect(try await again.post("/code", ["code": code]).status == 422)
            #expect(try await again.get("/members").location == "/login")
        }
    }

    /// The policy of the demo: new codes count when one of them was typed back.
    @Test func recoveryCodesAreTypedBack() async throws {
        try await RunningShop.run(["--recovery-check", "on"]) { shop in
            let (ada, phone) = try await shop.customer("ada")
            _ = try await ada.get("/recovery")
            let (_, page) = try await approve(ada, phone, shop, try await ada.go("/recovery"))
            let codes = page.text.split(separator: "<code>").dropFirst().map { String($0.prefix { $0 != "<" }) }
            #expect(codes.count == 10 && page.text.contains(#"href="/recovery/check""#))
            let check = try await ada.get("/recovery/check")
            let asked = try #require(check.between("code number ", " "))
            let position = try #require(Int(asked))
            #expect((1...10).contains(position))
            let wrong = try await ada.post("/recovery/check", ["code": codes[position % 10]])
            #expect(wrong.status == 422 && wrong.text.contains("This recovery code is wrong."))
            #expect(try await ada.get("/recovery").text.contains("Check your recovery codes"))
            #expect(try await ada.post("/recovery/check", ["code": codes[position - 1]]).status == 429)
        }
    }

    @Test func lockedCodesAreSaidWhenRecoveryCodesAreTypedBack() async throws {
        try await RunningShop.run(["--recovery-check", "on", "--guesses", "1"]) { shop in
            let (ada, phone) = try await shop.customer("ada")
            _ = try await ada.get("/recovery")
            let (_, page) = try await approve(ada, phone, shop, try await ada.go("/recovery"))
            let codes = page.text.split(separator: "<code>").dropFirst().map { String($0.prefix { $0 != "<" }) }
            let asked = try #require(try await ada.get("/recovery/check").between("code number ", " "))
            let position = try #require(Int(asked))
            #expect(try await ada.post("/recovery/check", ["code": codes[position % 10]]).status == 422)
            let locked = try await ada.post("/recovery/check", ["code": codes[position - 1]])
            #expect(locked.status == 403 && locked.text.contains(#"action="/recovery/check""#))
            #expect(locked.text.contains("<code>twoefay user unlock ada</code>"))
        }
    }
}
