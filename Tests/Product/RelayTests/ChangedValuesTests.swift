import Domain
import JSON
import Relay
import Storage
import TestSupport
import Testing
import World

/// The values before and after a change, in the audit.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ChangedValuesTests {
    private func changes(_ event: String, _ rig: RelayRig) throws -> JSONObject? {
        try JSONReader.read(
            Array(
                try rig.text(
                    "SELECT changes AS value FROM AuditTrail WHERE event = '\(event)' ORDER BY id DESC LIMIT 1"
                )
                .utf8)
        ).object
    }

    @Test(arguments: StoreKind.all) func auditHasTheValuesBeforeAndAfter(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (_, _, phone) = try await rig.enrolled("ada", at: shop)
        let (first, second) = (rig.time.now() + .seconds(86_400), rig.time.now() + .seconds(2 * 86_400))
        for (name, expiry) in [("Ada", second), ("Ada L.", first)] {
            var change = UserChange()
            change.displayName = .some(name)
            change.expiresAt = .some(expiry)
            _ = try await rig.on { [change] relay in
                try await relay.change(username: "ada", change, approval: nil, by: shop, as: relay.operations.new())
            }
        }
        #expect(
            try changes("user.changed", rig) == [
                "display_name": ["before": "Ada", "after": "Ada L."],
                "expires_at": ["before": .string(second.rfc3339), "after": .string(first.rfc3339)],
            ])

        let (id, before) = try await rig.on { relay in
            let row = try await relay.user(named: "ada", of: shop)
            return (row.id, row.expiresAt)
        }
        let store = rig.store
        _ = try await rig.on { relay in
            try await store.run(
                Expiries.set(id, from: before, to: nil, at: rig.time.now(), as: relay.operations.new()))
        }
        #expect(
            try changes("user.expiry", rig) == [
                "expires_at": ["before": .string(first.rfc3339), "after": .null]
            ])

        for name in ["Ada's phone", "Old phone"] {
            _ = try await rig.on { relay in
                try await relay.change(phone.id, ofUser: "ada", name: name, state: nil, by: shop)
            }
        }
        #expect(
            try changes("device.changed", rig) == ["name": ["before": "Ada's phone", "after": "Old phone"]])
        #expect(try await rig.notGenuine() == [])
    }
}
