import Domain
import HTTP
import JSON
import Relay
import TestSupport
import Testing
import World

@testable import API

/// `GET /account`: what a person sees of their own account by a phone.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AccountTests {
    @Test(arguments: StoreKind.all) func phoneShowsTheWholeAccount(kind: StoreKind) async throws {
        let bob = try await AccountFixture(kind)
        let began = bob.rig.relay.time.now()
        let codes = await bob.shop.send("POST", "/user/bob/recovery-codes", [:])
        let code = try #require(codes["codes"]?.array?.first?.string, "\(codes.text)")
        bob.rig.relay.time.advance(by: .seconds(1))
        let asked = bob.rig.relay.time.now()
        let first = try await bob.login { body in
            body.set("service", "Web shop")
            body.set("action", "transfer")
            body.set("ip", "192.0.2.1")
            body.set("user_agent", "Mozilla/5.0")
        }
        bob.rig.relay.time.advance(by: .seconds(2))
        #expect(try await bob.decide("approve", first).status == 200)
        let second = try await bob.login()
        let used = await bob.shop.send("POST", "/backup", ["challenge": .string(second), "otp": .string(code)])
        #expect(used["login"] == "success", "\(used.text)")

        let account = await bob.site.send("GET", "/account")
        #expect(account.status == 200, "\(account.text)")
        #expect(account["username"] == "bob" && account["website"] == "shop" && account["display_name"] == "The shop")
        let seen = JSONValue.string((asked + .seconds(2)).rfc3339)
        #expect(
            account["devices"] == [
                [
                    "device": .string(bob.device), "platform": "other", "state": "active",
                    "created_at": .string(began.rfc3339), "last_seen_at": seen, "this": true,
                ]
            ])
        #expect(
            account["factors"] == [
                [
                    "kind": "mail", "state": "active", "created_at": .string(began.rfc3339),
                    "address": "b…@example.com",
                ],
                ["kind": "recovery", "state": "active", "created_at": .string(began.rfc3339), "left": 9],
            ])
        #expect(account.logins.map { $0["challenge"]?.string } == [second, first])
        var login = try #require(account.login(first))
        #expect(login["report"]?.object?["nonce"]?.string?.isEmpty == false)
        login["report"] = nil
        #expect(
            login == [
                "challenge": .string(first), "created_at": .string(asked.rfc3339), "ended_at": seen,
                "login": "success", "factor": "push", "device": .string(bob.device), "service": "Web shop",
                "action": "transfer", "ip": "192.0.2.1", "user_agent": "Mozilla/5.0",
            ])
        #expect(account.login(second)?["factor"] == "recovery" && account.login(second)?["device"] == nil)
    }

    /// The phone that is told of a login can also be another one, or be suspended.
    @Test(arguments: StoreKind.all) func otherPhonesAreListedToo(kind: StoreKind) async throws {
        let bob = try await AccountFixture(kind)
        let code = await bob.shop.send("POST", "/user/bob/activation", [:])["code"]?.string
        bob.rig.relay.time.advance(by: .seconds(1))
        let other = try TestPhone(pushToken: "other")
        let bound = try await bob.shop.verify(other, token: bob.token, code: try #require(code))
        let id = try #require(bound["device"]?.string, "\(bound.text)")
        let path = "/user/bob/devices/\(id)"
        #expect(await bob.shop.send("PATCH", path, ["state": "suspended", "name": "Old phone"]).status == 200)
        let account = await bob.site.send("GET", "/account")
        let devices = (account["devices"]?.array ?? []).compactMap(\.object)
        #expect(devices.map { $0["device"]?.string } == [bob.device, id])
        #expect(devices[0]["this"] == true && devices[1]["this"] == nil)
        #expect(devices[1]["state"] == "suspended" && devices[1]["name"] == "Old phone")
        #expect(devices[1]["last_seen_at"] == nil)
        #expect(await bob.shop.send("DELETE", path).status == 204)
        #expect(await bob.site.send("GET", "/account")["devices"]?.array?.count == 1)
    }

    /// The account has what the phone needs to report a login that is over.
    @Test(arguments: StoreKind.all) func pastLoginIsReported(kind: StoreKind) async throws {
        let bob = try await AccountFixture(kind)
        let first = try await bob.login()
        #expect(try await bob.decide("approve", first).status == 200)
        let second = try await bob.login()
        #expect(try await bob.decide("deny", second).status == 200)
        let report = try #require(await bob.site.send("GET", "/account").login(first)?["report"]?.object)
        let answer = try await bob.decide("fraud", first, report)
        #expect(answer.code == "already_decided" && answer["login"] == "success", "\(answer.text)")
        #expect(try bob.state() == "frozen")
        // Another report would change nothing now.
        #expect(await bob.site.send("GET", "/account").logins.allSatisfy { $0["report"] == nil })
        try await bob.unlock()
        let account = await bob.site.send("GET", "/account")
        #expect(account.login(first)?["report"] == nil && account.login(second)?["report"] != nil)
    }

    @Test func reportEndsADayAfterTheLogin() async throws {
        let bob = try await AccountFixture()
        let challenge = try await bob.login()
        // The end is not written yet.
        let expiry = bob.rig.relay.time.now() + .seconds(300)
        bob.rig.relay.time.advance(by: .seconds(300 + 24 * 3600) - .milliseconds(1))
        let login = try #require(await bob.site.send("GET", "/account").login(challenge))
        #expect(login["login"] == "failure" && login["reason"] == "expired" && login["report"] != nil)
        #expect(login["ended_at"]?.string == expiry.rfc3339)
        bob.rig.relay.time.advance(by: .milliseconds(1))
        #expect(await bob.site.send("GET", "/account").login(challenge)?["report"] == nil)
    }

    /// A phone answers an open login from the list of pending ones. After fraud, nothing is left to
    /// report.
    @Test func openAndReportedLoginsHaveNoReport() async throws {
        let bob = try await AccountFixture()
        let challenge = try await bob.login()
        let open = try #require(await bob.site.send("GET", "/account").login(challenge))
        #expect(open["login"] == "wait" && open["ended_at"] == nil && open["report"] == nil)
        #expect(try await bob.decide("fraud", challenge).status == 200)
        try await bob.unlock()
        let reported = try #require(await bob.site.send("GET", "/account").login(challenge))
        #expect(reported["reason"] == "fraud" && reported["report"] == nil)
    }

    /// Without signed answers, a phone cannot report an end.
    @Test func reportNeedsSignedAnswers() async throws {
        let bob = try await AccountFixture(.memory, ["answers": "certificate"])
        let challenge = try await bob.login()
        let answer = await bob.site.send("POST", "/failure", ["challenge": .string(challenge)])
        #expect(answer.status == 200, "\(answer.text)")
        let login = try #require(await bob.site.send("GET", "/account").login(challenge))
        #expect(login["reason"] == "denied" && login["report"] == nil)
    }

    @Test(arguments: StoreKind.all) func historyIsBounded(kind: StoreKind) async throws {
        let bob = try await AccountFixture(kind)
        let old = try await bob.login()
        bob.rig.relay.time.advance(by: .seconds(30 * 86_400) - .seconds(60))
        var challenges: [String] = []
        for _ in 0..<49 {
            bob.rig.relay.time.advance(by: .seconds(1))
            challenges.append(try await bob.login())
        }
        var account = await bob.site.send("GET", "/account")
        #expect(account.logins.map { $0["challenge"]?.string } == challenges.reversed() + [old])
        bob.rig.relay.time.advance(by: .seconds(1))
        challenges.append(try await bob.login())
        account = await bob.site.send("GET", "/account")
        #expect(account.logins.map { $0["challenge"]?.string } == challenges.reversed())
        try bob.rig.relay.execute("DELETE FROM challenge WHERE id <> x'\(old)'")
        bob.rig.relay.time.advance(by: .seconds(60))
        #expect(await bob.site.send("GET", "/account").logins.isEmpty)
    }

    @Test func otherUsersAreNotShown() async throws {
        let bob = try await AccountFixture()
        _ = try await bob.login()
        let (_, eve) = try await bob.shop.enrol("eve")
        let account = await eve.send("GET", "/account")
        #expect(account["username"] == "eve" && account.logins.isEmpty && account["devices"]?.array?.count == 1)
        #expect(account["factors"] == [])
    }

    /// A row that no relay wrote shows nothing of the account.
    @Test(
        arguments: StoreKind.all,
        [
            "UPDATE challenge SET context = '{}'", "UPDATE device SET platform = 'ios'",
            "UPDATE factor SET address = 'eve@example.com' WHERE kind = 'mail'",
            "UPDATE recovery_code SET position = 11", "UPDATE user SET username = 'eve'",
        ]) func forgedRowIsRefused(kind: StoreKind, change: String) async throws
    {
        let bob = try await AccountFixture(kind)
        _ = try await bob.login()
        #expect(await bob.shop.send("POST", "/user/bob/recovery-codes", [:]).status == 201)
        #expect(await bob.site.send("GET", "/account").status == 200)
        try bob.rig.relay.forge(change)
        #expect(await bob.site.send("GET", "/account").status == 500)
    }

    @Test func eachPhoneHasABudget() async throws {
        let bob = try await AccountFixture()
        for _ in 0..<10 { #expect(await bob.site.send("GET", "/account").status == 200) }
        let refused = await bob.site.send("GET", "/account")
        #expect(refused.status == 429 && refused.fields["retry-after"] == "60", "\(refused.text)")
        #expect(bob.rig.relay.registry.number(#"twoefay_limits_reached_total{limit="account"}"#) == 1)
        let (_, eve) = try await bob.shop.enrol("eve")
        #expect(await eve.send("GET", "/account").status == 200)
        bob.rig.relay.time.advance(by: .seconds(60))
        #expect(await bob.site.send("GET", "/account").status == 200)
    }

    @Test func onlyPhonesAreAnswered() async throws {
        let bob = try await AccountFixture()
        #expect(await bob.rig.stranger.send("GET", "/account").code == "unauthenticated")
        #expect(await bob.shop.send("GET", "/account").code == "forbidden")
        #expect(await bob.site.send("DELETE", "/device").status == 204)
        #expect(await bob.site.send("GET", "/account").code == "unauthenticated")
    }
}
