import JSON
import TestSupport
import Testing

@Suite("twoefay rows", .timeLimit(.minutes(15)), .mayBlock) struct RowsTests {
    private func verify(_ fixture: Fixture) async throws -> (status: Int32, found: [JSONObject]) {
        let ended = try await fixture.tool(["rows", "verify", "--json"])
        let report = try #require(try JSONReader.read(Array(ended.output.utf8)).object)
        return (ended.status, try #require(report["found"]?.array).compactMap(\.object))
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func rowChangedBySQLCountsOnceAdopted(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        let enrolment = try await fixture.registered("ada")
        _ = try await fixture.bind(enrolment)
        _ = try await fixture.login("ada")
        let before = try await verify(fixture)
        #expect(before.status == 0 && before.found.isEmpty)

        try fixture.relay.forge("UPDATE user SET email = 'new@example.com'")
        let refused = try await fixture.shop.curl("POST", "/login", json: #"{"username":"ada"}"#)
        #expect(refused.status == 500)
        let after = try await verify(fixture)
        let row = try #require(after.found.first)
        #expect(after.status == 1 && after.found.count == 1)
        #expect(row["table"] == "user" && row["verdict"] == "changed")

        let key = try #require(row["key"]?.string)
        try await fixture.refused(["rows", "adopt", "user", key], 2, "--reason must be given")
        try await fixture.refused(
            ["rows", "adopt", "users", key, "--reason", "x"], 2, "there is no signed table users")
        try await fixture.refused(
            ["rows", "adopt", "user", "0f3a", "--reason", "x"], 3, "there is no row with this key")
        let shown = try await fixture.json("rows", "adopt", "user", key, "--show")
        #expect(shown["columns"]?.object?["email"] == "new@example.com" && shown["adopted"] == false)
        let adopted = try await fixture.json("rows", "adopt", "user", key, "--reason", "ticket 4711")
        #expect(adopted["adopted"] == true)
        #expect(try fixture.trail("row.adopted", outcome: "operator") == 1)
        #expect(
            try fixture.relay.count("SELECT count(*) FROM AuditTrail WHERE note = 'user \(key): ticket 4711'") == 1)
        #expect(try await verify(fixture).status == 0)
        try await fixture.refused(["rows", "adopt", "user", key, "--reason", "x"], 4, "the row is genuine")
        _ = try await fixture.login("ada")
    }

    /// The log may be gone later. The audit says who was affected, and that the relay itself found it.
    @Test(arguments: [StoreKind.file, .mariadb]) func forgedRowLeavesARowInTheAudit(kind: StoreKind) async throws {
        let fixture = try await Fixture(kind)
        _ = try await fixture.registered("ada")
        try fixture.relay.forge("UPDATE user SET email = 'new@example.com'")
        for _ in 0..<3 {
            let refused = try await fixture.shop.curl("POST", "/login", json: #"{"username":"ada"}"#)
            #expect(refused.status == 500)
        }
        try await fixture.relay.logged("event=row.forged", number: 3)
        // The stop waits for work in the background.
        await fixture.relay.stop()
        let rows = try await fixture.json("audit", "search", "--event", "row.forged")["rows"]?.array ?? []
        #expect(rows.count == 1)
        let row = try #require(rows.first?.object)
        let user = try #require(row["user"]?.string)
        #expect(row["outcome"] == "user" && row["note"]?.string == "user \(user)" && row["username"] == "ada", "\(row)")
        #expect(row["actor"]?.string?.hasPrefix("relay ") == true)
        #expect(try await fixture.tool(["audit", "verify"]).status == 0)
    }

    @Test func rightRestoredBySQLIsReported() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        _ = try await fixture.json("user", "lock", "ada", "--website", "shop")
        try fixture.relay.forge("UPDATE user SET state = 'active', stopped_by = NULL")
        let row = try #require(try await verify(fixture).found.first)
        #expect(row["verdict"] == "rights_given_back")
        #expect(row["detail"]?.string?.contains("state = 'active'") == true)
    }

    @Test func restoredOldRowIsFoundByAuditVerify() async throws {
        let fixture = try await Fixture(.file)
        let enrolment = try await fixture.registered("ada")
        let phone = try await fixture.bind(enrolment)
        #expect(try await fixture.json("audit", "verify")["found"]?.array?.isEmpty == true)
        try fixture.relay.forge("CREATE TABLE kept AS SELECT * FROM device")
        _ = try await fixture.json("device", "revoke", phone.device, "--yes")
        #expect(try await fixture.json("audit", "verify")["found"]?.array?.isEmpty == true)
        #expect(try await !phone.isKnown())
        try fixture.relay.forge("DELETE FROM device")
        try fixture.relay.forge("INSERT INTO device SELECT * FROM kept")
        // A relay once wrote the row like this; only the audit shows that there was a later one.
        #expect(try await verify(fixture).status == 0)
        let ended = try await fixture.tool(["audit", "verify", "--json"])
        let found = try #require(try JSONReader.read(Array(ended.output.utf8)).object?["found"]?.array)
        #expect(ended.status == 1 && found.count == 1)
        #expect(found.first?.object?["table"] == "device" && found.first?.object?["key"]?.string == phone.device)
    }

    /// A restored row of a user would take back a later change: a checked identity, or a lock that
    /// an operator took over.
    @Test(arguments: [
        ["user", "confirm-identity", "ada", "--by", "Ben", "--document", "passport"], ["user", "lock", "ada"],
    ])
    func restoredUserIsFoundByAuditVerify(change: [String]) async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        try fixture.relay.execute("UPDATE user SET state = 'locked', stopped_by = 'phone'")
        try fixture.relay.forge("CREATE TABLE kept AS SELECT * FROM user")
        _ = try #require(try await fixture.tool(change + ["--website", "shop"]).status == 0)
        try fixture.relay.forge("DELETE FROM user")
        try fixture.relay.forge("INSERT INTO user SELECT * FROM kept")
        #expect(try await verify(fixture).status == 0)
        let ended = try await fixture.tool(["audit", "verify", "--json"])
        let found = try #require(try JSONReader.read(Array(ended.output.utf8)).object?["found"]?.array)
        #expect(ended.status == 1 && found.map { $0.object?["table"] } == ["user"])
    }
}
