import TestSupport
import Testing
import TwoefayClient
import World

/// The life of a phone, as a website sees it through RelayClient with a real relay.
@Suite("The life of a phone", .timeLimit(.minutes(15)), .mayBlock) struct DeviceLifeTests {
    @Test(arguments: [StoreKind.file, .mariadb]) func websiteSeesCountsReportAndExpiry(_ kind: StoreKind) async throws {
        let shop = try await RealShop(try await RunningRelay.start(kind), [])
        let registered = try await shop.client.register("ada", expiresAt: Timestamp(seconds: 4_102_444_800))
        try await shop.bind("ada", try #require(registered.activation).uri)
        var user = try await shop.client.user("ada")
        #expect(user.state == .active && user.expiresAt == Timestamp(seconds: 4_102_444_800))
        let bound = try #require(user.devices.first)
        #expect(bound.report == nil && bound.loginSuccesses == 0 && bound.loginFailures == 0)
        #expect(bound.expiresAt == user.expiresAt && bound.stoppedBy == nil && user.lastCodeAt == nil)

        try await shop.report(["--os", "iOS", "--os-version", "26.1", "--battery", "81", "--rooted", "no"], of: "ada")
        try await shop.answer("approve", try await shop.client.ask(LoginRequest(username: "ada")))
        try await shop.answer("deny", try await shop.client.ask(LoginRequest(username: "ada")))
        let used = try #require(try await shop.client.user("ada").devices.first)
        #expect(used.loginSuccesses == 1 && used.loginFailures == 1 && used.wrongNumbers == 0)
        let report = try #require(used.report)
        #expect(report.os == "iOS" && report.osVersion == "26.1" && report.battery == 81 && report.isRooted == false)
        #expect(report.hasScreenLock == nil && report.patchLevel == nil)

        try await shop.client.suspend(bound.id, of: "ada")
        #expect(try await shop.client.user("ada").devices.first?.stoppedBy == "website")
        try await shop.client.resume(bound.id, of: "ada")
        try await shop.client.change("ada", .init(expiry: .at(Timestamp(seconds: 1_700_000_000))))
        user = try await shop.client.user("ada")
        #expect(user.state == .expired && user.devices.first?.state == .expired)
        let asked = try await shop.client.ask(LoginRequest(username: "ada"))
        let outcome = try await shop.client.result(of: asked.challenge)
        #expect(outcome.login == .failure && outcome.reason == .userExpired)
        try await shop.client.change("ada", .init(expiry: .never))
        user = try await shop.client.user("ada")
        #expect(user.state == .active && user.expiresAt == nil)
    }
}
