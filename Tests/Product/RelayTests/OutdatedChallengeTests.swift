import Domain
import Relay
import Storage
import TestSupport
import Testing

/// Logins that are older than their last event in the audit.
struct OutdatedChallengeTests {
    private static func outdated(_ fixture: TwoWebsitesFixture) async throws -> [String] {
        let store = fixture.rig.store
        return try await fixture.rig.on { _ in try await store.run(OutdatedRow.all) }.map { "\($0.table) \($0.event)" }
    }

    /// A lock ends the open login under its own operation, and audits the end after itself.
    @Test(arguments: StoreKind.all) func loginThatALockEndedIsNotOutdated(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        #expect(try await fixture.lock())
        #expect(
            try fixture.rig.text("SELECT reason AS value FROM challenge WHERE id = x'\(asked.challenge.text)'")
                == "locked")
        #expect(try await Self.outdated(fixture) == [])
    }

    /// Somebody restores the login that the lock has ended. Its MAC is right.
    @Test(arguments: StoreKind.all) func restoredOpenLoginIsOutdated(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        let mine = "id = x'\(asked.challenge.text)'"
        let operation = try fixture.rig.text("SELECT hex(operation) AS value FROM challenge WHERE \(mine)")
        let mac = try fixture.rig.text("SELECT hex(mac) AS value FROM challenge WHERE \(mine)")
        #expect(try await fixture.lock())
        try fixture.rig.forge(
            """
            UPDATE challenge SET state = 'asked', reason = NULL, decided_at = NULL, operation = x'\(operation)',
            mac = x'\(mac)' WHERE \(mine)
            """)
        #expect(try await Self.outdated(fixture) == ["challenge challenge.ended"])
    }
}
