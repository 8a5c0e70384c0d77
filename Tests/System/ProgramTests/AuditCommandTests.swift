import JSON
import TestSupport
import Testing

@Suite("twoefay audit", .timeLimit(.minutes(15)), .mayBlock) struct AuditCommandTests {
    private func rows(_ fixture: Fixture, _ options: String...) async throws -> [JSONObject] {
        let ended = try await fixture.tool(["audit", "search", "--json"] + options)
        try #require(ended.status == 0, "\(ended.errors)")
        let rows = try JSONReader.read(Array(ended.output.utf8)).object?["rows"]?.array ?? []
        return rows.compactMap(\.object)
    }

    @Test func rowsNameTheOperatorAndTheReason() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        _ = try await fixture.json("user", "lock", "ada", "--website", "shop", "--reason", "ticket 4711")
        let locked = try await rows(fixture, "--website", "shop", "--user", "ada", "--event", "user.locked")
        #expect(locked.count == 1)
        #expect(locked.first?["actor"]?.string?.hasPrefix("operator ") == true)
        #expect(locked.first?["reason"] == "ticket 4711")
        // The relay registered the user for the website.
        let registered = try await rows(fixture, "--event", "user.registered")
        #expect(registered.first?["actor"] == "website shop")
        #expect(registered.first?["request"]?.string?.isEmpty == false)
        #expect(try await rows(fixture, "--actor", "operator", "--event", "user.").count == 1)
        #expect(try await rows(fixture, "--until", "2020-01-01").isEmpty)
    }

    @Test func editedWebsiteHasItsFormerValues() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.json("website", "edit", "shop", "--lifetime", "120", "--display-name", "The Shop")
        let changes = try await rows(fixture, "--event", "website.edited").first?["changes"]?.object
        #expect(changes?["display_name"]?.object?["after"] == "The Shop")
        #expect(changes?["policy.lifetime"]?.object?["after"] != nil)
        #expect(changes?.count == 2)
    }

    @Test func changedRowIsNamed() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        let right = try await fixture.json("audit", "verify")
        #expect(right["findings"]?.array == [])
        #expect(right["heads"]?.isNull == true)
        try fixture.relay.forge("UPDATE audit SET event = 'user.enabled' WHERE event = 'user.registered'")
        let ended = try await fixture.tool(["audit", "verify", "--json"])
        let found = try JSONReader.read(Array(ended.output.utf8)).object?["findings"]?.array
        #expect(ended.status == 1)
        #expect(found?.map { $0.object?["kind"] } == ["changed"])
        try await fixture.refused(["audit", "verify", "--heads", "/nonexistent"], 1, "--heads: /nonexistent")
    }

    @Test func exportIsInTheAudit() async throws {
        let fixture = try await Fixture(.file)
        _ = try await fixture.registered("ada")
        let directory = try TemporaryDirectory()
        let exported = try await fixture.json("audit", "export", "--out", directory("rows.jsonl"))
        let lines = try TextFile.bytes(directory("rows.jsonl")).split(separator: UInt8(ascii: "\n"))
        #expect(exported["rows"]?.integer == Int64(lines.count))
        #expect(try lines.allSatisfy { try JSONReader.read(Array($0)).object?["event"] != nil })
        #expect(try await rows(fixture, "--event", "audit.exported").count == 1)
        try await fixture.refused(["audit", "export", "--out", directory("rows.jsonl")], 4, "File exists")
        let tail = try await fixture.json("audit", "tail", "--count", "1")
        #expect(tail["rows"]?.array?.first?.object?["event"] == "audit.exported")
    }
}
