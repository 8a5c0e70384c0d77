import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// Limits and periods that change while a relay runs.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AdjustableSettingsTests {
    private static let website = WebsiteID("00000000000000000000000000000001")

    private func quotas(_ change: (inout Quotas) -> Void) -> Quotas {
        var quotas = Quotas()
        change(&quotas)
        return quotas
    }

    @Test func quotasOfRequestsFollowAReload() {
        let use = QuotaUse(quotas { $0.callerRequests = 2 })
        let caller = QuotaUse.Subject.stranger("192.0.2.1")
        #expect(use.begin(caller) && use.begin(caller) && !use.begin(caller))
        use.replace(quotas { $0.callerRequests = 3 })
        #expect(use.begin(caller) && !use.begin(caller))
        // Requests in work stay, and the lower limit holds for the next one.
        use.replace(quotas { $0.callerRequests = 1 })
        use.end(caller)
        use.end(caller)
        #expect(!use.begin(caller))
        use.end(caller)
        #expect(use.begin(caller))
    }

    @Test func heldRequestsKeepTheirSlots() throws {
        let use = QuotaUse(quotas { $0.held = 10 })
        let website = try #require(Self.website)
        var slots = (0..<10).compactMap { _ in use.hold(website) }
        #expect(slots.count == 10 && use.hold(website) == nil)
        use.replace(quotas { $0.held = 11 })
        #expect(use.hold(website) != nil)
        use.replace(quotas { $0.held = 10 })
        slots.removeLast(3)
        slots += (0..<5).compactMap { _ in use.hold(website) }
        #expect(slots.count == 10)
    }

    @Test func quotasOfUsersFollowAReload() throws {
        let quota = UserQuota(quotas { $0.newUsers = 1 })
        let (website, now) = (try #require(Self.website), Instant(nanoseconds: 1))
        #expect(quota.take(website, at: now) == .allowed)
        guard case .refused = quota.take(website, at: now) else {
            Issue.record("the second user of the minute was allowed")
            return
        }
        quota.replace(quotas { $0.newUsers = 60 })
        #expect(quota.take(website, at: now + .seconds(1)) == .allowed)
        quota.replace(quotas { $0.users = 5 })
        #expect(quota.take(website, at: now + .seconds(61)) == .count)
    }

    /// Rows that were kept under the former period are deleted by the next run.
    @Test func retentionFollowsAReload() async throws {
        let fixture = try await TwoWebsitesFixture(.memory)
        let rig = fixture.rig
        let asked = try await fixture.ask()
        #expect(try await rig.decide(.approve, asked.challenge, number: "47", by: fixture.first) == .success)
        await rig.settled()
        rig.time.advance(by: .seconds(10 * 86_400))
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(try rig.count("SELECT count(*) FROM challenge") == 1)
        var retention = Retention()
        retention.logins = 7
        rig.relay.replace(AdjustableSettings(quotas: Quotas(), retention: retention, rolling: RollingKeySettings()))
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(try rig.count("SELECT count(*) FROM challenge") == 0)
    }

    /// The derived key is used again as soon as no key rolls.
    @Test func rollingKeysFollowAReload() async throws {
        let rig = try await RelayRig(.memory)
        let derived = rig.relay.nonces.current(at: rig.time.now())
        let schedule = RollingKeySettings(nonces: RollingKeySchedule(period: .seconds(3600)))
        rig.relay.replace(AdjustableSettings(quotas: Quotas(), retention: Retention(), rolling: schedule))
        try await rig.on { relay in await relay.rollKeys() }
        // A new key waits in the store before it is used.
        rig.time.advance(by: .seconds(600))
        try await rig.on { relay in await relay.rollKeys() }
        let rolled = rig.relay.nonces.current(at: rig.time.now())
        rig.relay.replace(
            AdjustableSettings(quotas: Quotas(), retention: Retention(), rolling: RollingKeySettings()))
        try await rig.on { relay in await relay.rollKeys() }
        #expect(rig.relay.nonces.step(of: rolled, at: rig.time.now()) == nil)
        let again = rig.relay.nonces.current(at: rig.time.now())
        #expect(rig.relay.nonces.step(of: again, at: rig.time.now()) != nil && derived != again)
    }
}
