import Domain
import Relay
import TestSupport
import Testing

/// Answers of several phones at the same time: one of them decides, and all phones and the website
/// get the same result.
@Suite(.timeLimit(.minutes(30)), .mayBlock) struct DecisionRaceTests {
    /// The 1000 rounds are four cases with a store each, because each round reads the user's earlier
    /// challenges.
    @Test(arguments: StoreKind.all, 1...4)
    func concurrentApproveAndDenyGiveOneEnd(kind: StoreKind, part: Int) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop", policies: ["number": "0", "login-limit": "1000"])
        let (user, _, phone) = try await rig.enrolled("ada", at: shop)
        for _ in 0..<250 {
            let asked = try await rig.on { relay in
                try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
            }
            typealias Answer = Result<ChallengeLife.Result, Refusal>
            let answers: [Answer] = await withTaskGroup(of: Answer.self) { group in
                for decision in [Decision.approve, .deny] {
                    group.addTask {
                        do {
                            return .success(
                                try await rig.on { relay in
                                    try await relay.answer(
                                        asked.challenge, PhoneAnswer(approves: decision == .approve), by: phone)
                                })
                        } catch {
                            return .failure(error as? Refusal ?? .broken)
                        }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            let reported = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
            let won = answers.compactMap { try? $0.get() }
            #expect(won == [reported.result])
            #expect(answers.contains(.failure(.alreadyDecided(result: reported.result.rawValue))))
        }
        let ends = try rig.count("SELECT count(*) FROM audit WHERE event = 'challenge.answered'")
        #expect(ends == 250)
    }

    /// Approve, deny and fraud from three phones: one of them decides, and all get the same result.
    ///
    /// The 1000 rounds are four cases with a store each, because each round reads the user's earlier
    /// challenges.
    @Test(arguments: [StoreKind.file, .mariadb], 1...4)
    func concurrentAnswersOfThreePhonesGiveOneEnd(kind: StoreKind, part: Int) async throws {
        let fixture = try await ThreePhonesFixture(kind, policies: ["push-limit": "1"])
        let rig = fixture.rig
        let phones: [(Decision, RelayRig.BoundPhone)] = [
            (.approve, fixture.first), (.deny, fixture.second), (.fraud, fixture.third),
        ]
        var wins: [Decision: Int64] = [:]
        let rounds = 250
        for round in 0..<rounds {
            // The number of challenges that count against the limits stays low.
            rig.time.advance(by: .seconds(20))
            let asked = try await fixture.ask()
            let shown = try await rig.shown(asked.challenge, to: fixture.first.credential)
            // Each phone is first in a third of the rounds.
            let order = (0..<3).map { phones[($0 + round) % 3] }
            typealias Outcome = (decision: Decision, result: Result<ChallengeLife.Result, Refusal>)
            let outcomes = try await withThrowingTaskGroup(of: Outcome.self) { group in
                for (decision, bound) in order {
                    let signed = try bound.phone.decision(
                        decision.rawValue, about: shown, device: bound.credential.id.text, origin: RelayRig.origin,
                        number: decision == .approve ? "47" : nil, at: rig.time.now())
                    let answer = PhoneAnswer(approves: decision == .approve, signed: signed)
                    group.addTask {
                        do {
                            let result = try await rig.on { relay in
                                try await relay.answer(asked.challenge, answer, by: bound.credential)
                            }
                            return (decision, .success(result))
                        } catch {
                            return (decision, .failure(error as? Refusal ?? .broken))
                        }
                    }
                }
                return try await group.reduce(into: [Outcome]()) { $0.append($1) }
            }
            let reported = try await fixture.reported(asked)
            let winners = outcomes.filter { (try? $0.result.get()) != nil }
            try #require(winners.count == 1, "\(outcomes)")
            let winner = winners[0].decision
            #expect(try winners[0].result.get() == reported.result)
            #expect(reported.result == (winner == .approve ? .success : .failure))
            #expect(reported.reason == [.deny: .denied, .fraud: .fraud][winner])
            #expect(reported.device == phones.first { $0.0 == winner }?.1.credential.id)
            for loser in outcomes where loser.decision != winner {
                guard case .failure(.alreadyDecided(let result)) = loser.result else {
                    Issue.record("\(loser) after \(winner)")
                    continue
                }
                #expect(result == reported.result.rawValue)
            }
            // A fraud report counts even if another answer was first. The unlock fails unless the user is frozen,
            // and a frozen user could not be asked in the next round.
            try await fixture.unlock()
            wins[winner, default: 0] += 1
        }
        for decision in Decision.allCases {
            let audited = try rig.count(
                """
                SELECT count(*) FROM audit WHERE event = 'challenge.answered' AND outcome = '\(decision.rawValue)'
                AND proof = 'signed'
                """)
            #expect(audited == wins[decision, default: 0])
            let stored = try rig.count("SELECT count(*) FROM challenge WHERE decision = '\(decision.rawValue)'")
            #expect(stored == audited)
        }
        #expect(wins.values.reduce(0, +) == Int64(rounds))
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'user.frozen'") == Int64(rounds))
        #expect(try rig.count("SELECT sum(failures) FROM device") == 0)
    }

    /// The right number and a wrong one, from two phones.
    @Test(arguments: [StoreKind.file, .mariadb]) func concurrentWrongAndRightNumbersGiveOneEnd(kind: StoreKind)
        async throws
    {
        let fixture = try await ThreePhonesFixture(kind, policies: ["guesses": "100"])
        let rig = fixture.rig
        var wrongs: Int64 = 0
        for round in 0..<200 {
            let asked = try await fixture.ask()
            let both = [("47", fixture.first), ("48", fixture.second)]
            let ends = await withTaskGroup(of: ChallengeLife.Result?.self) { group in
                for (number, phone) in round.isMultiple(of: 2) ? both : both.reversed() {
                    group.addTask {
                        try? await rig.decide(.approve, asked.challenge, number: number, by: phone)
                    }
                }
                return await group.reduce(into: []) { $0 += [$1].compactMap { $0 } }
            }
            let reported = try await fixture.reported(asked)
            #expect(ends == [reported.result])
            #expect(reported.reason == (reported.result == .success ? nil : .wrongNumber))
            if reported.result == .failure { wrongs += 1 }
            #expect(try rig.count("SELECT max(failures) FROM device") == (reported.result == .failure ? 1 : 0))
            // The delay is over, and the count starts again.
            rig.time.advance(by: .seconds(5))
            try rig.execute("UPDATE device SET failures = 0, failed_at = NULL")
        }
        let counted = try rig.count("SELECT count(*) FROM challenge WHERE reason = 'wrong_number'")
        #expect(counted == wrongs)
    }
}
