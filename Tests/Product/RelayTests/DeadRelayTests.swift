import DeliveryOutcomes
import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// Outbox entries after the death of their relay, and after unusual answers of the push service: each is processed,
/// and its outcome is recorded.
@Suite(.mayBlock) struct DeadRelayTests {
    /// Returns a rig with one push that was sent while the service was busy.
    private func rigWithAPushLeft(_ kind: StoreKind) async throws -> RelayRig {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        rig.pushes.answer(.retry(after: .seconds(1), reason: "busy"))
        _ = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        return rig
    }

    @Test(arguments: StoreKind.all) func entriesOfADeadRelayAreDelivered(kind: StoreKind) async throws {
        let rig = try await rigWithAPushLeft(kind)
        // The row of a relay that was declared dead, wrote it nevertheless, and died before its next heartbeat.
        try rig.execute("UPDATE outbox SET holder = x'00000000000000000000000000000001' WHERE kind = 'push'")
        rig.time.advance(by: .seconds(2))
        try await rig.on { relay in
            await relay.runHeartbeat()
            await relay.processDueEntries()
        }
        await rig.settled()
        #expect(rig.pushes.sent.count == 2)
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE kind = 'push'") == 0)
    }

    @Test(arguments: StoreKind.all) func entriesOfALiveRelayAreNotTaken(kind: StoreKind) async throws {
        let rig = try await rigWithAPushLeft(kind)
        let other = "x'00000000000000000000000000000001'"
        try rig.execute("INSERT INTO relay (id, beat, started_at) VALUES (\(other), 0, '2027-01-01 00:00:00.000')")
        try rig.execute("UPDATE outbox SET holder = \(other) WHERE kind = 'push'")
        rig.time.advance(by: .seconds(2))
        try await rig.on { relay in await relay.processDueEntries() }
        await rig.settled()
        #expect(rig.pushes.sent.count == 1)
    }

    @Test(arguments: StoreKind.all) func pushServiceReasonFitsItsColumn(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        // Forty characters in Swift, eighty in the database.
        rig.pushes.answer(.misconfigured(.message, reason: String(repeating: "x\u{301}", count: 40)))
        _ = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE kind = 'push'") == 0)
        #expect(try rig.count("SELECT count(*) FROM step WHERE state = 'undeliverable'") == 1)
    }

    @Test(arguments: StoreKind.all) func newerPushTokenIsKept(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop", policies: ["answers": "website"])
        let (user, _) = try await rig.on { relay in
            try await relay.register(
                Registration(username: "ada", email: nil, phone: nil, displayName: nil, language: nil), by: shop,
                as: relay.operations.new())
        }
        let bind: @Sendable (String) async throws -> Void = { token in
            _ = try await rig.on { relay in
                try await relay.bind(token: user, pushToken: token, by: shop, as: relay.operations.new())
            }
        }
        try await bind("old")
        rig.pushes.answer(.retry(after: .seconds(1), reason: "busy"))
        _ = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        let sent = try #require(rig.pushes.sent.first)
        // The push to the old token is in flight when the new token arrives.
        try await bind("new")
        rig.pushes.answer(.unregistered(since: nil, reason: "BadDeviceToken"))
        try await rig.on { relay in await relay.deliver(sent.again) }
        #expect(try rig.count("SELECT count(*) FROM device WHERE push_token = 'new'") == 1)
        // The token that the service reported as dead is dropped.
        _ = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        rig.pushes.answer(.unregistered(since: nil, reason: "BadDeviceToken"))
        _ = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        #expect(try rig.count("SELECT count(*) FROM device WHERE push_token = ''") == 1)
    }
}
