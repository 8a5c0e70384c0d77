import Domain
import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// The leases of a dead relay are released, and those of a living relay are not.
@Suite(.mayBlock) struct DeadRelayRemovalTests {
    private static let relay: RelayID = Sample.id(1)
    private static let addTask = Statement("INSERT INTO task_lease (name, holder) VALUES ('retention', :relay)")

    /// A relay that holds the retention lease and a webhook, and whose heartbeat counter is 2.
    private func held(_ engine: Engine) async throws -> WebhookFixture {
        let fixture = try WebhookFixture(engine)
        try await fixture.addWebsite(1)
        try await fixture.addRelay(1)
        try await fixture.addWebhook(10)
        #expect(try await fixture.lease(by: 1) == [10])
        try await fixture.write(Self.addTask(relay: .id(Self.relay)))
        let beats = try await fixture.store.sendHeartbeat(Self.relay, at: WebhookFixture.now)
        #expect(beats == [Heartbeat(relay: Self.relay, count: 1)])
        return fixture
    }

    /// Checks whether the relay still holds its leases and has a row.
    private func check(_ fixture: WebhookFixture, holds: Bool) async throws {
        let count: Int64 = holds ? 1 : 0
        #expect(try await fixture.count("outbox", where: "holder IS NOT NULL") == count)
        #expect(try await fixture.count("outbox", where: "lease IS NOT NULL") == count)
        #expect(try await fixture.count("task_lease", where: "holder IS NOT NULL") == count)
        #expect(try await fixture.count("relay", where: "beat >= 0") == count)
    }

    /// The relay or its store stood still. It was declared dead by a heartbeat that it has incremented since.
    @Test(arguments: Engine.allCases) func relayWithAMovedHeartbeatKeepsItsLeases(_ engine: Engine) async throws {
        let fixture = try await held(engine)
        for count in [Int64(0), 2] {
            try await fixture.store.removeDeadRelay(Self.relay, at: count, now: WebhookFixture.now)
            try await check(fixture, holds: true)
        }
        try await fixture.store.removeDeadRelay(Self.relay, at: 1, now: WebhookFixture.now)
        try await check(fixture, holds: false)
    }

    @Test(arguments: Engine.allCases) func deregisteredRelayHoldsNoLease(_ engine: Engine) async throws {
        let fixture = try await held(engine)
        try await fixture.store.removeDeadRelay(Self.relay, at: nil, now: WebhookFixture.now)
        try await check(fixture, holds: false)
    }

    /// The relay was already declared dead, and leased more entries before its next heartbeat.
    @Test(arguments: Engine.allCases) func deregisteringWithoutARowReleasesLeases(_ engine: Engine) async throws {
        let fixture = try await held(engine)
        try await fixture.write("DELETE FROM relay")
        try await fixture.store.removeDeadRelay(Self.relay, at: nil, now: WebhookFixture.now)
        try await check(fixture, holds: false)
    }
}
