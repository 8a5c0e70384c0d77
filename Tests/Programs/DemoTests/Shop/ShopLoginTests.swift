import Phone
import TestSupport
import Testing

@testable import Demo

/// Customers of the sample website, with curl as the browser, the built relay, and phones in Swift.
@Suite("Logins at the sample website", .timeLimit(.minutes(15)), .mayBlock) struct ShopLoginTests {
    @Test func signUpBindsAPhone() async throws {
        try await RunningShop.run { shop in
            let ada = try shop.visitor()
            let page = try await ada.signUp("ada")
            #expect(page.status == 200 && page.title == "Add a phone")
            #expect(page.text.contains("Welcome, ada!") && page.text.contains("<svg"))
            #expect(try await ada.get("/phones").text.contains("You have no phone yet."))
            #expect(try await ada.get("/phones/state").text.contains(#""over":false"#))
            _ = try await shop.phone("Ada's old phone", reading: page)
            #expect(try await ada.get("/phones/state").text.contains(#""over":true"#))
            let phones = try await ada.get("/phones")
            #expect(phones.text.contains("Ada&#39;s old phone") && phones.text.contains("Active, key verified"))
            // The activation was used, so its page is no longer shown.
            #expect(try await ada.get("/phones/add").location == "/phones")
        }
    }

    @Test func phoneApprovalLogsIn() async throws {
        try await RunningShop.run { shop in
            let (_, phone) = try await shop.customer("ada")
            let ada = try shop.visitor("--user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0")
            #expect(try await ada.get("/members").location == "/login")
            let waiting = try await ada.logIn("ada")
            #expect(waiting.title == "Check your phone")
            let number = try #require(waiting.number)
            #expect(number.count == 2)
            #expect(try await ada.get("/members").location == "/login", "the password alone")
            let asked = try await shop.answer(phone) { _ in .approve(number: number) }
            #expect(
                asked.context.username == "ada"
                    && asked.context.service == "Members' area")
            #expect(asked.context.userAgent == "Firefox on Linux" && asked.context.ip == "127.0.0.1")
            #expect(try await ada.get("/wait/state?at=/wait").text.contains(#""over":true"#))
            // A GET never logs in.
            #expect(try await ada.get("/wait").title == "Approved")
            #expect(try await ada.get("/members").location == "/login")
            let members = try await ada.go("/wait")
            #expect(members.title == "Members" && members.text.contains("Hello, ada!"))
            #expect(members.text.contains("we have checked its signature"))
        }
    }

    @Test func phoneDenialRefusesTheLogin() async throws {
        try await RunningShop.run { shop in
            let (_, phone) = try await shop.customer("ada")
            let somebody = try shop.visitor()
            let first = try #require(try await somebody.logIn("ada").number)
            let wrong = first == "11" ? "12" : "11"
            try await shop.answer(phone) { _ in .approve(number: wrong) }
            let mistyped = try await somebody.get("/wait")
            #expect(mistyped.title == "You are not logged in")
            #expect(mistyped.text.contains("The number entered on the phone was not the one shown here."))
            #expect(try await somebody.post("/wait").location == "/wait")
            #expect(try await somebody.get("/members").location == "/login")

            _ = try await somebody.logIn("ada")
            try await shop.answer(phone) { _ in .deny }
            #expect(try await somebody.get("/wait").text.contains("This was rejected on your phone."))
            #expect(try await somebody.get("/members").location == "/login")

            _ = try await somebody.logIn("ada")
            #expect(try await somebody.go("/wait/cancel").title == "Log in")
        }
    }

    /// Returns the list of recovery codes, which is shown only once.
    private func makeCodes(_ ada: Visitor, _ phone: ScriptedPhone, _ shop: RunningShop) async throws -> String {
        _ = try await ada.get("/recovery")
        let number = try #require(try await ada.go("/recovery").number)
        try await shop.answer(phone) { _ in .approve(number: number) }
        _ = try await ada.get("/wait")
        return String(try #require(try await ada.go("/wait").between(#"id="codes">"#, "</ol>")))
    }

    /// A stranger knows the password. The customer reports fraud, and unlocks the account with a
    /// recovery code.
    @Test func fraudFreezesUntilARecoveryCodeIsUsed() async throws {
        try await RunningShop.run { shop in
            let (ada, phone) = try await shop.customer("ada")
            let codes = try await makeCodes(ada, phone, shop)
            let code = try #require(codes.split(separator: "<code>").dropFirst().first?.prefix { $0 != "<" })
            // Only the answer to the form shows the codes, and only once.
            #expect(try await ada.get("/recovery").text.ranges(of: "<code>").isEmpty)

            let stranger = try shop.visitor()
            _ = try await stranger.logIn("ada")
            try await shop.answer(phone) { _ in .fraud }
            let refused = try await stranger.get("/wait")
            #expect(refused.text.contains("this was not you") && refused.text.contains("/unlock"))
            // The sessions of the customer have ended.
            #expect(try await ada.get("/members").location == "/login")

            let frozen = try await ada.logIn("ada")
            #expect(frozen.title == "You are not logged in" && frozen.text.contains("has reported fraud"))
            _ = try await ada.get("/unlock")
            // The website requires a code, although the relay lifts some locks on the website's
            // request alone.
            #expect(try await ada.post("/unlock", ["code": ""]).status == 422)
            let unlocked = try await ada.post("/unlock", ["code": String(code)])
            #expect(try await ada.follow(unlocked).text.contains("Your account is unlocked."))
            let again = try #require(try await ada.logIn("ada").number)
            try await shop.answer(phone) { _ in .approve(number: again) }
            _ = try await ada.get("/wait")
            #expect(try await ada.go("/wait").title == "Members")
        }
    }

    /// Keyboards differ: an accent is either a separate character or part of the letter.
    @Test func userNameIsFoundInAnySpelling() async throws {
        try await RunningShop.run { shop in
            let (_, phone) = try await shop.customer("zo\u{eb}")
            let zoe = try shop.visitor()
            let number = try #require(try await zoe.logIn("zoe\u{308}").number)
            try await shop.answer(phone) { _ in .approve(number: number) }
            _ = try await zoe.get("/wait")
            #expect(try await zoe.go("/wait").text.contains("Hello, zo\u{eb}!"))
        }
    }

    /// The website itself waits for the answer, so no browser needs to poll the waiting page.
    @Test func fraudEndsSessions() async throws {
        try await RunningShop.run { shop in
            let (ada, phone) = try await shop.customer("ada")
            let (bob, _) = try await shop.customer("bob")
            let codes = try await makeCodes(ada, phone, shop)
            let code = try #require(codes.split(separator: "<code>").dropFirst().first?.prefix { $0 != "<" })
            let stranger = try shop.visitor()
            _ = try await stranger.logIn("ada")
            try await shop.answer(phone) { _ in .fraud }
            try await shop.until { try await ada.get("/members").location == "/login" }
            #expect(try await bob.get("/members").title == "Members")

            _ = try await ada.logIn("ada")
            #expect(try await ada.go("/unlock", ["code": String(code)]).text.contains("Your account is unlocked."))
            let number = try #require(try await ada.logIn("ada").number)
            try await shop.answer(phone) { _ in .approve(number: number) }
            _ = try await ada.get("/wait")
            #expect(try await ada.go("/wait").title == "Members")
            // Showing the result again ends no further session.
            for _ in 0..<2 { #expect(try await stranger.get("/wait").text.contains("this was not you")) }
            #expect(try await ada.get("/members").title == "Members")
        }
    }

    @Test func approvalsBeforeAFraudReportAreVoid() async throws {
        try await RunningShop.run { shop in
            let (_, phone) = try await shop.customer("ada")
            let (first, second) = (try shop.visitor(), try shop.visitor())
            let number = try #require(try await first.logIn("ada").number)
            try await shop.answer(phone) { _ in .approve(number: number) }
            _ = try await first.get("/wait")
            _ = try await second.logIn("ada")
            try await shop.answer(phone) { _ in .fraud }
            #expect(try await second.get("/wait").text.contains("this was not you"))
            #expect(try await first.post("/wait").location != "/members")
            #expect(try await first.get("/members").location == "/login")
        }
    }

    /// No browser requested a page after the phone had used the activation code.
    @Test func phoneBoundWithoutAnAnswerIsRecognised() async throws {
        try await RunningShop.run { shop in
            let newcomer = try shop.visitor()
            let phone = try await shop.phone("Unseen", reading: try await newcomer.signUp("ada"))
            let ada = try shop.visitor()
            let number = try #require(try await ada.logIn("ada").number)
            try await shop.answer(phone) { _ in .approve(number: number) }
            _ = try await ada.get("/wait")
            #expect(try await ada.go("/wait").text.contains("we have checked its signature"))
        }
    }

    @Test func operatorLockCannotBeLiftedByTheShop() async throws {
        try await RunningShop.run { shop in
            let (ada, _) = try await shop.customer("ada")
            _ = try await ada.go("/logout")
            try await shop.relay.tool("user", "lock", "ada", "--website", "shop")
            #expect(try await ada.logIn("ada").title == "You are not logged in")
            #expect(try await ada.get("/unlock").text.contains("only an operator can unlock it"))
            #expect(try await ada.post("/unlock", ["code": "mzxw-6ytb-ojrg-c6tr"]).status == 403)
            try await shop.relay.tool("user", "unlock", "ada", "--website", "shop")
            #expect(try await ada.follow(try await ada.get("/unlock")).text.contains("Your account is unlocked."))
            #expect(try await ada.logIn("ada").title == "Check your phone")
        }
    }

    /// After a wrong recovery code, the next one is refused for a while.
    @Test func wrongCodesLiftNoLock() async throws {
        try await RunningShop.run { shop in
            let (ada, phone) = try await shop.customer("ada")
            let (bob, bobsPhone) = try await shop.customer("bob")
            _ = try await makeCodes(ada, phone, shop)
            let guesser = try shop.visitor()
            _ = try await guesser.logIn("ada")
            try await shop.answer(phone) { _ in .fraud }
            _ = try await guesser.get("/unlock")
            let wrong = try await guesser.post("/unlock", ["code": "mzxw-6ytb-ojrg-c6tr"])
            #expect(wrong.status == 422 && wrong.text.contains("This recovery code is wrong."))
            let soon = try await guesser.post("/unlock", ["code": "mzxw-6ytb-ojrg-c6tr"])
            #expect(soon.status == 429 && soon.answer.field("retry-after") != nil)
            #expect(try await guesser.get("/members").location == "/login")
            // A user without recovery codes gets the same answer as for a wrong code.
            _ = try await bob.go("/logout")
            _ = try await bob.logIn("bob")
            try await shop.answer(bobsPhone) { _ in .fraud }
            _ = try await bob.get("/unlock")
            let none = try await bob.post("/unlock", ["code": "mzxw-6ytb-ojrg-c6tr"])
            #expect(none.status == 422 && none.text.contains("This recovery code is wrong."))
        }
    }

    /// The waiting page survives the restart, and the user is asked only once.
    @Test func loginWaitsThroughARelayRestart() async throws {
        try await RunningShop.run { shop in
            let (_, phone) = try await shop.customer("ada")
            let ada = try shop.visitor()
            let number = try #require(try await ada.logIn("ada").number)
            await shop.relay.kill()
            #expect(try await ada.get("/wait/state?at=/wait").text.contains("We keep trying"))
            let waiting = try await ada.get("/wait")
            #expect(waiting.number == number && waiting.text.contains("We keep trying"))
            let elsewhere = try shop.visitor()
            _ = try await elsewhere.get("/login")
            let away = try await elsewhere.post("/login", ["name": "ada", "password": Visitor.password])
            #expect(away.status == 503 && away.text.contains("Nothing was lost"))
            try await shop.relay.restart()
            try await shop.answer(phone) { _ in .approve(number: number) }
            _ = try await ada.get("/wait")
            #expect(try await ada.go("/wait").title == "Members")
            #expect(try shop.relay.count("SELECT count(*) FROM challenge") == 1)
        }
    }

    @Test func logoutEndsTheSession() async throws {
        try await RunningShop.run { shop in
            let (ada, _) = try await shop.customer("ada")
            _ = try await ada.get("/members")
            let session = try #require(ada.session)
            #expect(try await ada.go("/logout").text.contains("You are logged out."))
            #expect(try await ada.get("/members").location == "/login")
            // A stolen cookie of the ended session does not work either.
            let thief = try shop.visitor("--cookie", "shop_0=\(session)")
            #expect(try await thief.get("/members").location == "/login")
        }
    }
}
