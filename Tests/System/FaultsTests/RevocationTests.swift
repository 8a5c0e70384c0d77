import HTTP2
import JSON
import TestSupport
import Testing

/// The revocation of a leaked key while it is in use.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct RevocationTests {
    @Test(arguments: [StoreKind.file, .mariadb]) func revokedKeyEndsItsConnections(_ kind: StoreKind) async throws {
        let fixture = try await Fixture.start(kind) { try $0.set("log.level", to: "debug") }
        let (token, _) = try await fixture.enrol("anna")
        let login = try await fixture.login(token)
        let (idle, holding) = (try await fixture.shop.line(), try await fixture.shop.line())
        async let held = holding.send(
            "POST", "/auth", ["challenge": .string(login.challenge)], fields: ["prefer": "wait=60"])
        try await fixture.relay.logged("event=request.held")
        let bank = try await fixture.relay.website("bank")

        let revoked = try await fixture.relay.tool("website", "revoke-key", "shop", "--all", "--yes")
        #expect(revoked.contains("1 key of shop revoked, 0 left."))
        #expect(try await held.get().status == 401)
        try await fixture.relay.logged("event=connection.revoked")
        await idle.isOver()
        await holding.isOver()
        // A client with the key can still complete a handshake, but its requests are refused.
        let again = try await fixture.shop.line()
        #expect(try await again.send("GET", "/user/anna").get().status == 401)
        #expect(try await bank.curl("GET", "/user/anna").status == 404)
    }

    @Test func disabledWebsiteCanBeEnabledAgain() async throws {
        let fixture = try await Fixture.start()
        let line = try await fixture.shop.line()
        #expect(try await line.send("GET", "/user/nobody").get().status == 404)
        try await fixture.relay.tool("website", "disable", "shop")
        await line.isOver()
        let refused = try await fixture.shop.line()
        #expect(try await refused.send("GET", "/user/nobody").get().status == 401)
        try await fixture.relay.tool("website", "enable", "shop")
        #expect(try await refused.send("GET", "/user/nobody").get().status == 404)
    }
}
