import JSON
import TestSupport
import Testing

@Suite("twoefay rows", .timeLimit(.minutes(15)), .mayBlock) struct RowsTests {
    private func verify(_ scene: Fixture) async throws -> (status: Int32, found: [JSONObject]) {
        let ended = try await scene.tool(["rows", "verify", "--json"])
        let report = try #require(try JSONReader.read(Array(ended.output.utf8)).object)
        return (ended.status, try #require(report["found"]?.array).compactMap(\.object))
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func rowChangedBySQLCountsOnceAdopted(kind: StoreKind) async throws {
        let scene = try await Fixture(kind)
        let enrolment = try await scene.registered("ada")
        _ = try await scene.bind(enrolment)
        _ = try await scene.login("ada")
        let before = try await verify(scene)
        #expect(before.status == 0 && before.found.isEmpty)

        try scene.relay.forge("UPDATE user SET email = 'new@example.com'")
        let refused = try await scene.shop.curl("POST", "/login", json: #"{"username":"ada"}"#)
        #expect(refused.status == 500)
        let after = try await verify(scene)
        let row = try #require(after.found.first)
        #expect(after.status == 1 && after.found.count == 1)
        #expect(row["table"] == "user" && row["verdict"] == "changed")

        let key = try #require(row["key"]?.string)
        try await scene.refused(["rows", "adopt", "user", key], 2, "--reason must be given")
        try await scene.refused(["rows", "adopt", "users", key, "--reason", "x"], 2, "there is no signed table users")
        try await scene.refused(["rows", "adopt", "user", "0f3a", "--reason", "x"], 3, "there is no row with this key")
        let shown = try await scene.json("rows", "adopt", "user", key, "--show")
        #expect(shown["columns"]?.object?["email"] == "new@example.com" && shown["adopted"] == false)
        let adopted = try await scene.json("rows", "adopt", "user", key, "--reason", "ticket 4711")
        #expect(adopted["adopted"] == true)
        #expect(try scene.trail("row.adopted", outcome: "operator") == 1)
        #expect(
            try scene.relay.count("SELECT count(*) FROM audit WHERE note = 'user \(key): ticket 4711'") == 1)
        #expect(try await verify(scene).status == 0)
        try await scene.refused(["rows", "adopt", "user", key, "--reason", "x"], 4, "the row is genuine")
        _ = try await scene.login("ada")
    }

    @Test func rightRestoredBySQLIsReported() async throws {
        let scene = try await Fixture(.file)
        _ = try await scene.registered("ada")
        _ = try await scene.json("user", "lock", "ada", "--website", "shop")
        try scene.relay.forge("UPDATE user SET state = 'active', stopped_by = NULL")
        let row = try #require(try await verify(scene).found.first)
        #expect(row["verdict"] == "rights_given_back")
        #expect(row["detail"]?.string?.contains("state = 'active'") == true)
    }

    @Test func restoredOldRowIsFoundByAuditVerify() async throws {
        let scene = try await Fixture(.file)
        let enrolment = try await scene.registered("ada")
        let phone = try await scene.bind(enrolment)
        #expect(try await scene.json("audit", "verify")["found"]?.array?.isEmpty == true)
        try scene.relay.forge("CREATE TABLE kept AS SELECT * FROM device")
        _ = try await scene.json("device", "revoke", phone.device)
        #expect(try await scene.json("audit", "verify")["found"]?.array?.isEmpty == true)
        #expect(try await !phone.isKnown())
        try scene.relay.forge("DELETE FROM device")
        try scene.relay.forge("INSERT INTO device SELECT * FROM kept")
        // A relay once wrote the row like this; only the audit shows that there was a later one.
        #expect(try await verify(scene).status == 0)
        let ended = try await scene.tool(["audit", "verify", "--json"])
        let found = try #require(try JSONReader.read(Array(ended.output.utf8)).object?["found"]?.array)
        #expect(ended.status == 1 && found.count == 1)
        #expect(found.first?.object?["table"] == "device" && found.first?.object?["key"]?.string == phone.device)
    }
}
