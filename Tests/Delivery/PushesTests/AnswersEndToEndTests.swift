import Crypto
import DeliveryOutcomes
import EventLoop
import FakePushServices
import HTTP
import Pushes
import TLS
import Testing
import World

/// One answer of each class over the wire, and its effect.
@Suite(.serialized) struct AnswersEndToEndTests {
    @Test(arguments: RefusalReason.apple.filter { [404, 405, 413].contains($0.status) } + [.badTopic, .payloadEmpty])
    func invalidRequestIsReportedAsBadRequest(reason: RefusalReason) async throws {
        try await Rig.with { rig in
            rig.apple.script("a1", .refuse(reason))
            #expect(await rig.send(rig.push()) == .misconfigured(.message, reason: reason.rawValue))
            #expect(rig.count("apns.refused") == 1)
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            #expect(rig.count("apns.connected") == 1)
        }
    }

    @Test func unregisteredTokenIsDeadSinceTheTimestamp() async throws {
        try await Rig.with { rig in
            let since = Timestamp(milliseconds: 1_600_000_000_123)
            rig.apple.script("a1", .refuse(.unregistered, timestamp: since))
            #expect(await rig.send(rig.push()) == .unregistered(since: since, reason: "Unregistered"))
        }
    }

    @Test func badTokenIsDeadSinceItWasSent() async throws {
        try await Rig.with { rig in
            rig.apple.script("a1", .refuse(.badDeviceToken))
            let before = rig.time.now()
            guard case .unregistered(let since?, "BadDeviceToken") = await rig.send(rig.push()) else {
                Issue.record("not taken for dead")
                return
            }
            #expect((before...rig.time.now()).contains(since))
        }
    }

    @Test(arguments: [RefusalReason.badDeviceToken, .deviceTokenNotForTopic])
    func manyBadTokensAreReportedAsMisconfiguration(reason: RefusalReason) async throws {
        try await Rig.with { rig in
            rig.apple.script("a1", .refuse(reason), repeatsLast: true)
            for _ in 0..<5 {
                guard case .unregistered = await rig.send(rig.push()) else {
                    Issue.record("not taken for dead")
                    return
                }
            }
            #expect(await rig.send(rig.push()) == .misconfigured(.message, reason: reason.rawValue))
            #expect(await rig.send(rig.push("b2")) == .accepted(by: nil))
            guard case .unregistered = await rig.send(rig.push()) else {
                Issue.record("an accepted push ends the suspicion")
                return
            }
        }
    }

    @Test func tooManyRequestsForADeviceDelaysIt() async throws {
        try await Rig.with { rig in
            rig.apple.script("a1", .refuse(.tooManyRequests))
            #expect(
                await rig.send(rig.push()) == .retry(after: .seconds(20), reason: "TooManyRequests"))
            #expect(await rig.send(rig.push("b2")) == .accepted(by: nil))
            #expect(rig.count("apns.connected") == 1)
        }
    }

    @Test(arguments: [
        RefusalReason.internalServerError, .serviceUnavailable, .shutdown, .idleTimeout, .unrelatedKeyIDInToken,
    ])
    func serverErrorIsRetriedOnAnotherConnection(reason: RefusalReason) async throws {
        try await Rig.with { rig in
            rig.apple.script("a1", .refuse(reason))
            let push = rig.push()
            #expect(await rig.send(push) == .accepted(by: nil))
            let first = try await rig.apple.nextRequest()
            let second = try await rig.apple.nextRequest()
            #expect(first.outcome == .refused(reason))
            #expect(second.outcome == .accepted)
            #expect(first.push?.id == second.push?.id)
            #expect(rig.count("apns.connected") == 2)
        }
    }

    @Test func persistentServerErrorReturnsRetryAfter() async throws {
        try await Rig.with { rig in
            rig.apple.script("a1", .refuse(.serviceUnavailable), repeatsLast: true)
            #expect(
                await rig.send(rig.push()) == .unavailable(after: .seconds(5), reason: "ServiceUnavailable"))
            #expect(rig.apple.acceptedCount == 0)
            _ = try await rig.apple.nextRequest()
            _ = try await rig.apple.nextRequest()
            rig.apple.script("a1")
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            #expect(try await rig.apple.nextRequest().outcome == .accepted, "two requests, not more")
        }
    }

    @Test(arguments: [RefusalReason.invalidProviderToken, .forbidden, .topicDisallowed, .badCertificate])
    func refusedCredentialStopsSending(reason: RefusalReason) async throws {
        let time = ManualTime(SystemTime().now())
        try await Rig.with(time: time) { rig in
            rig.apple.script("a1", .refuse(reason))
            let fault = DeliveryOutcome.misconfigured(.service, reason: reason.rawValue)
            #expect(await rig.send(rig.push()) == fault)
            #expect(await rig.send(rig.push("b2")) == fault, "other phones would be refused alike")
            #expect(rig.sender.fault == reason.rawValue)
            #expect(rig.count("apns.credential.refused") == 1)
            #expect(rig.apple.acceptedCount == 0)
            time.advance(by: .seconds(30))
            #expect(await rig.send(rig.push("b2")) == .accepted(by: nil))
            #expect(rig.sender.fault == nil)
            #expect(rig.count("apns.credential.accepted") == 1)
            _ = try await rig.apple.nextRequest()
            #expect(try await rig.apple.nextRequest().outcome == .accepted, "nothing came in between")
        }
    }

    @Test func wrongKeyIsACredentialFault() async throws {
        try await Rig.with { rig in
            let other = try FakeTeam(at: rig.time.now())
            let sender = try APNsSender(
                endpoint: PushEndpoint(host: "127.0.0.1", port: rig.apple.port), topic: rig.team.topic,
                credential: .token(key: other.key, keyID: rig.team.keyID, teamID: rig.team.teamID),
                trust: .pem(try rig.team.authority.certificatePEM()), time: rig.time, randomness: SystemRandomness(),
                log: rig.senderLog)
            let push = rig.push()
            let outcome = await rig.loops[1].perform { await sender.send(push) }
            #expect(outcome == .misconfigured(.service, reason: "InvalidProviderToken"))
            sender.close()
        }
    }

    @Test func expiredProviderTokenIsReplacedOnceOnANewConnection() async throws {
        // Both clocks agree that the first token was made half an hour ago.
        let time = ManualTime(SystemTime().now() - .seconds(1800))
        try await Rig.with(time: time) { rig in
            time.advance(by: .seconds(1800))
            rig.apple.script("a1", .refuse(.expiredProviderToken))
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            let first = try await rig.apple.nextRequest()
            let second = try await rig.apple.nextRequest()
            #expect(first.push?.providerToken != second.push?.providerToken)
            #expect(rig.count("apns.token.minted") == 1)
            #expect(rig.count("apns.connected") == 2)
        }
    }

    @Test func youngProviderTokenIsNotReplaced() async throws {
        try await Rig.with { rig in
            rig.apple.script("a1", .refuse(.expiredProviderToken))
            #expect(
                await rig.send(rig.push())
                    == .misconfigured(.service, reason: "ExpiredProviderToken: check the clock"))
            #expect(rig.count("apns.token.minted") == 0)
        }
    }

    @Test func tooManyTokenUpdatesMintNoNewToken() async throws {
        let time = ManualTime(SystemTime().now() - .seconds(2800))
        try await Rig.with(time: time, tokenUpdates: 1) { rig in
            #expect(await rig.send(rig.push()) == .accepted(by: nil))
            time.advance(by: .seconds(2800))
            #expect(await rig.send(rig.push()) == .accepted(by: nil), "with the old one, and asks for a new one")
            let refused = await rig.send(rig.push())
            #expect(refused == .retry(after: .seconds(30), reason: "TooManyProviderTokenUpdates"))
            #expect(await rig.send(rig.push()) == .accepted(by: nil), "with the old one again")
            #expect(rig.count("apns.token.minted") == 1)
        }
    }

    @Test func malformedAnswerIsNotSuccess() async throws {
        try await Rig.with { rig in
            rig.apple.script("a1", .respond(Response(status: 204)), .respond(Response(status: 302)))
            #expect(await rig.send(rig.push()) == .misconfigured(.message, reason: "204"))
            #expect(await rig.send(rig.push()) == .misconfigured(.message, reason: "302"))
        }
    }
}
