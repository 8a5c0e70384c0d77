import Phone
import TestSupport
import Testing

@testable import Demo

@Suite("Attacks on the sample website", .timeLimit(.minutes(15)), .mayBlock) struct ShopDefenceTests {
    @Test func crossOriginFormIsRefused() async throws {
        try await RunningShop.run { shop in
            let (ada, _) = try await shop.customer("ada")
            let mallory = try shop.visitor()
            _ = try await mallory.get("/login")
            // No token, an empty token, and the token of another session.
            for token in ["nothing=x", "token=", "token=\(try #require(try await mallory.get("/login").token))"] {
                let fresh = try shop.visitor("--cookie", "shop_0=\(try #require(ada.session))")
                let refused = try await fresh.get("/phones/add", "--data", token)
                #expect(refused.status == 403 && refused.text.contains("This form is too old, or not ours."))
            }
            let foreign = try await ada.post("/logout", [:], "--header", "origin: http://localhost.example:80")
            #expect(foreign.status == 403)
            #expect(try await ada.get("/members").title == "Members")
        }
    }

    /// A session id that an attacker planted before the login is useless after it (session
    /// fixation).
    @Test func sessionIDChangesAtLogin() async throws {
        try await RunningShop.run { shop in
            let (_, phone) = try await shop.customer("ada")
            let ada = try shop.visitor()
            _ = try await ada.get("/login")
            let planted = try #require(ada.session)
            let number = try #require(try await ada.logIn("ada").number)
            // The id changes when the password is accepted. Otherwise the attacker could finish the
            // login after the phone's approval.
            #expect(ada.session != planted)
            let sharer = try shop.visitor("--cookie", "shop_0=\(planted)")
            _ = try await sharer.get("/login")
            try await shop.answer(phone) { _ in .approve(number: number) }
            #expect(try await sharer.post("/wait").location != "/members")
            #expect(try await sharer.get("/members").location == "/login")
            _ = try await ada.get("/wait")
            #expect(try await ada.go("/wait").title == "Members")
            #expect(ada.session != planted)
            let thief = try shop.visitor("--cookie", "shop_0=\(planted)")
            #expect(try await thief.get("/members").location == "/login")
            // The website does not accept an invented session id either.
            let inventor = try shop.visitor("--cookie", "shop_0=known-to-me")
            _ = try await inventor.get("/login")
            #expect(inventor.session.map { $0 != "known-to-me" } == true)
        }
    }

    @Test func passwordGuessesAreThrottled() async throws {
        try await RunningShop.run { shop in
            _ = try await shop.customer("ada")
            let guesser = try shop.visitor()
            _ = try await guesser.get("/login")
            for name in ["ada", "nobody"] {
                for guess in 1...Throttle.free {
                    let wrong = try await guesser.post("/login", ["name": name, "password": "guess \(guess)"])
                    #expect(wrong.status == 422 && wrong.text.contains("Wrong name or password."))
                }
                // During the pause, even the correct password is refused.
                let slow = try await guesser.post("/login", ["name": name, "password": Visitor.password])
                #expect(slow.status == 429 && slow.text.contains("Too many wrong passwords."))
                #expect(slow.answer.field("retry-after").flatMap { Int($0) }.map { 1...30 ~= $0 } == true)
            }
            #expect(try shop.relay.count("SELECT count(*) FROM challenge") == 0)
        }
    }

    @Test func namesAreEscapedInPages() async throws {
        try await RunningShop.run { shop in
            let name = #"<script>alert('"&amp;')</script>"#
            let escaped = "&lt;script&gt;alert(&#39;&quot;&amp;amp;&#39;)&lt;/script&gt;"
            let (visitor, _) = try await shop.customer(name)
            let members = try await visitor.get("/members")
            #expect(members.text.contains("Hello, \(escaped)!") && !members.text.contains("<script>"))
            #expect(try await visitor.get("/phones").text.contains("\(escaped)&#39;s phone"))
            // A refused form shows the typed name again.
            let other = try shop.visitor()
            _ = try await other.get("/signup")
            let refused = try await other.post(
                "/signup", ["name": name, "password": "short", "email": "x@example.com"])
            #expect(refused.status == 422 && refused.text.contains(#"value="\#(escaped)""#))
            #expect(!refused.text.contains("short"))
        }
    }

    @Test func signUpFaultsAreReported() async throws {
        try await RunningShop.run { shop in
            let ada = try shop.visitor()
            _ = try await ada.get("/signup")
            let mail = ["name": "ada", "password": Visitor.password, "email": "nowhere"]
            let first = try await ada.post("/signup", mail)
            #expect(first.status == 422 && first.text.contains(#"id="email-error""#))
            var number = mail
            (number["email"], number["phone"]) = ("ada@example.com", "0660 1234567")
            #expect(try await ada.post("/signup", number).text.contains(#"id="phone-error""#))
            number["phone"] = "+43 660 / 123-45-67"
            #expect(try await ada.go("/signup", number).title == "Add a phone")
            let second = try shop.visitor()
            _ = try await second.get("/signup")
            #expect(try await second.post("/signup", number).text.contains("This name is already taken."))
            number["name"] = "bob"
            let taken = try await second.post("/signup", number)
            #expect(
                taken.status == 422 && taken.text.contains("This name, email address or number is already in use."))
            number["email"] = "bob@example.com"
            number["phone"] = ""
            #expect(try await second.go("/signup", number).title == "Add a phone")
        }
    }

    @Test func shopIsShownInGerman() async throws {
        try await RunningShop.run { shop in
            let gerda = try shop.visitor("--header", "accept-language: fr;q=0.1, de-AT, en;q=0.5")
            let page = try await gerda.get("/")
            #expect(page.text.contains(#"<html lang="de">"#) && page.title == "Guter Tee, gut bewacht")
            let english = try await gerda.go("/language", ["language": "en", "back": "/login"])
            #expect(english.text.contains(#"<html lang="en">"#) && english.title == "Log in")
            // The redirect never leaves the website, neither with two slashes nor with characters
            // that browsers treat as slashes or ignore.
            for back in [
                "//example.com", "/\\example.com", "/\t/example.com", "//\u{301}/example.com", "/\u{301}/example.com",
                "/\r\n/example.com", "https://example.com", "example.com", "/ü", "",
            ] {
                let chosen = try await gerda.post("/language", ["language": "de", "back": back])
                #expect(chosen.status == 303 && chosen.location == "/", "\(back.debugDescription)")
            }
            #expect(try await gerda.get("/login").title == "Anmelden")
        }
    }

    /// Checks the cookie's attributes, unknown paths, and paths that need a login as well.
    @Test func contentSecurityPolicyForbidsForeignSources() async throws {
        try await RunningShop.run { shop in
            let page = try await shop.visitor().get("/")
            let policy = try #require(page.answer.field("content-security-policy"))
            for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors http://localhost:9"] {
                #expect(policy.contains(part))
            }
            #expect(page.answer.field("cache-control") == "no-store")
            let cookie = try #require(page.answer.field("set-cookie"))
            #expect(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"))
            #expect(!page.text.contains("style=") && !page.text.contains("onclick"))
            let visitor = try shop.visitor()
            for path in ["/nowhere", "/wait/nothing", "/phones/remove/x"] {
                #expect(try await visitor.get(path).status == 404)
            }
            for path in ["/wait", "/code", "/recover", "/unlock", "/pay", "/phones", "/totp/confirm"] {
                let status = try await visitor.get(path).status
                #expect(status == (path == "/pay" ? 404 : 303), "\(path)")
            }
            #expect(try await visitor.get("/shop.js").answer.field("content-type") == "text/javascript; charset=utf-8")
        }
    }
}
