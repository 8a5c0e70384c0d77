import Domain
import Log
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The deletion of expired rows by one of several relays, with its log lines.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RetentionTests {
    private static let day = Duration.seconds(86_400)

    private struct Fixture {
        let fixture: TwoWebsitesFixture
        let other: RelayRig
        var rig: RelayRig { fixture.rig }

        init(_ kind: StoreKind) async throws {
            fixture = try await TwoWebsitesFixture(kind)
            other = try await RelayRig(beside: fixture.rig)
            try await beat(fixture.rig, other)
        }

        /// Runs the heartbeats in this order, so that the last relay sees that the first one is alive.
        func beat(_ rigs: RelayRig...) async throws {
            for rig in rigs { try await rig.on { relay in await relay.runHeartbeat() } }
        }

        func login() async throws {
            let asked = try await fixture.ask()
            #expect(try await rig.decide(.approve, asked.challenge, number: "47", by: fixture.first) == .success)
            await rig.settled()
        }

        var logins: Int64 { get throws { try rig.count("SELECT count(*) FROM challenge") } }
    }

    @Test(arguments: StoreKind.all) func loginsAndAuditAreDeletedAfterTheirRetention(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        func deleteExpired(after pause: Duration) async throws -> [String] {
            rig.time.advance(by: pause)
            _ = rig.sink.drain()
            try await rig.on { relay in await relay.deleteExpiredRows() }
            return rig.sink.drain().filter { $0.contains("event=retention.done") }
        }
        let asked = try await fixture.ask()
        #expect(try await rig.decide(.approve, asked.challenge, number: "47", by: fixture.first) == .success)
        await rig.settled()
        let audit = try rig.count("SELECT count(*) FROM audit")
        #expect(
            try await deleteExpired(after: Self.day * 30 - .seconds(5)).allSatisfy {
                !$0.contains("kind=challenges count=1")
            })
        #expect(try rig.count("SELECT count(*) FROM challenge") == 1)
        let lines = try await deleteExpired(after: .seconds(10))
        #expect(lines.contains { $0.contains("level=info") && $0.contains("kind=challenges count=1") })
        #expect(lines.contains { $0.contains("level=debug") && $0.contains("kind=webhooks count=0") })
        #expect(rig.registry.number("twoefay_retention_deleted_rows_total{kind=\"challenges\"}") == 1)
        for table in ["challenge", "step", "activation"] {
            #expect(try rig.count("SELECT count(*) FROM \(table)") == 0)
        }
        // The user is not affected: the user can be asked again, and no earlier login is reported.
        #expect(try rig.count("SELECT count(*) FROM audit") == audit)
        let again = try await fixture.ask()
        #expect(try await fixture.reported(again).result == .wait)
        _ = try await deleteExpired(after: Self.day * 371)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'user.registered'") == 0)
        #expect(try rig.count("SELECT count(*) FROM audit") < audit)
        #expect(try rig.count("SELECT count(*) FROM user") == 3)
    }

    /// A webhook that a website did not accept in time is dropped, and an operator is alerted.
    @Test func expiredWebhooksAreLogged() async throws {
        let rig = try await RelayRig(.memory)
        try rig.execute(
            """
            INSERT INTO outbox (id, kind, attempts, expires_at)
            VALUES (x'00', 'webhook', 8, '2020-01-01 00:00:00.000'), (x'01', 'webhook', 0, '2030-01-01 00:00:00.000')
            """)
        try await rig.on { relay in await relay.deleteExpiredRows() }
        #expect(try rig.count("SELECT count(*) FROM outbox") == 1)
        let lines = rig.sink.drain().filter { $0.contains("event=webhook.expired") }
        #expect(lines.count == 1 && lines[0].contains("level=warning") && lines[0].contains("count=1"))
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func oneRelayRunsRetention(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        try await fixture.rig.on { relay in await relay.deleteExpiredRows() }
        try await fixture.login()
        fixture.rig.time.advance(by: Self.day * 31)
        try await fixture.beat(fixture.rig, fixture.other)
        try await fixture.other.on { relay in await relay.deleteExpiredRows() }
        #expect(try fixture.logins == 1)
        try await fixture.rig.on { relay in await relay.deleteExpiredRows() }
        #expect(try fixture.logins == 0)
        #expect(fixture.other.registry.number("twoefay_retention_deleted_rows_total{kind=\"challenges\"}") == 0)
    }

    @Test(arguments: [StoreKind.file, .mariadb], [true, false])
    func retentionIsTakenOverFromADeadRelay(kind: StoreKind, dies: Bool) async throws {
        let fixture = try await Fixture(kind)
        try await fixture.rig.on { relay in await relay.deleteExpiredRows() }
        try await fixture.login()
        fixture.rig.time.advance(by: Self.day * 31)
        if dies {
            try await fixture.beat(fixture.other)
            for _ in 0...FailureDetector.timeout.components.seconds {
                fixture.rig.time.advance(by: .seconds(1))
                try await fixture.beat(fixture.other)
            }
        } else {
            try await fixture.rig.on { relay in await relay.deregister() }
        }
        try await fixture.other.on { relay in await relay.deleteExpiredRows() }
        #expect(try fixture.logins == 0)
        // The relay that comes back finds the lease taken.
        try await fixture.login()
        fixture.rig.time.advance(by: Self.day * 31)
        try await fixture.beat(fixture.other, fixture.rig)
        try await fixture.rig.on { relay in await relay.deleteExpiredRows() }
        #expect(try fixture.logins == 1)
    }

    @Test func keptRowsAreCheckedAgainAfterAnHour() {
        var marks = RetentionCursors()
        let start = Instant(nanoseconds: 1)
        marks.begin(at: start)
        marks[.challenges] = 7
        marks.begin(at: start + .seconds(3599))
        #expect(marks[.challenges] == 7 && marks[.audit] == 0)
        marks.begin(at: start + .seconds(3600))
        #expect(marks[.challenges] == 0)
    }
}
