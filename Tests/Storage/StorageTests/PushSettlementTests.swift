import Domain
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// The pushes of a challenge, settled by two relays at the same time, and while the challenge ends.
@Suite(.mayBlock) struct PushSettlementTests {
    private static let further = Statement(
        """
        INSERT INTO outbox (id, kind, challenge_id, device_id, due_at, attempts)
        VALUES (:entry, 'push', :challenge, :device, :dueAt, 0)
        """)
    private static let rounds = 100..<140

    private static func settlement(_ entry: Int, of challenge: Int, _ step: StepState) -> PushSettlement {
        let push = Push(
            id: Sample.id(entry), challenge: Sample.id(challenge), user: Sample.id(challenge),
            device: Sample.id(challenge), deviceToken: "token",
            environment: .production, detail: .full, website: "Shop", service: nil, ip: nil, place: nil,
            askedAt: Sample.now, expiresAt: Sample.now + .seconds(300))
        return PushSettlement(of: push, step, step == .sent ? nil : "Unregistered", at: Sample.now)
    }

    private func count(_ condition: String, _ relays: TwoRelays) async throws -> Int64 {
        let sql = "SELECT count(*) AS count FROM step s JOIN challenge c ON c.id = s.challenge_id WHERE \(condition)"
        return try await relays.first.run(Script("test", reads: [Statement(sql)()])).row(0).integer("count")
    }

    /// Each settlement sees that the other push has ended, or leaves the step to the other settlement.
    @Test func lastOfTwoConcurrentFailuresEndsTheStep() async throws {
        let relays = try await TwoRelays()
        let (first, second, operations) = (relays.first, relays.second, relays.operations)
        for number in Self.rounds {
            let push = Self.further(
                entry: .id(Sample.id(number + 5000) as OutboxEntryID), challenge: .id(Sample.id(number) as ChallengeID),
                device: .id(Sample.id(number) as DeviceID), dueAt: .timestamp(Sample.now))
            _ = try await relays.first.run(Script("test", writes: [push]))
            async let one = first.settle(
                Self.settlement(number, of: number, .refused), as: operations.new())
            async let two = second.settle(
                Self.settlement(number + 5000, of: number, .undeliverable), as: operations.new())
            #expect(try await [one, two] == [true, true])
        }
        let failed = try await count("s.state IN ('refused', 'undeliverable')", relays)
        #expect(failed == Int64(Self.rounds.count))
    }

    /// The push is accepted at the moment at which the user answers. The step keeps the state `answered`.
    @Test func answeredChallengeIsNotChangedBySettlement() async throws {
        let relays = try await TwoRelays()
        let (first, second, operations) = (relays.first, relays.second, relays.operations)
        for number in Self.rounds {
            async let sent = first.settle(
                Self.settlement(number, of: number, .sent), as: operations.new())
            async let closed = Sample.approve(number, on: second, as: operations.new())
            _ = try await sent
            #expect(try await closed != nil)
        }
        #expect(try await count("c.state = 'answered' AND s.state = 'answered'", relays) == Int64(Self.rounds.count))
    }

    /// Two relays settle the same push. It gets one outcome, and only one relay learns that it set the outcome.
    @Test func concurrentSettlementsOfAPushApplyOnce() async throws {
        let relays = try await TwoRelays()
        let (first, second, operations) = (relays.first, relays.second, relays.operations)
        for number in Self.rounds {
            async let one = first.settle(
                Self.settlement(number, of: number, .sent), as: operations.new())
            async let two = second.settle(
                Self.settlement(number, of: number, .refused), as: operations.new())
            let (isFirst, isSecond) = try await (one, two)
            #expect(isFirst != isSecond)
            #expect(
                try await count(
                    "c.id = x'\(Sample.id(number) as ChallengeID)' AND s.state = '\(isFirst ? "sent" : "refused")'",
                    relays) == 1)
        }
    }
}
