import DeliveryOutcomes
import Domain
import Log
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Phones without a key, which their website has bound.
@Suite struct WebsitePhoneTests {
    private static let websites = ["answers": "website", "further-factors": "website"]

    /// This phone cannot poll, so a wrong device token must not make it look like a phone that does.
    @Test(arguments: StoreKind.all) func invalidPushTokenOfAWebsitePhoneIsReported(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop("shop", Self.websites), rig)
        rig.pushes.serveOnly { platform, _ in platform == .ios }
        rig.pushes.answer(.misconfigured(.message, reason: "not a token"))
        _ = try await ada.bound("APA91bHun4:x")
        let asked = try await ada.login()
        #expect(asked.factor == .push)
        await rig.settled()
        #expect(rig.pushes.sent.map(\.deviceToken) == ["APA91bHun4:x"])
        #expect(try await ada.reported(asked.challenge).steps.map(\.state) == [.undeliverable])
        let reported = rig.sink.drain().filter { $0.contains("level=error event=push.undeliverable") }
        #expect(reported.count == 1 && reported[0].contains("not a token"))
    }

    private func announced(_ rig: RelayRig) throws -> [Int64] {
        try ["device.bound", "device.unbound"].map {
            try rig.count("SELECT count(*) FROM outbox WHERE kind = 'webhook' AND event = '\($0)'")
        }
    }

    private func audits(_ event: String, _ rig: RelayRig) throws -> Int64 {
        try rig.count("SELECT count(*) FROM audit WHERE event = '\(event)' AND outcome = 'operator'")
    }

    @Test(arguments: StoreKind.all) func restoredWebsitePhoneIsReportedWhenBound(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let club = try await rig.shop("club", Self.websites, webhook: "https://club.example/hook")
        let ada = try await Person.registered("ada", at: club, rig)
        let device = try await ada.bound("one")
        #expect(try await rig.byOperator(.revoked, device))
        #expect(try await !rig.byOperator(.revoked, device))
        #expect(try announced(rig) == [1, 1])
        #expect(try await rig.byOperator(.active, device))
        #expect(try await !rig.byOperator(.active, device))
        #expect(try await ada.devices().map(\.state) == [.revoked])
        #expect(try announced(rig) == [1, 1])
        #expect(try audits("device.released", rig) == 1)
        #expect(try audits("device.resumed", rig) == 0)
        #expect(try await ada.bound("two") == device)
        #expect(try await ada.devices().map(\.state) == [.active])
        #expect(try announced(rig) == [2, 1])
    }

    /// For a stolen phone: its website, or an attacker with the website's key, must not bind it again.
    @Test(arguments: StoreKind.all) func operatorTakesOverAPhoneUnboundByItsWebsite(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let club = try await rig.shop("club", Self.websites, webhook: "https://club.example/hook")
        let ada = try await Person.registered("ada", at: club, rig)
        let device = try await ada.bound("one")
        try await rig.on { relay in try await relay.unbind(device, ofUser: "ada", by: club) }
        // There is nothing to resume.
        #expect(try await !rig.byOperator(.active, device))
        #expect(try await rig.byOperator(.revoked, device))
        #expect(try await !rig.byOperator(.revoked, device))
        #expect(try audits("device.taken", rig) == 1)
        #expect(try announced(rig) == [1, 1])
        await #expect(throws: Refusal.stopped("device resume \(device.text)")) { try await ada.bound("two") }
        #expect(try await rig.byOperator(.active, device))
        #expect(try await ada.bound("two") == device)
        #expect(try announced(rig) == [2, 1])
    }
}

extension Person {
    /// The website binds the device token itself.
    fileprivate func bound(_ pushToken: String) async throws -> DeviceID {
        try await rig.on { relay in
            try await relay.bind(token: token, pushToken: pushToken, by: website, as: relay.operations.new())
        }
    }
}
