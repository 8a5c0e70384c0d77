import Bytes
import Crypto
import Domain
import JSON
import Relay
import TestSupport
import Testing
import World

/// What a phone signs decides, once, and comes to the website with everything that proves it.
@Suite(.timeLimit(.minutes(30)), .mayBlock) struct DecisionTests {
    @Test(arguments: StoreKind.all) func websiteReceivesTheSignedDecision(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        let signed = try await cast.rig.signed(.approve, asked.challenge, number: "47", by: cast.first)
        let answer = PhoneAnswer(approves: true, signed: signed)
        #expect(try await cast.rig.post(answer, asked.challenge, by: cast.first) == .success)
        let told = try await cast.told(asked)
        #expect(told.result == .success && told.proof == .signed && told.assurance == .high)
        #expect(told.receipt == signed && told.device == cast.first.credential.id)
        // By what the website has: the key it pinned, and the context.
        let receipt = try JWS.parse(try #require(told.receipt))
        #expect(receipt.verify(cast.first.phone.key.publicKey))
        let claims = try #require(try JSONReader.read(receipt.payload).object)
        #expect(claims["context"]?.string == Base64URL.encode(SHA256.hash(told.context)))
        #expect(claims["request"] == "r-1" && claims["number"] == "47" && claims["decision"] == "approve")
        #expect(
            try cast.rig.count(
                "SELECT count(*) FROM audit WHERE event = 'challenge.answered' AND proof = 'signed'") == 1)
    }

    @Test(arguments: StoreKind.all) func denialNeedsOnlyASignature(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind, policies: ["min-uv": "biometric"])
        let asked = try await cast.ask()
        #expect(try await cast.rig.decide(.deny, asked.challenge, by: cast.first) == .failure)
        let told = try await cast.told(asked)
        #expect(told.reason == .denied && told.proof == .signed && told.receipt != nil && told.assurance == nil)
        #expect(try cast.rig.count("SELECT sum(failures) FROM device") == 0)
    }

    // MARK: How the phone made sure of its owner

    @Test(arguments: StoreKind.all) func insufficientUserVerificationIsRefusedAndCanBeRetried(kind: StoreKind)
        async throws
    {
        let cast = try await TwoWebsitesFixture(kind, policies: ["min-uv": "passcode"])
        let asked = try await cast.ask()
        await cast.rig.settled()
        let untouched = try await cast.state(asked)
        let refusal = await #expect(throws: Refusal.self) {
            try await cast.rig.decide(.approve, asked.challenge, number: "47", by: cast.first)
        }
        guard case .forbidden(let why) = refusal else {
            throw RigFailure("refused with \(String(describing: refusal))")
        }
        #expect(why.contains("passcode") && why.contains("none"))
        #expect(try await cast.state(asked) == untouched)
        #expect(try cast.refusals(.verification, by: cast.first, about: asked.challenge) == 1)
        let again = try await cast.rig.decide(.approve, asked.challenge, number: "47", uv: .biometric, by: cast.first)
        #expect(again == .success)
    }

    /// A plain answer says nothing about its owner, and that is not enough.
    @Test func onlySignedAnswersStateUserVerification() async throws {
        let cast = try await TwoWebsitesFixture(.memory, policies: ["answers": "certificate", "min-uv": "passcode"])
        let asked = try await cast.ask()
        await #expect(throws: Refusal.self) {
            try await cast.rig.post(
                PhoneAnswer(approves: true, number: "47"), asked.challenge, by: cast.first)
        }
        #expect(try cast.refusals(.verification, by: cast.first, about: asked.challenge) == 1)
        #expect(try await cast.rig.post(PhoneAnswer(approves: false), asked.challenge, by: cast.first) == .failure)
    }

    @Test(arguments: UserVerification.allCases, ["0", "2"])
    func assuranceIsHighWithNumberOrUserVerification(uv: UserVerification, number: String) async throws {
        let cast = try await TwoWebsitesFixture(.memory, policies: ["number": number])
        let asked = try await cast.ask(number: nil)
        let result = try await cast.rig.decide(
            .approve, asked.challenge, number: asked.number, uv: uv, by: cast.first)
        #expect(result == .success)
        let isHigh = number == "2" || uv != .none
        #expect(try await cast.told(asked).assurance == (isHigh ? .high : .substantial))
        #expect(try cast.rig.count("SELECT count(*) FROM challenge WHERE uv = '\(uv.rawValue)'") == 1)
    }

    // MARK: Several at once

    /// Approve, deny and fraud from three phones: one of them decides, and everybody is told the same.
    @Test(arguments: [StoreKind.file, .mariadb]) func concurrentAnswersOfThreePhonesGiveOneEnd(kind: StoreKind)
        async throws
    {
        let cast = try await TwoWebsitesFixture(kind, policies: ["push-limit": "1"])
        let rig = cast.rig
        let third = try await rig.further(of: "ada", cast.ada, at: cast.shop)
        let phones: [(Decision, RelayRig.BoundPhone)] = [
            (.approve, cast.first), (.deny, cast.second), (.fraud, third),
        ]
        var wins: [Decision: Int64] = [:]
        let rounds = 1000
        for round in 0..<rounds {
            // What is counted against the limits stays short.
            rig.time.advance(by: .seconds(20))
            let asked = try await cast.ask()
            let shown = try await rig.shown(asked.challenge, to: cast.first.credential)
            // Each goes first in a third of the rounds.
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
            let told = try await cast.told(asked)
            let winners = outcomes.filter { (try? $0.result.get()) != nil }
            try #require(winners.count == 1, "\(outcomes)")
            let winner = winners[0].decision
            #expect(try winners[0].result.get() == told.result)
            #expect(told.result == (winner == .approve ? .success : .failure))
            #expect(told.reason == [.deny: .denied, .fraud: .fraud][winner])
            #expect(told.device == phones.first { $0.0 == winner }?.1.credential.id)
            for loser in outcomes where loser.decision != winner {
                guard case .failure(.alreadyDecided(let result)) = loser.result else {
                    Issue.record("\(loser) after \(winner)")
                    continue
                }
                #expect(result == told.result.rawValue)
            }
            // A report of fraud is heard even where another answer was first. Unless this finds something to lift, it was
            // not, and the next one could not be asked.
            try await cast.unlock()
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
        let cast = try await TwoWebsitesFixture(kind, policies: ["guesses": "100"])
        let rig = cast.rig
        var wrongs: Int64 = 0
        for round in 0..<200 {
            let asked = try await cast.ask()
            let both = [("47", cast.first), ("48", cast.second)]
            let ends = await withTaskGroup(of: ChallengeLife.Result?.self) { group in
                for (number, phone) in round.isMultiple(of: 2) ? both : both.reversed() {
                    group.addTask {
                        try? await rig.decide(.approve, asked.challenge, number: number, by: phone)
                    }
                }
                return await group.reduce(into: []) { $0 += [$1].compactMap { $0 } }
            }
            let told = try await cast.told(asked)
            #expect(ends == [told.result])
            #expect(told.reason == (told.result == .success ? nil : .wrongNumber))
            if told.result == .failure { wrongs += 1 }
            #expect(try rig.count("SELECT max(failures) FROM device") == (told.result == .failure ? 1 : 0))
            // The pause is over, and the count begins anew.
            rig.time.advance(by: .seconds(5))
            try rig.execute("UPDATE device SET failures = 0, failed_at = NULL")
        }
        let counted = try rig.count("SELECT count(*) FROM challenge WHERE reason = 'wrong_number'")
        #expect(counted == wrongs)
    }
}
