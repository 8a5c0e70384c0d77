import Domain
import Relay
import TestSupport
import Testing
import World

/// Notifications to websites and users are stored with the change, once.
@Suite(.mayBlock) struct AccountEventTests {
    private func reported(_ rig: RelayRig, _ event: String) throws -> [Int64] {
        try ["webhook", "mail"].map {
            try rig.count(
                "SELECT count(*) FROM outbox WHERE kind = '\($0)' AND event = '\(event)' AND device_id IS NOT NULL")
        }
    }

    @Test(arguments: StoreKind.all) func bindingAndUnbindingCreateEvents(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["number": "0"], webhook: "https://shop.example/hook")
        let person = try await Person.registered("ada", at: shop, rig, email: "ada@example.com")
        let early = try await person.furtherCode()
        let phone = try TestPhone(pushToken: "first")
        let first = try await person.bound(phone, person.code)
        for _ in 0..<2 { #expect(await person.bind(phone, person.code).bound != nil) }
        #expect(try reported(rig, "device.bound") == [1, 1])
        // Not while the phone waits, …
        let second = try TestPhone(pushToken: "second")
        #expect(await person.bind(second, early).isWaiting)
        #expect(try reported(rig, "device.bound") == [1, 1])
        await rig.settled()
        try await person.decide(try person.lastAsked(), .approve, by: first)
        // … but when it is bound.
        for _ in 0..<2 { #expect(await person.bind(second, early).bound != nil) }
        #expect(try reported(rig, "device.bound") == [2, 2])
        for state in [DeviceSwitch.suspended, .active] {
            _ = try await rig.on { relay in
                try await relay.change(first.id, ofUser: "ada", name: nil, state: state, by: shop)
            }
        }
        #expect(try reported(rig, "device.unbound") == [0, 0])
        for _ in 0..<2 { try await rig.on { relay in try await relay.unbind(first.id, ofUser: "ada", by: shop) } }
        #expect(try reported(rig, "device.unbound") == [1, 1])
        // This round does not send webhooks.
        try await rig.round(after: .seconds(3600))
        #expect(try reported(rig, "device.bound") == [2, 0])
    }

    @Test(arguments: StoreKind.all) func bindingByTheWebsiteCreatesOneEvent(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["answers": "website"], webhook: "https://shop.example/hook")
        let person = try await Person.registered("ada", at: shop, rig)
        for token in ["one", "two", "two"] {
            _ = try await rig.on { relay in
                try await relay.bind(token: person.token, pushToken: token, by: shop, as: relay.operations.new())
            }
        }
        // A user without an address gets an entry, too, so that the relay counts what nobody gets.
        #expect(try reported(rig, "device.bound") == [1, 1])
        #expect(try rig.count("SELECT count(*) FROM device WHERE push_token = 'two'") == 1)
    }
}
