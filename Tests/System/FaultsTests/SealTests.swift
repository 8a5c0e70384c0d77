import Bytes
import Glibc
import JSON
import TestSupport
import Testing
import World

/// The setting `seal`, switched under a running relay.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct SealTests {
    private func tool(_ fixture: Fixture, _ arguments: String...) async throws -> Child.Ended {
        try await Child.run(try BuiltProgram.twoefay.path, ["--config", fixture.relay.settings] + arguments)
    }

    private func use(_ seal: String, _ fixture: Fixture, number: Int) async throws {
        var text = try TextFile.read(fixture.relay.settings)
        try text.set("seal", to: seal)
        try TextFile.write(text, to: fixture.relay.settings)
        fixture.relay.signal(SIGHUP)
        try await fixture.relay.logged("event=daemon.reloaded", number: number)
        try await fixture.relay.logged("event=personal.resealed", number: number)
    }

    private func inTheClear(_ fixture: Fixture) throws -> [Int64] {
        try [
            "SELECT count(*) FROM user WHERE email = 'anna@example.com' AND phone = '+4366012345678'",
            "SELECT count(*) FROM factor WHERE address IN ('anna@example.com', '+4366012345678')",
            "SELECT count(*) FROM device WHERE push_token NOT LIKE 'sealed:%'",
            "SELECT count(*) FROM challenge WHERE CAST(context AS char) LIKE '%203.0.113.9%'",
        ].map { try fixture.relay.count($0) }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func reloadSwitchesBothWays(kind: StoreKind) async throws {
        let fixture = try await Fixture.start(kind)
        let reply = try await fixture.shop.send(
            "POST", "/register",
            ["username": "anna", "email": "anna@example.com", "phone": "+4366012345678"])
        try #require(reply.status == 201, "\(reply)")
        let (token, code) = try Fixture.registered(reply)
        let phone = try await fixture.verify(
            try TestPhone(pushToken: Fixture.pushToken()), token: token, code: code)
        let open = try await fixture.login(token, ["ip": "203.0.113.9"])
        #expect(try inTheClear(fixture) == [1, 2, 1, 1])

        try await use("personal", fixture, number: 1)
        #expect(try inTheClear(fixture) == [0, 0, 0, 0])
        #expect(!fixture.relay.log.contains("anna@example.com"))
        // A login that was open is answered, and its notice is found.
        #expect(try await phone.approve(open).status == 200)
        // The tool has the key, and shows the values.
        let shown = try await tool(fixture, "user", "show", "anna", "--website", "shop")
        #expect(shown.output.contains("anna@example.com") && shown.output.contains("+4366012345678"), "\(shown)")
        let status = try await tool(fixture, "status")
        #expect(status.output.contains("Personal data: sealed, checked at "), "\(status.output)")
        let json = try JSONReader.read(Array(try await tool(fixture, "status", "--json").output.utf8)).object
        let run = try #require(json?["personal_data"]?.object?["run"]?.object)
        #expect(run["seal"]?.string == "personal" && run["stuck"]?.integer == 0)
        #expect(try #require(run["changed"]?.integer) >= 5 && run["ended_at"]?.string != nil)
        let verified = try await tool(fixture, "rows", "verify")
        #expect(verified.status == 0, "\(verified.output)")
        // The address is taken in the sealed form, too.
        let second = try await fixture.shop.send(
            "POST", "/register", ["username": "eve", "email": "anna@example.com"])
        #expect(second.status == 409, "\(second)")

        try await use("secrets", fixture, number: 2)
        #expect(try inTheClear(fixture) == [1, 2, 1, 1])
        #expect(try await tool(fixture, "rows", "verify").status == 0)
        let last = try await fixture.login(token)
        #expect(try await phone.approve(last).status == 200)
    }
}
