import DeliveryOutcomes
import EventLoop
import FakePushServices
import HTTP2
import JSON
import Log
import Pushes
import TestSupport
import Testing
import World

/// The sender with a service that checks every request, over TLS and HTTP/2.
@Suite(.serialized) struct SenderTests {
    @Test(arguments: [Rig.Kind.token, .certificate]) func pushArrivesAtTheService(kind: Rig.Kind) async throws {
        try await Rig.with(kind) { rig in
            let push = rig.push()
            #expect(await rig.send(push) == .accepted(by: nil))
            let received = try await rig.apple.next()
            #expect(received.deviceToken == Sample.token)
            #expect(received.id == push.id)
            #expect(received.topic == rig.team.topic)
            #expect(received.pushType == "alert")
            #expect(received.priority == 10)
            #expect(received.collapseID == Sample.collapseID)
            #expect(received.expiration == push.expiresAt.seconds)
            #expect(received.challenge == Sample.collapseID)
            #expect(received.alert["title"] == "Example Bank")
            #expect((received.providerToken != nil) == (kind == .token))
            #expect(rig.sender.fault == nil)
        }
    }

    @Test func concurrentPushesShareOneConnectionAndToken() async throws {
        try await Rig.with { rig in
            let outcomes = try await withThrowingTaskGroup(of: DeliveryOutcome.self) { group in
                for number in 0..<200 {
                    let push = rig.push(number: UInt64(number))
                    group.addTask { await rig.send(push) }
                }
                return try await group.reduce(into: [DeliveryOutcome]()) { $0.append($1) }
            }
            #expect(outcomes.allSatisfy { $0 == .accepted(by: nil) })
            #expect(rig.apple.acceptedCount == 200)
            var ids: Set<String> = []
            var tokens: Set<String?> = []
            for _ in 0..<200 {
                let received = try await rig.apple.next()
                ids.insert(received.id)
                tokens.insert(received.providerToken)
            }
            #expect(ids.count == 200)
            #expect(tokens.count == 1)
            #expect(rig.count("apns.connected") == 1)
        }
    }

    @Test func eachLoopOpensItsOwnConnection() async throws {
        try await Rig.with { rig in
            #expect(await rig.send(rig.push(), on: 1) == .accepted(by: nil))
            #expect(await rig.send(rig.push(), on: 2) == .accepted(by: nil))
            #expect(await rig.send(rig.push(), on: 1) == .accepted(by: nil))
            #expect(rig.count("apns.connected") == 2)
            // Both connections use the same provider token.
            let tokens = [try await rig.apple.next().providerToken, try await rig.apple.next().providerToken]
            #expect(tokens[0] == tokens[1])
        }
    }

    @Test func warmedSenderConnectsBeforeTheFirstPush() async throws {
        try await Rig.with { rig in
            await rig.loops[1].perform { rig.sender.connectEagerly() }
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            #expect(rig.count("apns.connected") == 1)
        }
    }

    @Test func malformedTokenIsNotSent() async throws {
        try await Rig.with { rig in
            let outcome = await rig.send(rig.push("not-hex"))
            #expect(outcome == .misconfigured(.message, reason: "the device token is not hexadecimal"))
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            let first = try await rig.apple.nextRequest()
            #expect(first.path == "/3/device/" + Sample.token)
        }
    }

    @Test func expiredPushIsNotSent() async throws {
        try await Rig.with { rig in
            #expect(
                await rig.send(rig.push("ee", lives: .zero)) == .retry(after: .seconds(1), reason: "expired unsent"))
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            let first = try await rig.apple.nextRequest()
            #expect(first.path == "/3/device/" + Sample.token)
        }
    }

    @Test func fullQueueRefusesWithAReason() async throws {
        var options = PushOptions.patient
        options.capacity = 1
        var limits = FakePushService.limits
        limits.drain = .milliseconds(1)
        limits.streams = 1
        try await Rig.with(limits: limits, options: options) { rig in
            rig.apple.script("5e", .silence)
            async let first = rig.send(rig.push("5e"))
            // The service records a request when it arrives, so this push is in flight.
            _ = try await rig.apple.nextRequest()
            let second = await rig.begin(rig.push())
            #expect(await rig.send(rig.push()) == .retry(after: .seconds(1), reason: "1 pushes are already queued"))
            #expect(rig.sender.snapshot().queued == 1)
            await rig.apple.stop()
            guard case .ambiguous = await first else {
                Issue.record("it was sent")
                return
            }
            try await rig.apple.start()
            #expect(await second.outcome() == .accepted(by: nil), "it has waited all the time")
        }
    }

    @Test func logContainsNoTokens() async throws {
        try await Rig.with { rig in
            rig.apple.script("a1", .refuse(.unregistered), .refuse(.badTopic), .refuse(.internalServerError))
            for _ in 0..<4 { _ = await rig.send(rig.push()) }
            #expect(rig.count("apns.refused") >= 2)
            for line in rig.sink.lines {
                #expect(!line.contains(Sample.token) && !line.contains("eyJ") && !line.contains("Example Bank"))
            }
        }
    }
}
