import Bytes
import Crypto
import Domain
import JSON
import Relay
import TestSupport
import Testing
import World

/// Signed decisions: each decides once, and reaches the website with everything that proves it.
@Suite(.timeLimit(.minutes(30)), .mayBlock) struct DecisionTests {
    @Test(arguments: StoreKind.all) func websiteReceivesTheSignedDecision(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        let signed = try await fixture.rig.signed(.approve, asked.challenge, number: "47", by: fixture.first)
        let answer = PhoneAnswer(approves: true, signed: signed)
        #expect(try await fixture.rig.post(answer, asked.challenge, by: fixture.first) == .success)
        let reported = try await fixture.reported(asked)
        #expect(reported.result == .success && reported.proof == .signed && reported.assurance == .high)
        #expect(reported.receipt == signed && reported.device == fixture.first.credential.id)
        // Verified with what the website has: the pinned key and the context.
        let receipt = try JWS.parse(try #require(reported.receipt))
        #expect(receipt.verify(fixture.first.phone.key.publicKey))
        let claims = try #require(try JSONReader.read(receipt.payload).object)
        #expect(claims["context"]?.string == Base64URL.encode(SHA256.hash(reported.context)))
        #expect(claims["request"] == "r-1" && claims["number"] == "47" && claims["decision"] == "approve")
        #expect(
            try fixture.rig.count(
                "SELECT count(*) FROM audit WHERE event = 'challenge.answered' AND proof = 'signed'") == 1)
    }

    @Test(arguments: StoreKind.all) func denialNeedsOnlyASignature(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["min-uv": "biometric"])
        let asked = try await fixture.ask()
        #expect(try await fixture.rig.decide(.deny, asked.challenge, by: fixture.first) == .failure)
        let reported = try await fixture.reported(asked)
        #expect(
            reported.reason == .denied && reported.proof == .signed && reported.receipt != nil
                && reported.assurance == nil)
        #expect(try fixture.rig.count("SELECT sum(failures) FROM device") == 0)
    }

    // MARK: User verification

    @Test(arguments: StoreKind.all) func insufficientUserVerificationIsRefusedAndCanBeRetried(kind: StoreKind)
        async throws
    {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["min-uv": "passcode"])
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        let untouched = try await fixture.state(asked)
        let refusal = await #expect(throws: Refusal.self) {
            try await fixture.rig.decide(.approve, asked.challenge, number: "47", by: fixture.first)
        }
        guard case .forbidden(let why) = refusal else {
            throw RigFailure("refused with \(String(describing: refusal))")
        }
        #expect(why.english.contains("passcode") && why.english.contains("none"))
        #expect(try await fixture.state(asked) == untouched)
        #expect(try fixture.refusals(.verification, by: fixture.first, about: asked.challenge) == 1)
        let again = try await fixture.rig.decide(
            .approve, asked.challenge, number: "47", uv: .biometric, by: fixture.first)
        #expect(again == .success)
    }

    /// A plain answer does not state user verification, so it is not enough for `min-uv`.
    @Test func onlySignedAnswersStateUserVerification() async throws {
        let fixture = try await TwoWebsitesFixture(.memory, policies: ["answers": "certificate", "min-uv": "passcode"])
        let asked = try await fixture.ask()
        await #expect(throws: Refusal.self) {
            try await fixture.rig.post(
                PhoneAnswer(approves: true, number: "47"), asked.challenge, by: fixture.first)
        }
        #expect(try fixture.refusals(.verification, by: fixture.first, about: asked.challenge) == 1)
        #expect(
            try await fixture.rig.post(PhoneAnswer(approves: false), asked.challenge, by: fixture.first) == .failure)
    }

    @Test(arguments: UserVerification.allCases, ["0", "2"])
    func assuranceIsHighWithNumberOrUserVerification(uv: UserVerification, number: String) async throws {
        let fixture = try await TwoWebsitesFixture(.memory, policies: ["number": number])
        let asked = try await fixture.ask(number: nil)
        let result = try await fixture.rig.decide(
            .approve, asked.challenge, number: asked.number, uv: uv, by: fixture.first)
        #expect(result == .success)
        let isHigh = number == "2" || uv != .none
        #expect(try await fixture.reported(asked).assurance == (isHigh ? .high : .substantial))
        #expect(try fixture.rig.count("SELECT count(*) FROM challenge WHERE uv = '\(uv.rawValue)'") == 1)
    }

    // MARK: Concurrent answers

    /// Approve, deny and fraud from three phones: one of them decides, and all get the same result.
    ///
    /// The 1000 rounds are four cases with a store each, because each round reads the user's earlier
    /// challenges.
    @Test(arguments: [StoreKind.file, .mariadb], 1...4)
    func concurrentAnswersOfThreePhonesGiveOneEnd(kind: StoreKind, part: Int) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["push-limit": "1"])
        let rig = fixture.rig
        let third = try await rig.further(of: "ada", fixture.ada, at: fixture.shop)
        let phones: [(Decision, RelayRig.BoundPhone)] = [
            (.approve, fixture.first), (.deny, fixture.second), (.fraud, third),
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
        let fixture = try await TwoWebsitesFixture(kind, policies: ["guesses": "100"])
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
