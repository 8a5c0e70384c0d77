import DeliveryOutcomes
import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// The judgement of push services, without a relay.
@Suite struct PushOutagesTests {
    private static let failures: [DeliveryOutcome] = [
        .unavailable(after: nil, reason: "503"), .ambiguous("no answer in time"),
    ]
    private static let answers: [DeliveryOutcome] = [
        .accepted(by: nil), .unregistered(since: nil, reason: "Unregistered"),
    ]
    /// Outcomes that a user can cause, or that are a fault of the relay.
    private static let neutral: [DeliveryOutcome] = [
        .retry(after: nil, reason: "TooManyRequests"), .declined("403"), .misconfigured(.message, reason: "BadTopic"),
        .misconfigured(.service, reason: "InvalidProviderToken"),
    ]
    private static let apple = PushService.configured(host: "push.example", isUnreachable: false)
    private static let other = PushService.configured(host: "other.example", isUnreachable: false)

    private func at(_ seconds: Int64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

    private func push(_ user: Int, device: Int? = nil) -> Push { .sample(user: user, device: device ?? user) }

    private func isDown(
        _ outages: inout PushOutages, _ service: PushService = apple, user: Int = 999, at now: Int64 = 0
    ) -> Bool {
        outages.isDown(service, for: push(user), at: at(now)).isDown
    }

    @Test(arguments: Self.failures) func twentyUsersMakeAnOutage(failure: DeliveryOutcome) {
        var outages = PushOutages()
        for user in 1..<20 {
            #expect(outages.note(failure, of: push(user), by: Self.apple, at: at(0)) == nil)
            #expect(!isDown(&outages))
        }
        #expect(
            outages.note(failure, of: push(20), by: Self.apple, at: at(7)) == .began(host: "push.example", users: 20))
        #expect(isDown(&outages, at: 7) && !isDown(&outages, Self.other, at: 7))
        #expect(outages.count == 1)
    }

    @Test(arguments: Self.failures) func oneUserWithManyPhonesMakesNone(failure: DeliveryOutcome) {
        var outages = PushOutages()
        for phone in 0..<200 {
            #expect(outages.note(failure, of: push(1, device: phone), by: Self.apple, at: at(0)) == nil)
        }
        #expect(!isDown(&outages))
    }

    @Test(arguments: Self.answers) func answerOfTheServiceBeginsTheCountAnew(answer: DeliveryOutcome) {
        var outages = PushOutages()
        for round in 0..<3 {
            for user in 0..<19 {
                _ = outages.note(Self.failures[0], of: push(100 * round + user), by: Self.apple, at: at(0))
            }
            #expect(!isDown(&outages))
            #expect(outages.note(answer, of: push(1), by: Self.apple, at: at(0)) == nil)
        }
    }

    @Test(arguments: Self.neutral) func outcomeOfOnePushAloneSaysNothing(outcome: DeliveryOutcome) {
        var outages = PushOutages()
        for user in 0..<100 { #expect(outages.note(outcome, of: push(user), by: Self.apple, at: at(0)) == nil) }
        #expect(!isDown(&outages))
        // It does not end an outage either.
        for user in 0..<20 { _ = outages.note(Self.failures[0], of: push(user), by: Self.apple, at: at(0)) }
        _ = outages.note(outcome, of: push(1), by: Self.apple, at: at(0))
        #expect(isDown(&outages))
    }

    @Test(arguments: Self.answers) func firstAnswerEndsTheOutage(answer: DeliveryOutcome) {
        var outages = PushOutages()
        for user in 0..<20 { _ = outages.note(Self.failures[0], of: push(user), by: Self.apple, at: at(10)) }
        for _ in 0..<7 { outages.countLogin(at: Self.apple) }
        let end = outages.note(answer, of: push(3), by: Self.apple, at: at(100))
        #expect(end == .ended(host: "push.example", after: .seconds(90), logins: 7))
        #expect(!isDown(&outages, at: 100) && outages.count == 0)
    }

    /// After a quiet time the next push is waited for, and the first failure shows that nothing has
    /// changed.
    @Test func outageIsKnownForFiveMinutesAfterTheLastFailure() {
        var outages = PushOutages()
        for user in 0..<20 { _ = outages.note(Self.failures[0], of: push(user), by: Self.apple, at: at(0)) }
        #expect(isDown(&outages, at: 299))
        let late = outages.isDown(Self.apple, for: push(1), at: at(300))
        #expect(!late.isDown && late.change == .ended(host: "push.example", after: .seconds(300), logins: 0))
        let again = outages.note(Self.failures[0], of: push(1), by: Self.apple, at: at(301))
        #expect(again == .began(host: "push.example", users: 20))
        #expect(isDown(&outages, at: 301))
    }

    @Test func unreachableHostIsDownAtOnceAndUpAtOnce() {
        var outages = PushOutages()
        let unreachable = PushService.configured(host: "push.example", isUnreachable: true)
        let found = outages.isDown(unreachable, for: push(1), at: at(1))
        #expect(found.isDown && found.change == .began(host: "push.example", users: 0))
        #expect(outages.isDown(unreachable, for: push(2), at: at(2)).change == nil)
        let end = outages.isDown(Self.apple, for: push(1), at: at(5))
        #expect(!end.isDown && end.change == .ended(host: "push.example", after: .seconds(4), logins: 0))
    }

    @Test func chosenServiceAffectsItsOwnDeviceAlone() {
        var outages = PushOutages()
        for user in 0..<100 {
            #expect(outages.note(Self.failures[0], of: push(user), by: .chosen, at: at(0)) == nil)
            #expect(isDown(&outages, .chosen, user: user))
        }
        #expect(!isDown(&outages, .chosen, user: 100) && !isDown(&outages) && outages.count == 0)
        _ = outages.note(.accepted(by: nil), of: push(5), by: .chosen, at: at(0))
        #expect(!isDown(&outages, .chosen, user: 5) && isDown(&outages, .chosen, user: 6))
        #expect(!isDown(&outages, .chosen, user: 6, at: 300))
    }

    /// Neither many devices with dead services of their own nor many outcomes take more memory.
    @Test func memoryIsBounded() {
        var outages = PushOutages()
        for device in 0..<(PushOutages.mostDevices + 100) {
            _ = outages.note(Self.failures[0], of: push(device), by: .chosen, at: at(0))
        }
        #expect(isDown(&outages, .chosen, user: PushOutages.mostDevices - 1))
        #expect(!isDown(&outages, .chosen, user: PushOutages.mostDevices))
        // Failures that are too old make room for others.
        let last = PushOutages.mostDevices + 200
        _ = outages.note(Self.failures[0], of: push(last), by: .chosen, at: at(301))
        #expect(isDown(&outages, .chosen, user: last, at: 301))
    }

    /// Compares the judgement with one that remembers everything.
    @Test(arguments: 0..<50) func judgementFollowsTheWholeHistory(seed: UInt64) {
        let chance = SeededRandomness(seed: seed)
        var outages = PushOutages()
        var failed: Set<Int> = []
        var (last, now) = (Int64.min / 2, Int64(0))
        for _ in 0..<2000 {
            now += Int64(chance.number(below: chance.number(below: 200) == 0 ? 400 : 3))
            let user = Int(chance.number(below: 40))
            switch chance.number(below: 30) {
            case 0:
                _ = outages.note(
                    Self.answers[Int(chance.number(below: 2))], of: push(user), by: Self.apple, at: at(now))
                failed = []
            case 1...4:
                let outcome = Self.neutral[Int(chance.number(below: 4))]
                _ = outages.note(outcome, of: push(user), by: Self.apple, at: at(now))
            case 5...8:
                // A service that a user has chosen never matters for a host of the settings.
                _ = outages.note(Self.failures[0], of: push(user), by: .chosen, at: at(now))
            default:
                _ = outages.note(
                    Self.failures[Int(chance.number(below: 2))], of: push(user), by: Self.apple, at: at(now))
                failed.insert(user)
                last = now
            }
            let expected = failed.count >= 20 && now - last < 300
            #expect(isDown(&outages, at: now) == expected, "seed \(seed) at \(now)")
        }
    }
}

extension Push {
    /// A push to a phone of a user, both named by a number.
    static func sample(user: Int, device: Int) -> Push {
        let now = Timestamp(seconds: 1_800_000_000)
        return Push(
            id: id(device), challenge: id(device), user: id(user), device: id(device), deviceToken: "token",
            environment: .production, detail: .full, website: "The Shop", service: nil, ip: nil, place: nil,
            askedAt: now, expiresAt: now + .seconds(300))
    }

    private static func id<Kind>(_ number: Int) -> Identifier<Kind> {
        let bytes = (0..<8).map { UInt8(number >> (56 - $0 * 8) & 0xff) }
        guard let id = Identifier<Kind>([UInt8](repeating: 0, count: 8) + bytes) else { fatalError("not 16 bytes") }
        return id
    }
}
