import Glibc
import JSON
import Synchronization
import TestSupport
import Testing

/// A website whose web server has a fault: another website is not affected, and every webhook arrives after the
/// recovery.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct EndpointDownTests {
    enum Harm: String, CaseIterable, CustomTestStringConvertible {
        case hangs, slow, fails, redirects, closed, untrusted, inside

        var testDescription: String { rawValue }

        /// The answer of the server during the fault.
        var answer: TestGateway.Answer {
            switch self {
            case .hangs, .closed: .silence
            case .slow: .slowly("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", pause: .seconds(1))
            case .fails: .status(500, "no")
            case .redirects: .status(302, fields: ["location: /elsewhere"])
            case .untrusted, .inside: .status(200)
            }
        }

        /// The reason in the log.
        var reason: String {
            switch self {
            case .hangs, .slow: "no answer in time"
            case .fails: "answered 500"
            case .redirects: "redirects (302)"
            case .closed: "not reached"
            case .untrusted: "certificate not trusted"
            case .inside: "address not allowed"
            }
        }

        /// Whether an attempt lasts until its time-out.
        var lasts: Bool { self == .hangs || self == .slow }
    }

    /// The address of the healthy website's server; the other one is at 127.0.0.1.
    private static let place = "127.0.0.2"

    @Test(arguments: Harm.allCases) func endpointOutageAffectsNoOtherAndLosesNothing(_ harm: Harm) async throws {
        let fixture = try await Fixture.start { settings in
            try settings.set("webhooks.allow", to: harm == .inside ? Self.place : "127.0.0.0/8")
        }
        let well = try await WebhookShop(
            "well", TestGateway(host: Self.place) { _ in .status(204) }, of: fixture.relay)
        let server = try await TestGateway { _ in harm.answer }
        // Its authority is unknown to the relay.
        let stranger = try await TestPushService.start()
        let url =
            switch harm {
            case .inside: "http://localhost:\(server.port)/hook"
            case .untrusted: "\(stranger.origin())/hook"
            default: "\(server.url)/hook"
            }
        let harmed = try await WebhookShop("harmed", at: url, server, of: fixture.relay)
        if harm == .closed { await server.goDown() }

        let phones = (try await well.enrol("anna"), try await harmed.enrol("bert"))
        var decided = (well: [String](), harmed: [String]())
        /// The time from the phone's answer to the website's webhook, for each login of the healthy website.
        var times = (before: [Duration](), meanwhile: [Duration]())
        for _ in 0..<20 {
            let (challenge, time) = try await well.timed("anna", by: phones.0)
            decided.well.append(challenge)
            times.before.append(time)
        }
        for _ in 0..<5 { decided.harmed.append(try await harmed.decide("bert", by: phones.1)) }
        if !harm.lasts { try await fixture.relay.logged("event=webhook.failed website=harmed") }
        var unharmed = 0
        for _ in 0..<20 {
            let before = fixture.failures
            let (challenge, time) = try await well.timed("anna", by: phones.0)
            decided.well.append(challenge)
            times.meanwhile.append(time)
            if fixture.failures == before { unharmed += 1 }
        }
        print("webhooks while another website \(harm): \(Self.compared(times.before, times.meanwhile))")
        // If one website waited for the other's webhooks, each wait would see one of them end.
        if harm.lasts { #expect(unharmed > 0) }
        try check(well, decided.well)
        let failed = try await fixture.relay.logged("event=webhook.failed website=harmed")
        #expect(failed.contains("reason=\"\(harm.reason)\"") || failed.contains("reason=\(harm.reason)"), "\(failed)")

        // The fault ends.
        switch harm {
        case .untrusted: try await fixture.relay.tool("website", "edit", "harmed", "--webhook", "\(server.url)/hook")
        case .inside:
            try fixture.relay.change { try $0.set("webhooks.allow", to: "127.0.0.0/8") }
            fixture.relay.signal(SIGHUP)
            try await fixture.relay.logged("event=daemon.reloaded")
        default:
            if harm != .closed { await server.goDown() }
            server.answer { _ in .status(200) }
            try await server.comeBack()
        }
        // Failed webhooks are due in minutes or hours; the operator makes them due now.
        try await fixture.relay.tool("website", "webhook", "harmed", "disable")
        try await fixture.relay.tool("website", "webhook", "harmed", "enable")
        for challenge in decided.harmed { await harmed.hears("login.decided", of: challenge) }
        try check(harmed, decided.harmed)
        try await fixture.drained()
    }

    /// The relay does not wait for webhooks that hang. The next relay takes them at once.
    @Test(arguments: KillTests.stores) func relayStopsWhileAnEndpointHangs(_ store: StoreKind) async throws {
        let fixture = try await Fixture.start(store) { try $0.set("webhooks.allow", to: "127.0.0.0/8") }
        let server = try await TestGateway { _ in .silence }
        let shop = try await WebhookShop("shop-2", server, of: fixture.relay)
        let challenge = try await shop.decide("anna", by: try await shop.enrol("anna"))
        await shop.hears("login.decided", of: challenge)
        #expect(await fixture.relay.stop().status == 0)
        #expect(try fixture.relay.count("SELECT count(*) FROM outbox WHERE kind = 'webhook'") == 2)
        #expect(try fixture.relay.count("SELECT count(*) FROM outbox WHERE holder IS NOT NULL") == 0)
        server.answer { _ in .status(200) }
        try await fixture.relay.restart()
        await shop.hears("login.decided", of: challenge, times: 2)
        try await fixture.drained()
        try check(shop, [challenge])
    }

    private static func compared(_ before: [Duration], _ meanwhile: [Duration]) -> String {
        let (before, meanwhile) = (before.sorted(), meanwhile.sorted())
        let middle = before.count / 2
        let ratio = Int((meanwhile[middle] / before[middle] * 100).rounded())
        return "median \(meanwhile[middle]) to \(before[middle]) before, \(ratio) %; "
            + "longest \(meanwhile[meanwhile.count - 1]) to \(before[before.count - 1])"
    }

    private func check(_ shop: WebhookShop, _ challenges: [String]) throws {
        let heard = shop.heard
        let forged = heard.filter { !$0.isTrue }
        #expect(forged.isEmpty, "\(forged)")
        for challenge in challenges {
            let received = shop.heard("login.decided", of: challenge)
            #expect(Set(received.map(\.id)).count == 1 && Set(received.map(\.body)).count == 1, "\(received)")
        }
        let strange = heard.filter { $0.challenge.map { !challenges.contains($0) } ?? false }
        #expect(strange.isEmpty, "\(strange)")
    }
}

extension Fixture {
    /// The number of failed webhooks of the website with the fault.
    fileprivate var failures: Int {
        relay.log.split(separator: "\n").count {
            $0.contains("event=webhook.failed website=harmed")
        }
    }
}
