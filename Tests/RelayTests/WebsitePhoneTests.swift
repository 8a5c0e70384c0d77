import Domain
import Log
import Relay
import Storage
import TestSupport
import Testing
import World

/// Phones without a key, which their website keeps.
@Suite struct WebsitePhoneTests {
    private static let websites = ["answers": "website", "further-factors": "website"]

    /// It cannot ask by itself: that its push token is wrong must not look like a phone that does.
    @Test(arguments: StoreKind.all) func aPushTokenThatCannotBeRightIsToldOf(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop("shop", Self.websites), rig)
        rig.pushes.serveOnly { platform, _ in platform == .ios }
        rig.pushes.answer(.badRequest("not a token"))
        _ = try await ada.bound("APA91bHun4:x")
        let asked = try await ada.login()
        #expect(asked.factor == .push)
        await rig.settled()
        #expect(rig.pushes.sent.map(\.deviceToken) == ["APA91bHun4:x"])
        #expect(try await ada.told(asked.challenge).steps.map(\.state) == [.undeliverable])
        let told = rig.sink.drain().filter { $0.contains("level=error event=push.refused") }
        #expect(told.count == 1 && told[0].contains("not a token"))
    }
}

extension Person {
    /// The website binds the push token itself.
    fileprivate func bound(_ pushToken: String) async throws -> DeviceID {
        try await rig.on { relay in
            try await relay.bind(token: token, pushToken: pushToken, by: website, as: relay.operations.new())
        }
    }
}
