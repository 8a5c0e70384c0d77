import DeliveryOutcomes
import Domain
import Log
import Metrics
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The use that websites make, and the limits on it.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct WebsiteUsageTests {
    /// The users of a website, without phones: a login of theirs opens a challenge that nobody can
    /// answer.
    private struct Shop {
        let rig: RelayRig
        let website: Website
        let users: [UserToken]

        init(_ rig: RelayRig, _ name: String, users: Int = 1, _ policies: [String: String] = [:]) async throws {
            self.rig = rig
            website = try await rig.website(name, policies: policies)
            var tokens: [UserToken] = []
            for number in 0..<users {
                tokens.append(try await rig.enrolled("\(name)-\(number)", at: website).user)
            }
            self.users = tokens
        }

        /// Opens a login, at the rig's relay or at another one; returns the refusal.
        func login(_ user: Int = 0, at relay: Relay? = nil, as operation: Operation? = nil) async -> Refusal? {
            let (website, token, relay) = (website, users[user], relay ?? rig.relay)
            let refused = await refusal {
                try await rig.on { _ in
                    try await relay.login(
                        LoginRequest(subject: .token(token)), by: website, as: operation ?? relay.operations.new())
                }
            }
            await rig.settled()
            return refused
        }

        func record(_ relay: Relay? = nil) async throws {
            let relay = relay ?? rig.relay
            try await rig.on { _ in await relay.recordUsage() }
        }
    }

    @Test(arguments: StoreKind.all) func loginsOfAMinuteAreLimited(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let (flood, other) = (
            try await Shop(rig, "flood", users: 1, ["limit-logins-minute": "3"]), try await Shop(rig, "other")
        )
        for _ in 0..<3 { #expect(await flood.login() == nil) }
        rig.time.advance(by: .seconds(20))
        #expect(await flood.login() == .websiteLimited(.loginsMinute, retryAfter: .seconds(40)))
        #expect(await other.login() == nil)
        // A refused login does not count, and leaves nothing in the store.
        #expect(try rig.count("SELECT count(*) FROM challenge") == 4)
        rig.time.advance(by: .seconds(40))
        #expect(await flood.login() == nil)
        #expect(
            rig.registry.number("twoefay_website_limit_reached_total{website=\"flood\",limit=\"logins_minute\"}") == 1)
        let lines = rig.sink.lines.filter { $0.contains("website.limited") }
        #expect(lines.count == 1 && lines[0].contains("website=flood") && lines[0].contains("limit=logins_minute"))
    }

    /// A repetition finds its challenge, however many logins there were meanwhile.
    @Test(arguments: StoreKind.all) func repeatedLoginIsNeitherCountedNorRefused(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await Shop(rig, "shop", ["limit-logins-day": "1"])
        let (website, user) = (shop.website, shop.users[0])
        let first = rig.relay.operations.new(isRepeatable: true)
        let request = LoginRequest(subject: .token(user))
        let asked = try await rig.on { relay in try await relay.login(request, by: website, as: first) }
        #expect(await shop.login() != nil)
        rig.time.advance(by: .seconds(1))
        let again = rig.relay.operations.again(first.id)
        #expect(
            try await rig.on { relay in try await relay.login(request, by: website, as: again) }.challenge
                == asked.challenge)
        #expect(rig.relay.usage.used(.loginsDay, by: website.id, at: rig.time.now()) == 1)
    }

    /// The repetition of a refused request is a request like any other.
    @Test(arguments: StoreKind.all) func repetitionOfARefusedLoginIsRefusedAndCounted(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await Shop(rig, "shop", ["limit-logins-minute": "1"])
        #expect(await shop.login() == nil)
        let again = rig.relay.operations.again(rig.relay.operations.new().id)
        let limited = Refusal.websiteLimited(.loginsMinute, retryAfter: .seconds(60))
        for _ in 0..<2 { #expect(await shop.login(as: again) == limited) }
        #expect(try rig.count("SELECT count(*) FROM challenge") == 1)
        rig.time.advance(by: .seconds(60))
        #expect(await shop.login(as: again) == nil)
        #expect(await shop.login() == limited)
        // Its login is open now, and a further repetition finds it.
        #expect(await shop.login(as: again) == nil)
        #expect(try rig.count("SELECT count(*) FROM challenge") == 2)
    }

    /// The logins of other relays that become known at the first read, or after a pause, are those
    /// of earlier minutes.
    @Test(arguments: StoreKind.all) func earlierLoginsOfOthersDoNotUseUpTheMinute(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await Shop(rig, "shop", ["limit-logins-minute": "5", "login-limit": "100"])
        let next = try rig.relay(over: rig.store)
        for _ in 0..<2 {
            for login in 1...5 { #expect(await shop.login() == nil, "login \(login)") }
            try await shop.record()
            rig.time.advance(by: .seconds(60))
            #expect(await shop.login(at: next) == nil)
            try await shop.record(next)
            #expect(await shop.login(at: next) == nil)
        }
        // A count that becomes known five seconds after the last read counts.
        for _ in 0..<2 { #expect(await shop.login() == nil) }
        rig.time.advance(by: .seconds(5))
        try await shop.record()
        try await shop.record(next)
        #expect(await shop.login(at: next) == nil)
        #expect(await shop.login(at: next) == .websiteLimited(.loginsMinute, retryAfter: .seconds(55)))
    }

    /// The counts of a day are those of all relays, and outlive a relay.
    @Test(arguments: StoreKind.all) func countsOfTheDayOutliveARelay(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await Shop(rig, "shop", ["limit-logins-day": "3"])
        #expect(await shop.login() == nil)
        #expect(await shop.login() == nil)
        try await shop.record()
        try await shop.record()
        let next = try rig.relay(over: rig.store)
        // The new relay knows nothing until its first read, which its timer makes at the start.
        #expect(await shop.login(at: next) == nil)
        try await shop.record(next)
        let left = UsageDay(rig.time.now()).end - rig.time.now()
        #expect(await shop.login(at: next) == .websiteLimited(.loginsDay, retryAfter: left))
        // The first relay learns of it when it reads the next time.
        try await shop.record()
        rig.time.advance(by: .seconds(60))
        try await shop.record()
        #expect(await shop.login() != nil)
        // The next day is a new one, for both.
        rig.time.advance(by: left)
        #expect(await shop.login() == nil)
        #expect(await shop.login(at: next) == nil)
        try await shop.record()
        try await shop.record(next)
        let lines = try await rig.on { [store = rig.store] _ in
            try await store.run(WebsiteUsageReport.query(of: "shop", in: nil))
        }
        #expect(lines.reduce(0) { $0 + $1.logins } == 5)
        #expect(lines.first?.users == 1)
    }

    /// A write whose answer was lost is repeated, and counts nothing twice.
    @Test(arguments: StoreKind.all) func repeatedWriteCountsNothingTwice(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await Shop(rig, "shop")
        #expect(await shop.login() == nil)
        let row = WebsiteUsageRow(
            website: shop.website.id, day: UsageDay(rig.time.now()),
            counts: UsageCounts(logins: 4, pushes: 2, mails: 1),
            users: nil)
        let store = rig.store
        for _ in 0..<2 { try await rig.on { relay in try await store.record([row], by: relay.operations.draw()) } }
        try await rig.on { relay in
            for _ in 0..<3 { try await store.record([row], by: relay.id) }
        }
        let totals = try await rig.on { _ in
            try await store.run(WebsiteUsageRows.totals(of: [shop.website.id], on: row.day))
        }
        #expect(totals[shop.website.id]?.others == UsageCounts(logins: 12, pushes: 6, mails: 3))
    }

    @Test(arguments: StoreKind.all) func pushesBeyondTheLimitBecomePulls(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await Shop(rig, "shop", users: 2, ["limit-pushes-day": "1"])
        let other = try await Shop(rig, "other")
        let website = shop.website
        var factors: [Factor?] = []
        for user in shop.users {
            factors.append(
                try await rig.on { relay in
                    try await relay.login(LoginRequest(subject: .token(user)), by: website, as: relay.operations.new())
                }.factor)
            await rig.settled()
        }
        // The login is opened all the same, and the phone finds it.
        #expect(factors == [.push, .pull])
        #expect(await other.login() == nil)
        #expect(rig.pushes.sent.count == 2)
        #expect(rig.relay.usage.used(.pushesDay, by: website.id, at: rig.time.now()) == 1)
    }

    @Test(arguments: StoreKind.all) func mailsBeyondTheLimitGiveWayToTheNextFactor(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(
            kind, policies: ["factors": "mail, totp", "limit-mails-day": "1"], hasPhone: false)
        try fixture.give(.mail)
        try fixture.give(.totp)
        let first = try await fixture.login()
        #expect(try await fixture.steps(first) == "mail sent")
        let second = try await fixture.login()
        #expect(try await fixture.steps(second) == "mail refused, totp sent")
        let reason = try await fixture.reported(second).steps.first?.reason
        #expect(reason == NewStep.websiteLimited)
        #expect(try await fixture.handIn(fixture.totp(), second).result == .success)
        #expect(fixture.rig.mails.sent.count == 1)
        // A request that would begin with a mail is refused, and the refusal names the limit.
        let refused = await refusal { try fixture.rig.relay.requireMails(of: fixture.shop) }
        guard case .websiteLimited(.mailsDay, _) = refused else {
            Issue.record("\(String(describing: refused))")
            return
        }
    }

    /// A mail counts when it is written, so a burst at a busy server does not pass the limit.
    @Test(arguments: StoreKind.all) func mailsThatWaitForTheServerCount(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(
            kind, policies: ["factors": "mail, totp", "limit-mails-day": "1"], hasPhone: false)
        try fixture.give(.mail)
        try fixture.give(.totp)
        let (rig, shop) = (fixture.rig, fixture.shop)
        rig.mails.answerOtherwise { _ in .retry(after: .seconds(1), reason: "busy") }
        _ = try await fixture.login()
        #expect(rig.relay.usage.used(.mailsDay, by: shop.id, at: rig.time.now()) == 1)
        let second = try await fixture.login()
        #expect(try await fixture.steps(second) == "mail refused, totp sent")
        rig.mails.answerOtherwise { _ in .accepted(by: nil) }
        try await fixture.later(.seconds(5))
        #expect(rig.relay.usage.used(.mailsDay, by: shop.id, at: rig.time.now()) == 1)
    }

    @Test(arguments: StoreKind.all) func segmentsBeyondTheLimitGiveWayToTheNextFactor(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(
            kind, policies: ["factors": "sms, totp", "limit-texts-day": "3"], hasPhone: false)
        try fixture.give(.sms)
        try fixture.give(.totp)
        let first = try await fixture.login()
        #expect(try await fixture.steps(first) == "sms sent")
        // The gateway reports that the text had two segments.
        let sent = try #require(fixture.rig.texts.sent.first)
        #expect(sent.account == fixture.shop.id)
        try await account(for: sent, segments: 2, fixture)
        #expect(try await fixture.steps(try await fixture.login()) == "sms sent")
        // Two segments and a message are three.
        let third = try await fixture.login()
        #expect(try await fixture.steps(third) == "sms refused, totp sent")
        #expect(try await fixture.reported(third).steps.first?.reason == NewStep.websiteLimited)
        let (shop, rig) = (fixture.shop, fixture.rig)
        try await rig.on { relay in
            await relay.recordUsage()
            await relay.recordUsage()
        }
        let used = rig.relay.usage.used(.textsDay, by: shop.id, at: rig.time.now())
        #expect(used == 3)
        #expect(
            rig.registry.number("twoefay_website_limit_reached_total{website=\"shop\",limit=\"texts_day\"}") == 1)
    }

    private func account(for message: Message, segments: Int, _ fixture: CodeLoginFixture) async throws {
        let (store, now) = (fixture.rig.store, fixture.rig.time.now())
        try await fixture.rig.on { _ in
            try await store.addUsage(
                SMSUsage(
                    message.id, at: now, prefix: SMSLimits().prefix(of: message.to), website: message.account,
                    parts: segments, cost: 75_000))
        }
    }

    @Test(arguments: StoreKind.all) func websitesOwnLimitOfUsersHolds(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await Shop(rig, "shop", users: 2, ["limit-users": "2"])
        let website = shop.website
        let refused = await refusal {
            try await rig.on { relay in
                try await relay.register(
                    Registration(username: "more", email: nil, phone: nil, displayName: nil, language: nil),
                    by: website, as: relay.operations.new())
            }
        }
        guard case .websiteLimited(.users, _) = refused else {
            Issue.record("\(String(describing: refused))")
            return
        }
        #expect(rig.sink.lines.contains { $0.contains("event=website.limited") && $0.contains("limit=users") })
        _ = try await Shop(rig, "other", users: 3)
    }

    /// The operator is warned once in a period, at four fifths.
    @Test func operatorIsWarnedAtFourFifths() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await Shop(rig, "shop", ["limit-logins-day": "5", "login-limit": "100"])
        var near: [String] { rig.sink.lines.filter { $0.contains("website.limit.near") } }
        for login in 1...5 {
            #expect(await shop.login() == nil)
            try await shop.record()
            #expect(near.count == (login < 4 ? 0 : 1), "after login \(login)")
        }
        #expect(near[0].contains("limit=logins_day") && near[0].contains("count=4"))
        #expect(rig.registry.number("twoefay_website_limit_used_percent{website=\"shop\"}") == 100)
        #expect(rig.registry.number("twoefay_website_logins_today{website=\"shop\"}") == 5)
    }

    /// However many websites there are, the number of series is bounded.
    @Test func seriesOfWebsitesAreBounded() {
        let registry = Registry()
        let metrics = WebsiteMetrics(registry)
        for number in 0..<300 { metrics.reached(.loginsDay, by: "site-\(number)") }
        metrics.set((0..<300).map { ("site-\($0)", Int64($0), 1) })
        let lines = String(decoding: registry.exposition(), as: UTF8.self).split(separator: "\n")
        let reached = lines.filter { $0.hasPrefix("twoefay_website_limit_reached_total{") }
        #expect(reached.count == (WebsiteMetrics.most + 1) * WebsiteLimit.allCases.count)
        #expect(registry.number("twoefay_website_limit_reached_total{website=\"other\",limit=\"logins_day\"}") == 200)
        #expect(registry.number("twoefay_website_logins_today{website=\"other\"}") == 200)
        #expect(registry.number("twoefay_website_limit_used_percent{website=\"other\"}") == 299)
    }

    @Test func lateMonthEndsWithItsLastDay() throws {
        let day = UsageDay(try #require(Timestamp(rfc3339: "2026-12-31T23:59:59Z")))
        #expect(day.text == "2026-12-31" && day.month == "2026-12")
        for limit in [WebsiteLimit.textsMonth, .mailsMonth, .mailsDay] {
            #expect(day.end(of: limit).rfc3339 == "2027-01-01T00:00:00.000Z")
            #expect(day.period(of: limit) == (limit == .mailsDay ? "2026-12-31" : "2026-12"))
        }
        let leap = UsageDay(try #require(Timestamp(rfc3339: "2028-02-01T00:00:00Z")))
        #expect(leap.end(of: .mailsMonth).rfc3339 == "2028-03-01T00:00:00.000Z")
        #expect(leap.end(of: .textsDay).rfc3339 == "2028-02-02T00:00:00.000Z")
    }

    /// The counts of a month are kept over midnight; those of a day, and of a former month, are not.
    @Test func recordTurnsWithTheDay() throws {
        let usage = WebsiteUsage()
        let website = try #require(WebsiteID([UInt8](repeating: 1, count: 16)))
        var now = try #require(Timestamp(rfc3339: "2026-11-29T12:00:00Z"))
        let use = { (limit: WebsiteLimit) in usage.used(limit, by: website, at: now) }
        usage.count(\.mails, 3, of: website, "shop", at: now)
        now = now + .seconds(86_400)
        usage.count(\.mails, 2, of: website, "shop", at: now)
        #expect(use(.mailsDay) == 2 && use(.mailsMonth) == 5)
        // A clock that was set back continues the day.
        usage.count(\.mails, of: website, "shop", at: now - .seconds(86_400))
        #expect(use(.mailsDay) == 3 && use(.mailsMonth) == 6)
        now = now + .seconds(86_400)
        #expect(use(.mailsDay) == 0 && use(.mailsMonth) == 0)
    }
}
