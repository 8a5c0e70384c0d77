import DeliveryOutcomes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The deadline of a push: an undeliverable push is detected within the first third of the challenge's lifetime, so
/// that another factor has time.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct DeadlineTests {
    /// The ways in which a push service fails to deliver.
    enum Trouble: String, CaseIterable {
        case silence, busy, unavailable, unreachable

        /// Returns the courier's outcome. The courier waits for nine seconds at most, and never beyond `deliverBy`.
        func answer(_ push: Push, _ time: TestTime) -> DeliveryOutcome {
            let patience = max(.zero, min(.seconds(9), push.deliverBy - time.now()))
            switch self {
            case .silence:
                time.advance(by: patience)
                return .ambiguous(reason)
            case .busy: return .retry(after: .seconds(5), reason: reason)
            case .unavailable: return .retry(after: .milliseconds(700), reason: reason)
            case .unreachable:
                time.advance(by: patience)
                return .retry(after: .seconds(1), reason: reason)
            }
        }

        var reason: String {
            switch self {
            case .silence: "no answer"
            case .busy: "TooManyRequests"
            case .unavailable: "ServiceUnavailable"
            case .unreachable: "no connection in time"
            }
        }
    }

    private func login(
        _ rig: RelayRig, living seconds: Int
    ) async throws -> (asked: OpenedChallenge, shop: Website, phone: RelayRig.BoundPhone) {
        let shop = try await rig.website("shop", policies: ["number": "0"])
        let (user, phone, credential) = try await rig.enrolled("ada", at: shop)
        let asked = try await rig.on { relay in
            try await relay.login(
                LoginRequest(subject: .token(user), expiresIn: seconds), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        return (asked, shop, (phone, credential))
    }

    /// Runs one round of the outbox, as the daemon does every second.
    private func processOutbox(_ rig: RelayRig) async throws {
        rig.time.advance(by: .seconds(1))
        try await rig.on { relay in
            await relay.runHeartbeat()
            await relay.processDueEntries()
        }
        await rig.settled()
    }

    @Test(arguments: StoreKind.all, [60, 300, 600])
    func undeliverablePushIsDetectedWithinAThirdOfTheLifetime(kind: StoreKind, life: Int) async throws {
        for trouble in Trouble.allCases {
            let rig = try await RelayRig(kind)
            rig.pushes.answerOtherwise { [time = rig.time] in trouble.answer($0, time) }
            let begun = rig.time.now()
            let (asked, shop, phone) = try await login(rig, living: life)
            let end = begun + .seconds(life / 3)
            var step: ChallengeRow.Step?
            while step?.state != .undeliverable, rig.time.now() <= end {
                try await processOutbox(rig)
                step = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }.steps.first
            }
            #expect(step?.state == .undeliverable && step?.reason == trouble.reason, "\(trouble): \(step as Any)")
            #expect(try #require(step).at <= end, "\(trouble)")
            #expect(try rig.count("SELECT count(*) FROM outbox WHERE kind = 'push'") == 0)
            let sent = rig.pushes.sent
            #expect(Set(sent.map(\.id)).count == 1 && sent.allSatisfy { $0.deliverBy == end }, "\(trouble)")
            // An ambiguous push is sent once more and never again. A push that was not accepted is repeated while
            // there is time.
            #expect(trouble == .silence ? sent.count == 2 : sent.count > 1, "\(trouble)")
            // Nothing else has ended: the phone can still answer.
            let result = try await rig.on { relay in
                try await relay.answer(asked.challenge, PhoneAnswer(approves: true), by: phone.credential)
            }
            #expect(result == .success)
        }
    }

    /// The relay died with the push, so it is unknown whether the phone got it.
    @Test(
        arguments: StoreKind.all,
        [DeliveryOutcome.accepted(by: nil), .retry(after: .seconds(1), reason: "busy"), .ambiguous("lost")])
    func abandonedPushIsRetriedOnce(kind: StoreKind, outcome: DeliveryOutcome) async throws {
        let rig = try await RelayRig(kind)
        rig.pushes.answer(.retry(after: .seconds(1), reason: "busy"))
        let (asked, shop, _) = try await login(rig, living: 60)
        try rig.execute("UPDATE outbox SET holder = x'00000000000000000000000000000001' WHERE kind = 'push'")
        rig.time.advance(by: .seconds(25))
        rig.pushes.answer(outcome)
        for _ in 0..<5 { try await processOutbox(rig) }
        let sent = rig.pushes.sent
        #expect(sent.count == 2)
        #expect(sent.last?.deliverBy == asked.expiresAt - .seconds(60 - 25 - 1 - 9))
        let steps = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }.steps
        #expect(steps.map(\.state) == [outcome == .accepted(by: nil) ? .sent : .undeliverable])
    }

    @Test func lastAttemptEndsWithTheChallenge() {
        let (asked, expires) = (Timestamp(seconds: 1000), Timestamp(seconds: 1100))
        #expect(Push.deliverBy(asked, expires, at: asked) == Timestamp(milliseconds: 1_033_333))
        #expect(Push.deliverBy(asked, expires, at: Timestamp(seconds: 1050)) == Timestamp(seconds: 1059))
        #expect(Push.deliverBy(asked, expires, at: Timestamp(seconds: 1095)) == expires)
    }
}
