import Bytes
import Glibc
import JSON
import TestSupport
import Testing

/// The command `twoefay import` beside a running relay, on both stores.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct ImportTests {
    private static let count = 1200

    /// Creates users of the website, and a file with a token for each.
    private func prepare(_ relay: RunningRelay) throws -> String {
        let website = "(SELECT id FROM website WHERE name = '\(Fixture.website)')"
        var rows: [String] = []
        var table = "username,kind,secret,counter\n"
        for number in 0..<Self.count {
            let id =
                "x'\(Hex.encode((0..<16).map { UInt8(truncatingIfNeeded: $0 == 0 ? number >> 8 : $0 == 1 ? number : 7) }))'"
            rows.append("(\(id), \(id), \(website), 'user-\(number)', 'active', '2026-11-22 00:00:00.000', \(id))")
            let secret = Hex.encode(Array("1234567890123456".utf8) + [UInt8(number >> 8), UInt8(number & 255)])
            table += "user-\(number),hotp,hex:\(secret),\(number)\n"
        }
        try relay.execute(
            "INSERT INTO user (id, token, website_id, username, state, created_at, operation) VALUES "
                + rows.joined(separator: ", "))
        let path = relay.directory("tokens.csv")
        try TextFile.write(table, to: path)
        return path
    }

    private func run(_ relay: RunningRelay, _ arguments: String...) async throws -> JSONObject {
        let output = try await relay.tool(
            ["import", relay.directory("tokens.csv"), "--website", Fixture.website, "--json"] + arguments)
        return try #require(try JSONReader.read(Array(output.utf8)).object)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func manyTokensAreImportedAtOnce(kind: StoreKind) async throws {
        let fixture = try await Fixture.start(kind)
        let file = try prepare(fixture.relay)
        let done = try await Child.run(
            try BuiltProgram.twoefay.path,
            ["--config", fixture.relay.file("twoefay.yaml"), "import", file, "--website", Fixture.website])
        #expect(done.status == 0, "\(done.errors)")
        #expect(done.output.contains("\(Self.count) new, 0 replaced, 0 kept"))
        // Progress is for people at a terminal.
        #expect(done.errors == "")
        #expect(try fixture.relay.count("SELECT count(*) FROM factor WHERE state = 'active'") == Int64(Self.count))
        #expect(
            try fixture.relay.count("SELECT count(*) FROM audit WHERE event = 'factor.imported'") == Int64(Self.count))
        #expect(
            try fixture.relay.count(
                """
                SELECT count(*) FROM factor f JOIN user u ON u.id = f.user_id
                WHERE u.username = 'user-1199' AND f.counter = 1199 AND u.proved_at IS NOT NULL
                """) == 1)
        #expect(try await run(fixture.relay)["kept"]?.integer == Int64(Self.count))
        // No secret is in the store as plain text.
        #expect(
            try fixture.relay.count(
                "SELECT count(*) FROM factor WHERE hex(secret) LIKE '%31323334353637383930313233343536%'") == 0)
    }

    /// A killed import leaves only complete factors; the same command again adds the others.
    @Test(arguments: [StoreKind.file, .mariadb]) func interruptedImportIsResumed(kind: StoreKind) async throws {
        let fixture = try await Fixture.start(kind)
        let file = try prepare(fixture.relay)
        let child = try Child(
            try BuiltProgram.twoefay.path,
            ["--config", fixture.relay.file("twoefay.yaml"), "import", file, "--website", Fixture.website])
        while try fixture.relay.count("SELECT count(*) FROM factor") == 0 { await Task.yield() }
        child.signal(SIGKILL)
        _ = await child.ended()
        let there = try fixture.relay.count("SELECT count(*) FROM factor")
        #expect(try fixture.relay.count("SELECT count(*) FROM audit WHERE event = 'factor.imported'") == there)
        let rest = try await run(fixture.relay)
        #expect(rest["kept"]?.integer == there)
        #expect(rest["added"]?.integer == Int64(Self.count) - there)
        #expect(try fixture.relay.count("SELECT count(*) FROM factor") == Int64(Self.count))
    }
}
