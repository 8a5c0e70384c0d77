import Glibc
import JSON
import TestSupport
import Testing

/// Callers that come back with a session ticket. A ticket replaces the handshake, and no check of a
/// request.
@Suite("Resumed connections", .timeLimit(.minutes(15)), .mayBlock) struct ResumedConnectionTests {
    @Test func websiteIsCheckedInEachRequest() async throws {
        try await Fixture.run { fixture in
            let shop = try ReturningClient(await fixture.website("shop"))
            #expect(try !shop.send("GET", "/user/bob").isResumed)
            let known = try shop.send("GET", "/user/bob")
            #expect(known.isResumed && known.status == 404)
            try await fixture.relay.tool("website", "disable", "shop")
            let disabled = try shop.send("GET", "/user/bob")
            #expect(disabled.isResumed && disabled.status == 401, "\(disabled)")
            try await fixture.relay.tool("website", "enable", "shop")
            #expect(try shop.send("GET", "/user/bob").status == 404)
            try await fixture.relay.tool("website", "revoke-key", "shop", "--all", "--yes")
            let revoked = try shop.send("GET", "/user/bob")
            #expect(revoked.isResumed && revoked.status == 401, "\(revoked)")
        }
    }

    @Test func phoneIsCheckedInEachRequest() async throws {
        try await Fixture.run { fixture in
            let shop = try await fixture.website("shop")
            let (token, code) = try await shop.register("bob")
            let phone = try await Phone(in: fixture, token: token, code: code)
            let client = try ReturningClient(phone.client)
            #expect(try !client.send("POST", "/pending").isResumed)
            let known = try client.send("POST", "/pending")
            #expect(known.isResumed && known.body["pending"] != nil)
            for (command, isKnown) in [("suspend", false), ("resume", true), ("revoke", false)] {
                let consent = command == "revoke" ? ["--yes"] : []
                try await fixture.relay.tool(["device", command, phone.device] + consent)
                let answer = try client.send("POST", "/pending")
                #expect(answer.isResumed, "\(command)")
                #expect((answer.body["pending"] != nil) == isKnown, "\(command): \(answer)")
            }
        }
    }

    /// A reload has another memory of sessions, and so has a restart.
    @Test func reloadAndRestartEndTickets() async throws {
        try await Fixture.run { settings throws in
            try settings.set("metrics.listen", to: "127.0.0.1:0")
        } _: { fixture in
            let relay = fixture.relay
            let shop = try ReturningClient(await fixture.website("shop"))
            let anyone = try ReturningClient(fixture.nobody)
            #expect(try !shop.send("GET", "/user/bob").isResumed)
            #expect(try shop.send("GET", "/user/bob").isResumed)
            for _ in 0..<2 { #expect(try !anyone.send("GET", "/user/bob").isResumed) }
            let page = try await MetricsPage.curl(try await MetricsPage.address(of: relay), "/metrics")
            for (kind, resumed) in [("website", 1), ("unidentified", 0)] {
                #expect(MetricsPage.number("twoefay_handshakes_total{kind=\"\(kind)\"}", page) == 2, "\(kind)")
                let name = "twoefay_handshakes_resumed_total{kind=\"\(kind)\"}"
                #expect(MetricsPage.number(name, page) == resumed, "\(kind)")
            }
            #expect(MetricsPage.number("twoefay_handshakes_resumed_total{kind=\"phone\"}", page) == 0)

            relay.signal(SIGHUP)
            try await relay.logged("event=daemon.reloaded")
            #expect(try !shop.send("GET", "/user/bob").isResumed)
            #expect(try shop.send("GET", "/user/bob").isResumed)
            await relay.stop()
            try await relay.restart()
            let restarted = try shop.send("GET", "/user/bob")
            #expect(!restarted.isResumed && restarted.status == 404)
        }
    }
}
