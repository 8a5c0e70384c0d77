import Domain
import Testing
import World

/// The limits of a website, as policies.
struct WebsiteLimitsTests {
    @Test func eachLimitIsAPolicyOfItsOwn() throws {
        var policy = Policy()
        for limit in WebsiteLimit.allCases {
            #expect(Policy.keys.contains(limit.policy) && WebsiteLimit(policy: limit.policy) == limit)
            try policy.set(limit.policy, to: "7")
            #expect(policy.limits[limit] == 7 && policy.text(of: limit.policy) == "7")
        }
        #expect(try Policy().changed(by: policy.json(of: Policy.keys)) == policy)
        #expect(WebsiteLimit(policy: "login-limit") == nil)
    }

    @Test(arguments: [
        (WebsiteLimit.textsDay, "none"), (.mailsMonth, "none"), (.loginsMinute, "none"), (.held, "quota"),
        (.users, "quota"),
    ])
    func limitCanBeLifted(limit: WebsiteLimit, word: String) throws {
        var policy = Policy()
        policy.limits[limit] = 5
        try policy.set(limit.policy, to: word)
        #expect(policy.limits[limit] == nil && policy.text(of: limit.policy) == word)
    }

    @Test(arguments: [
        ("limit-texts-day", "-1"), ("limit-texts-day", "quota"), ("limit-texts-month", "1000000001"),
        ("limit-users", "0"), ("limit-users", "none"), ("limit-held", "none"), ("limit-held", "0"),
        ("limit-logins-minute", "0"), ("limit-logins-day", ""), ("limit-mails-day", "1.5"), ("limit-pushes-month", "5"),
    ])
    func otherValuesAreRefused(key: String, text: String) {
        var policy = Policy()
        #expect(throws: Policy.Fault.self) { try policy.set(key, to: text) }
        #expect(policy == Policy())
    }

    /// A website may be kept from sending what costs money. Its users need another factor then.
    @Test(arguments: [WebsiteLimit.textsDay, .textsMonth, .mailsDay, .mailsMonth, .pushesDay])
    func nothingMayBeAllowed(limit: WebsiteLimit) throws {
        var policy = Policy()
        try policy.set(limit.policy, to: "0")
        #expect(policy.limits[limit] == 0)
    }

    /// Uses that cost money, or fill the store, are bounded even if nobody has set anything.
    @Test func defaultsAreFinite() {
        let limits = Policy().limits
        for limit in WebsiteLimit.allCases where ![.held, .users, .mailsMonth].contains(limit) {
            #expect(limits[limit] != nil, "\(limit)")
        }
    }

    /// A challenge keeps no copy of the limits: they apply as they are now.
    @Test func challengesKeepNoLimits() throws {
        var policy = Policy()
        policy.limits[.textsDay] = 3
        #expect(!policy.json.contains("limit-texts-day") && policy.json.contains("login-limit"))
        #expect(!Policy.groupKeys.contains { WebsiteLimit(policy: $0) != nil })
    }

    @Test func messageOfAWebsiteChargesItsDayAndItsMonth() throws {
        let website = try #require(WebsiteID([UInt8](repeating: 1, count: 16)))
        let user = try #require(UserID([UInt8](repeating: 2, count: 16)))
        let now = try #require(Timestamp(rfc3339: "2026-11-30T23:59:59Z"))
        var limits = WebsiteLimits()
        (limits[.textsDay], limits[.textsMonth]) = (4, nil)
        let plain = try #require(SMSLimits().charge(user: user, to: "+4915112345678", at: now))
        let charge = plain.also(counting: website, within: limits, at: now)
        #expect(plain.tallies.count == SMSCharge.common)
        #expect(Array(charge.tallies.prefix(SMSCharge.common)) == plain.tallies)
        let added = charge.tallies.dropFirst(SMSCharge.common)
        #expect(added.map(\.period) == ["2026-11-30", "2026-11"] && added.map(\.limit) == [4, nil])
        // No user has this scope.
        #expect(Set(added.map(\.scope)) == ["w" + website.text])
    }
}
