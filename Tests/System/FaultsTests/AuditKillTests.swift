import JSON
import TestSupport
import Testing

/// The audit of relays that were killed: every chain verifies, and the heads still show what somebody
/// deletes afterwards. `KillLoopTests` kills at random moments.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct AuditKillTests {
    private static let stores: [StoreKind] = [.file, .mariadb]

    private func fixture(_ store: StoreKind) async throws -> Fixture {
        try await Fixture.start(store) { try $0.set("audit.heads", to: "heads.jsonl") }
    }

    /// The relay is dead before it has written the head of its last change. The next one writes it.
    @Test(arguments: stores) func headsOfAKilledRelayAreWrittenByTheNext(_ store: StoreKind) async throws {
        let fixture = try await fixture(store)
        _ = try await fixture.register("anna")
        try await fixture.relay.killAndRestart()
        _ = try await fixture.register("otto")
        await fixture.relay.stop()
        #expect(try await fixture.relay.auditFindings() == [])
        // Anna's row is the last one of the killed relay.
        let first = "FROM audit WHERE event = 'user.registered' ORDER BY id LIMIT 1"
        let writer = try Ledger.read(fixture.relay) { try $0.texts("SELECT lower(hex(writer)) \(first)") }[0]
        let link = try fixture.relay.count("SELECT link \(first)")
        try fixture.relay.forge("DELETE FROM audit WHERE writer = x'\(writer)' AND link >= \(link)")
        try fixture.relay.forge("DELETE FROM audit_link WHERE writer = x'\(writer)' AND sequence >= \(link)")
        #expect(try await fixture.relay.auditFindings() == ["truncated"])
    }

    /// The relay is killed while its transaction waits: the audit row is written, and the link is not.
    @Test func writerKilledInMidBatchLeavesNothing() async throws {
        let fixture = try await fixture(.mariadb)
        let relay = fixture.relay
        _ = try await fixture.register("anna")
        let lock = try await StoreLock.take(relay, table: "audit_link")
        async let unread = fixture.shop.line().send("POST", "/register", ["username": "otto"])
        let waits = """
            SELECT count(*) FROM information_schema.processlist
            WHERE db = DATABASE() AND state LIKE 'Waiting for table%' AND info LIKE 'INSERT INTO audit_link%'
            """
        while try relay.count(waits) == 0 {}
        await relay.kill()
        await lock.release()
        _ = try? await unread
        try await relay.restart()
        #expect(try relay.count("SELECT count(*) FROM user WHERE username = 'otto'") == 0)
        #expect(try relay.count("SELECT count(*) FROM audit WHERE event = 'user.registered'") == 1)
        _ = try await fixture.register("otto")
        await relay.stop()
        #expect(try await relay.auditFindings() == [])
    }
}

extension RunningRelay {
    /// Checks the audit with the heads that relays wrote. Returns the kinds of what was found, and the
    /// tables of rows that are older than the audit.
    func auditFindings() async throws -> [String] {
        let ended = try await Child.run(
            try BuiltProgram.twoefay.path,
            ["--config", settings, "audit", "verify", "--heads", file("heads.jsonl"), "--json"])
        let report = try #require(try JSONReader.read(Array(ended.output.utf8)).object, "\(ended.errors)")
        let findings = try #require(report["findings"]?.array).compactMap { $0.object?["kind"]?.string }
        let outdated = try #require(report["found"]?.array).compactMap { $0.object?["table"]?.string }
        #expect(ended.status == (findings.isEmpty && outdated.isEmpty ? 0 : 1))
        #expect(try #require(report["heads"]?.integer) > 0)
        return findings + outdated
    }
}
