import Bytes
import Crypto
import Domain
import HTTP
import JSON
import Log
import TestSupport
import Testing
import World

@testable import API
@testable import Relay

/// The links to accounts in mails: `POST /account` and `POST /account/report`.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AccountLinkTests {
    // MARK: Mails

    @Test(arguments: StoreKind.all) func mailsCarryALink(kind: StoreKind) async throws {
        let bob = try await AccountFixture(kind)
        // The phone was added.
        let bound = try #require(try await bob.mails().last)
        let sentAt = bob.rig.relay.time.now()
        let parts = try AccountFixture.link(in: bound).split(separator: ".").map { Base64URL.decode(String($0)) }
        let header = try JSONReader.read(try #require(parts[0])).object
        #expect(header == ["alg": "HS256", "typ": "twoefay-account+jwt"])
        let claims = try JSONReader.read(try #require(parts[1])).object
        #expect(
            claims == [
                "v": 1, "aud": .string("\(RelayRig.origin)#shop"), "id_token": .string(bob.token),
                "iat": .integer(sentAt.seconds), "exp": .integer(sentAt.seconds + 86_400),
                "jti": .string(bound.id.text),
            ])
        _ = try await bob.login { $0.set("factors", ["mail"]) }
        let code = try #require(try await bob.mails().last)
        guard case .code = code.content else { throw RigFailure("no code: \(code)") }
        for mail in [bound, code] { #expect(await bob.open(try AccountFixture.link(in: mail)).status == 200) }
    }

    /// The policy is none by default, and without the web app there is no page.
    @Test(arguments: [("none", true), ("mail", false)]) func linksAreOffByDefault(links: String, hasApp: Bool)
        async throws
    {
        let bob = try await AccountFixture(.memory, ["account-links": links], hasApp: hasApp)
        #expect(Policy().accountLinks == .none)
        _ = try await bob.login { $0.set("factors", ["mail"]) }
        let mails = try await bob.mails()
        #expect(mails.count == 2 && mails.allSatisfy { $0.accountAddress == nil })
    }

    /// An address that waits for its confirmation may be another person's, and so may a former one.
    @Test(arguments: StoreKind.all) func linkGoesOnlyToTheAddressOfTheFactor(kind: StoreKind) async throws {
        let unconfirmed = try await AccountFixture(kind, ["addresses": "confirmed"])
        let mails = try await unconfirmed.mails()
        #expect(mails.count == 2, "a code that confirms the address, and the notice about the phone")
        #expect(mails.allSatisfy { $0.to == "bob@example.com" && $0.accountAddress == nil })

        let bob = try await AccountFixture(kind)
        _ = try await bob.mails()
        _ = try await bob.login { $0.set("factors", ["mail"]) }
        let changed = await bob.shop.send("PATCH", "/user/bob", ["email": "bob@example.org"])
        #expect(changed.status == 200, "\(changed.text)")
        for mail in try await bob.mails().dropFirst() {
            #expect((mail.accountAddress != nil) == (mail.to == "bob@example.com"), "\(mail.to)")
        }
    }

    @Test func mailsAboutRecoveriesHaveTheirOwnLink() async throws {
        let bob = try await AccountFixture(.memory, ["recovery-url": "https://shop.example/recover"])
        let seed: JSONObject = ["secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"]
        #expect(await bob.shop.send("POST", "/user/bob/hotp", seed).status == 201)
        _ = try await bob.mails()
        #expect(await bob.shop.send("POST", "/user/bob/recovery", ["factor": "hotp"]).status == 202)
        let mail = try #require(try await bob.mails().last)
        guard case .recovery = mail.content else { throw RigFailure("no link: \(mail)") }
        #expect(mail.accountAddress == nil)
    }

    // MARK: The account

    @Test(arguments: StoreKind.all) func linkShowsTheAccount(kind: StoreKind) async throws {
        let bob = try await AccountFixture(kind)
        let link = try await bob.link()
        let challenge = try await bob.login()
        #expect(try await bob.decide("deny", challenge).status == 200)
        let phone = await bob.site.send("GET", "/account")
        let account = await bob.open(link)
        #expect(account.status == 200, "\(account.text)")
        for name in ["username", "website", "display_name", "factors"] { #expect(account[name] == phone[name]) }
        var device = try #require(phone["devices"]?.array?.first?.object)
        device["this"] = nil
        #expect(account["devices"] == [.object(device)])
        var login = try #require(phone.login(challenge))
        login["report"] = nil
        login["can_report"] = true
        #expect(account.login(challenge) == login)
    }

    @Test func linkIsValidForADay() async throws {
        let bob = try await AccountFixture()
        let link = try await bob.link()
        bob.rig.relay.time.advance(by: .seconds(86_399))
        #expect(await bob.open(link).status == 200)
        bob.rig.relay.time.advance(by: .seconds(1))
        #expect(await bob.open(link).code == "unauthenticated")
    }

    /// All refusals read the same.
    @Test func wrongLinksAreRefused() async throws {
        let bob = try await AccountFixture()
        let link = try await bob.link()
        let parts = link.split(separator: ".").map(String.init)
        let payload = try #require(Base64URL.decode(parts[1]))
        let claims = try #require(try JSONReader.read(payload).object)
        let key = bob.rig.relay.relay.accountLinkKey
        func made(
            _ type: String = AccountLink.type, key: Secret = key, _ change: (inout JSONObject) -> Void = { _ in }
        ) -> String {
            var claims = claims
            change(&claims)
            return JWS.sign(
                header: ["typ": .string(type)], payload: JSONWriter.write(.object(claims)), secret: key)
        }
        #expect(made() == link)
        let unsigned = Base64URL.encode(Array(#"{"alg":"none","typ":"twoefay-account+jwt"}"#.utf8))
        let byPhone = try JWS.sign(
            header: ["typ": .string(AccountLink.type)], payload: JSONWriter.write(.object(claims)), key: bob.phone.key)
        let wrong = [
            "link", "a.b.c", "\(parts[0]).\(parts[1]).", "\(unsigned).\(parts[1]).", "\(link)A", byPhone,
            made(key: Secret(Array(repeating: 7, count: 32))), made("twoefay-binding+jwt"),
            made { $0["v"] = 2 }, made { $0["aud"] = .string("\(RelayRig.origin)#bank") },
            made { $0["aud"] = .string("https://login.example.org#shop") }, made { $0["aud"] = "shop" },
            made { $0["id_token"] = .string(String(repeating: "0", count: 32)) }, made { $0["jti"] = nil },
            made { $0["exp"] = .integer(bob.rig.relay.time.now().seconds) }, made { $0["exp"] = nil },
        ]
        var texts: Set<String> = []
        for link in wrong {
            let answer = await bob.open(link)
            #expect(answer.status == 401, "\(link)")
            texts.insert(answer.text)
            #expect(await bob.report(String(repeating: "0", count: 32), link).status == 401)
        }
        #expect(texts.count == 1)
    }

    /// A link ends with what it relies on.
    @Test(
        arguments: StoreKind.all,
        [
            "UPDATE website SET state = 'disabled'", "UPDATE website SET policy = '{}'",
            "UPDATE user SET email_changed_at = '2200-01-01 00:00:00.000'", "DELETE FROM user",
        ]) func linkEndsWithItsReason(kind: StoreKind, change: String) async throws
    {
        let bob = try await AccountFixture(kind)
        let link = try await bob.link()
        #expect(await bob.open(link).status == 200)
        try bob.rig.relay.execute(change)
        let answer = await bob.open(link)
        #expect(answer.code == "unauthenticated", "\(answer.text)")
    }

    /// The new address gets links, and the former mailbox has none that count.
    @Test func linkEndsWithAChangeOfTheAddress() async throws {
        let bob = try await AccountFixture()
        let link = try await bob.link()
        #expect(await bob.shop.send("PATCH", "/user/bob", ["email": "bob@example.org"]).status == 200)
        let code = try await bob.mails().compactMap(\.digits).last
        let confirmation: JSONObject = ["address": "bob@example.org", "otp": .string(try #require(code))]
        let confirmed = await bob.shop.send("POST", "/user/bob/confirm", confirmation)
        #expect(confirmed["confirmed"] == true, "\(confirmed.text)")
        #expect(await bob.open(link).status == 401)
        _ = try await bob.login { $0.set("factors", ["mail"]) }
        let mail = try #require(try await bob.mails().last)
        #expect(mail.to == "bob@example.org")
        #expect(await bob.open(try AccountFixture.link(in: mail)).status == 200)
    }

    /// Every relay accepts the links of the others; after a restore of the store none counts.
    @Test func linksCountAtAllRelaysOfTheInstallation() async throws {
        let bob = try await AccountFixture(.file)
        let link = try await bob.link()
        let other = try await APIRig(beside: bob.rig)
        #expect(await other.stranger.send("POST", "/account", ["link": .string(link)]).status == 200)
        let keys = RelayKeys(masterKey: Secret(Array(repeating: 7, count: 32)))
        let epoch = [UInt8](repeating: 9, count: 16)
        #expect(keys.bound(to: epoch).accountLinks.reveal() != keys.accountLinks.reveal())
    }

    // MARK: Reports

    @Test(arguments: StoreKind.all) func reportFreezesTheUser(kind: StoreKind) async throws {
        let bob = try await AccountFixture(kind)
        try bob.addWebhook()
        let mail = try #require(try await bob.mails().last)
        let link = try AccountFixture.link(in: mail)
        let challenge = try await bob.login()
        #expect(try await bob.decide("approve", challenge).status == 200)
        _ = bob.rig.relay.sink.drain()
        #expect(await bob.report(challenge, link).status == 204)
        #expect(try bob.state() == "frozen")
        let lines = bob.rig.relay.sink.drain()
        #expect(lines.contains { $0.contains("level=warning event=user.frozen") && $0.contains(challenge) })
        #expect(lines.contains { $0.contains("event=account.reported") && $0.contains(mail.id.text) })
        for event in ["fraud.reported", "user.frozen"] {
            let rows = """
                SELECT count(*) FROM audit WHERE event = '\(event)' AND proof = 'link' AND device_id IS NULL
                AND challenge_id = x'\(challenge)' AND actor = 'anyone'
                """
            #expect(try bob.rig.relay.count(rows) == 1, "\(event)")
        }
        for kind in ["webhook", "mail"] {
            let sql = "SELECT count(*) FROM outbox WHERE kind = '\(kind)' AND event = 'user.frozen'"
            #expect(try bob.rig.relay.count(sql) == 1, "\(kind)")
        }
        #expect(await bob.open(link).login(challenge)?["can_report"] == nil)
    }

    /// An answer may have been lost, so a repetition is no error. It never freezes the user again.
    @Test(arguments: StoreKind.all) func eachLinkReportsOnce(kind: StoreKind) async throws {
        let bob = try await AccountFixture(kind)
        let link = try await bob.link()
        let challenge = try await bob.login()
        #expect(try await bob.decide("deny", challenge).status == 200)
        for _ in 0..<2 { #expect(await bob.report(challenge, link).status == 204) }
        #expect(try bob.rig.relay.count("SELECT count(*) FROM audit WHERE event = 'user.frozen'") == 1)
        try await bob.unlock()
        let again = await bob.report(challenge, link)
        #expect(again.status == 409 && again.faults == ["challenge state"], "\(again.text)")
        #expect(try bob.state() == "active")
        #expect(await bob.open(link).login(challenge)?["can_report"] == nil)
        // Nor does it freeze the user again about another login.
        let next = try await bob.login()
        #expect(await bob.open(link).login(next)?["can_report"] == nil)
        #expect(await bob.report(next, link).status == 409)
        #expect(try bob.state() == "active")
        // The mail about the freeze has another link, which is another report.
        let other = try await bob.link()
        #expect(await bob.open(other).login(challenge)?["can_report"] == true)
        #expect(await bob.report(challenge, other).status == 204)
        #expect(try bob.state() == "frozen")
    }

    /// A person who gets a code unasked reports the login while it is open.
    @Test(arguments: StoreKind.all) func openLoginIsReported(kind: StoreKind) async throws {
        let bob = try await AccountFixture(kind)
        try bob.addWebhook()
        let challenge = try await bob.login { $0.set("factors", ["mail"]) }
        let link = try await bob.link()
        let shown = try #require(await bob.open(link).login(challenge))
        #expect(shown["login"] == "wait" && shown["can_report"] == true)
        let waiting = await bob.rig.start(
            bob.shop.request("POST", "/auth", ["challenge": .string(challenge)], fields: [("prefer", "wait=60")]))
        guard case .held(let hold) = waiting else { throw RigFailure("not held") }
        #expect(await bob.report(challenge, link).status == 204)
        let result = await bob.rig.end(hold)
        #expect(result["login"] == "failure" && result["reason"] == "frozen", "\(result.text)")
        // The website learns of the end before it learns of the freeze.
        let ordered = """
            SELECT count(*) FROM outbox e JOIN outbox f ON f.challenge_id = e.challenge_id
            WHERE e.event = 'login.decided' AND f.event = 'user.frozen' AND e.ordinal < f.ordinal
            """
        #expect(try bob.rig.relay.count(ordered) == 1)
    }

    @Test(arguments: StoreKind.all) func reportOfAnOldOrReportedLoginIsRefused(kind: StoreKind) async throws {
        let bob = try await AccountFixture(kind)
        let reported = try await bob.login()
        #expect(try await bob.decide("fraud", reported).status == 200)
        try await bob.unlock()
        let old = try await bob.login()
        bob.rig.relay.time.advance(by: .seconds(300))
        // The question has the expiry written, before another login ends the old one.
        #expect(await bob.shop.send("POST", "/auth", ["challenge": .string(old)])["reason"] == "expired")
        bob.rig.relay.time.advance(by: .seconds(24 * 3600))
        _ = try await bob.login { $0.set("factors", ["mail"]) }
        let link = try await bob.link()
        for challenge in [reported, old] {
            #expect(await bob.report(challenge, link).status == 409)
            #expect(await bob.open(link).login(challenge)?["can_report"] == nil)
        }
        #expect(try bob.state() == "active")
    }

    @Test func loginOfOthersIsNotFound() async throws {
        let bob = try await AccountFixture()
        let link = try await bob.link()
        _ = try await bob.shop.enrol("eve")
        let (challenge, _) = try await bob.shop.login("eve")
        for challenge in [challenge, String(repeating: "0", count: 32), "x"] {
            #expect(await bob.report(challenge, link).code == "not_found")
        }
        #expect(try bob.rig.relay.count("SELECT count(*) FROM user WHERE state = 'frozen'") == 0)
    }

    @Test func eachSenderHasABudget() async throws {
        let bob = try await AccountFixture()
        let link = try await bob.link()
        let none = String(repeating: "0", count: 32)
        var statuses: [Int] = []
        for number in 0..<101 {
            let answer = number % 2 == 0 ? await bob.open(link) : await bob.report(none, "wrong")
            statuses.append(answer.status)
        }
        #expect(Set(statuses.prefix(100)) == [200, 401] && statuses.last == 429)
        #expect(bob.rig.relay.registry.number(#"twoefay_limits_reached_total{limit="account"}"#) == 1)
    }
}

extension Message {
    /// The digits of the code; nil if the message has none.
    fileprivate var digits: String? {
        guard case .code(let code) = content else { return nil }
        return String(decoding: code.digits.reveal(), as: UTF8.self)
    }
}
