import DeliveryOutcomes
import Domain
import Metrics
import Relay
import Storage
import TestSupport
import Testing
import World

/// The metrics of the five verbs.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct MetricsTests {
    private func ended(_ rig: RelayRig, _ result: String, _ reason: String, _ proof: String) -> Double? {
        rig.registry.number(
            "twoefay_challenges_ended_total{result=\"\(result)\",reason=\"\(reason)\",proof=\"\(proof)\"}")
    }

    @Test func heldRequestIsCountedOnce() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.website("shop")
        let ada = try await rig.enrolled("ada", at: shop).credential
        let bob = try await rig.enrolled("bob", at: shop).credential
        let (one, two) = (rig.relay.operations.draw() as ChallengeID, rig.relay.operations.draw() as ChallengeID)
        var held: Double? { rig.registry.number("twoefay_requests_held") }
        #expect(held == 0)
        let website = rig.relay.heldRequests.ticket(for: .challenge(one))
        _ = rig.relay.ticket(for: ada, knowing: [one, two])
        _ = rig.relay.ticket(for: bob, knowing: [])
        #expect(held == 3)
        // The newest request of a phone replaces the earlier one.
        _ = rig.relay.ticket(for: ada, knowing: [two])
        #expect(held == 3)
        website.cancel()
        website.cancel()
        #expect(held == 2)
        rig.relay.heldRequests.fire(.challenge(two))
        #expect(held == 1)
        rig.relay.heldRequests.fire(.user(bob.user))
        #expect(held == 0)
    }

    @Test func challengesAreCountedByFactorAndResult() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.website("shop", policies: ["answers": "signed", "number": "0"])
        let (user, phone, credential) = try await rig.enrolled("ada", at: shop)
        let ask: @Sendable (Relay) async throws -> OpenedChallenge = { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        let asked = "twoefay_challenges_asked_total"
        #expect(rig.registry.number("\(asked){factor=\"push\"}") == 0)
        for (decision, reason) in [(Decision.approve, "none"), (.deny, "denied")] {
            let challenge = try await rig.on(ask).challenge
            _ = try await rig.decide(decision, challenge, by: (phone, credential))
            #expect(ended(rig, decision == .approve ? "success" : "failure", reason, "signed") == 1)
        }
        let first = try await rig.on(ask).challenge
        let second = try await rig.on(ask).challenge
        #expect(first != second)
        #expect(ended(rig, "failure", "superseded", "none") == 1)
        try await rig.on { relay in try await relay.cancel(second, by: shop) }
        #expect(ended(rig, "failure", "cancelled", "none") == 1)
        await rig.settled()
        #expect(rig.registry.number("\(asked){factor=\"push\"}") == 4)
        #expect(rig.registry.number("twoefay_pushes_total{outcome=\"accepted\"}") == 4)
        #expect(rig.registry.number("twoefay_pushes_total{outcome=\"token_dead\"}") == 0)
        // Each end is counted once, and nothing else is counted.
        let ends = String(decoding: rig.registry.exposition(), as: UTF8.self).split(separator: "\n")
            .filter { $0.hasPrefix("twoefay_challenges_ended_total{") && !$0.hasSuffix(" 0") }
        #expect(ends.count == 4 && ends.allSatisfy { $0.hasSuffix(" 1") }, "\(ends)")
    }

    @Test func repeatedLoginIsCountedOnce() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        let first = rig.relay.operations.new(isRepeatable: true)
        for operation in [first, rig.relay.operations.again(first.id), rig.relay.operations.again(first.id)] {
            _ = try await rig.on { relay in
                try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: operation)
            }
            rig.time.advance(by: .seconds(1))
        }
        #expect(rig.registry.number("twoefay_challenges_asked_total{factor=\"push\"}") == 1)
        #expect(ended(rig, "failure", "superseded", "none") == 0)
    }

    @Test func pushesAreCountedByOutcome() async throws {
        let outcomes: [(DeliveryOutcome, String)] = [
            (.accepted(by: nil), "accepted"), (.misconfigured(.message, reason: "BadPath"), "bad_request"),
            (.declined("403"), "declined"), (.misconfigured(.service, reason: "Forbidden"), "credential_fault"),
            (.unregistered(since: nil, reason: "Unregistered"), "token_dead"),
        ]
        for (outcome, word) in outcomes {
            let rig = try await RelayRig(.memory)
            let shop = try await rig.website("shop")
            let (user, _, _) = try await rig.enrolled("ada", at: shop)
            rig.pushes.answer(outcome)
            _ = try await rig.on { relay in
                try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
            }
            await rig.settled()
            for (_, other) in outcomes {
                #expect(
                    rig.registry.number("twoefay_pushes_total{outcome=\"\(other)\"}") == (other == word ? 1 : 0))
            }
        }
    }

    @Test func storeFailuresAreCounted() async throws {
        let rig = try await RelayRig(.file)
        let shop = try await rig.website("shop")
        let unavailable = "twoefay_store_failures_total{kind=\"unavailable\"}"
        #expect(rig.registry.number(unavailable) == 0)
        rig.store.close()
        await #expect(throws: Refusal.unavailable) {
            _ = try await rig.on { relay in
                try await relay.login(LoginRequest(subject: .username("ada")), by: shop, as: relay.operations.new())
            }
        }
        #expect(rig.registry.number(unavailable) == 1)
    }

    @Test func reachedLimitsAreCounted() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.website("shop", policies: ["login-limit": "4", "push-limit": "2"])
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        for count in 1...6 {
            _ = try? await rig.on { relay in
                try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
            }
            let limits = ["push", "login"].map {
                rig.registry.number("twoefay_limits_reached_total{limit=\"\($0)\"}")
            }
            #expect(limits == [Double(min(2, max(0, count - 2))), Double(max(0, count - 4))], "after \(count)")
        }
    }

    @Test func limitedRequestsForTheTimeAreCounted() async throws {
        let rig = try await RelayRig(.memory)
        for count in 1...102 {
            _ = try? rig.relay.signedTime(nonce: "AAECAwQFBgcICQoLDA0ODw", for: "192.0.2.1")
            let limited = rig.registry.number("twoefay_limits_reached_total{limit=\"time\"}")
            #expect(limited == Double(max(0, count - 100)), "after \(count)")
        }
    }

    @Test func lockedUsersAreCounted() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        try rig.execute("UPDATE user SET state = 'frozen'")
        _ = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        #expect(ended(rig, "failure", "frozen", "none") == 1)
        #expect(rig.registry.number("twoefay_limits_reached_total{limit=\"push\"}") == 0)
    }

    @Test func usersLockedByTheirOwnAnswersAreCounted() async throws {
        for (decision, reason, state) in [(Decision.approve, "wrong_number", "locked"), (.fraud, "fraud", "frozen")] {
            let fixture = try await TwoWebsitesFixture(.memory, policies: ["guesses": "1"])
            let challenge = try await fixture.ask(number: "47").challenge
            _ = try await fixture.rig.decide(
                decision, challenge, number: decision == .approve ? "74" : nil, by: fixture.first)
            for other in ["locked", "frozen"] {
                let count = fixture.rig.registry.number("twoefay_users_blocked_total{state=\"\(other)\"}")
                #expect(count == (other == state ? 1 : 0))
            }
            #expect(ended(fixture.rig, "failure", reason, "signed") == 1)
        }
    }

    @Test func prematureCodesAreCounted() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.website("shop")
        let (user, _, phone) = try await rig.enrolled("ada", at: shop)
        // A code that is none of the first codes of RFC 4226.
        try rig.addFactor(.hotp, of: phone.user, at: shop)
        let asked = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        for count in 1...4 {
            _ = try? await rig.on { relay in
                try await relay.backup(
                    asked.challenge, of: nil, code: "000000", by: shop, as: relay.operations.new())
            }
            let reached = rig.registry.number("twoefay_limits_reached_total{limit=\"guess\"}")
            #expect(reached == Double(count - 1), "after \(count)")
            let codes = ["wrong": 1.0, "early": Double(count - 1), "right": 0, "void": 0]
            for (outcome, expected) in codes {
                #expect(rig.registry.number("twoefay_codes_total{outcome=\"\(outcome)\"}") == expected, "\(outcome)")
            }
        }
    }

    /// The open challenge ends when the phone that could answer it stops working, or with the deletion of the user.
    @Test(arguments: ["suspend", "unbind", "revoke", "forget"])
    func challengesEndedByUnbindingAreCounted(how: String) async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.shop("shop", ["number": "0"])
        let person = try await Person.registered("ada", at: shop, rig)
        let bound = try #require(await person.bind(try TestPhone(pushToken: "push"), person.code).bound)
        let device = bound.device
        guard case .approvalRequired(let approval, _) = await person.refusedCode() else { throw RigFailure("?") }
        #expect(ended(rig, "failure", "cancelled", "none") == 0)
        try await rig.on { relay in
            switch how {
            case "suspend":
                _ = try await relay.change(device, ofUser: "ada", name: nil, state: .suspended, by: shop)
            case "unbind": try await relay.unbind(device, ofUser: "ada", by: shop)
            case "revoke": try await relay.revoke(code: bound.revocationCode, from: "192.0.2.1")
            default: try await relay.forget(username: "ada", by: shop)
            }
        }
        #expect(ended(rig, "failure", "cancelled", "none") == 1)
        let audits = "SELECT count(*) FROM audit WHERE event = 'challenge.ended' AND outcome = 'cancelled'"
        #expect(try rig.count("\(audits) AND challenge_id = x'\(approval)'") == (how == "forget" ? 0 : 1))
    }

    /// An answer counts with the time since the website asked, and an end without one does not.
    @Test func timesOfAnswersAreMeasured() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.website("shop", policies: ["answers": "signed", "number": "0"])
        let (user, phone, credential) = try await rig.enrolled("ada", at: shop)
        for (wait, decision) in [(3, Decision.approve), (12, .deny), (100, nil)] {
            let asked = try await rig.on { relay in
                try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
            }
            rig.time.advance(by: .seconds(wait))
            if let decision {
                _ = try await rig.decide(decision, asked.challenge, by: (phone, credential))
            } else {
                try await rig.on { relay in try await relay.cancel(asked.challenge, by: shop) }
            }
        }
        let times = "twoefay_answer_seconds"
        for (bound, count) in [("2.0", 0.0), ("5.0", 1), ("10.0", 1), ("15.0", 2), ("+Inf", 2)] {
            #expect(rig.registry.number("\(times)_bucket{proof=\"signed\",le=\"\(bound)\"}") == count, "\(bound)")
        }
        #expect(rig.registry.number("\(times)_sum{proof=\"signed\"}") == 15)
        #expect(rig.registry.number("\(times)_count{proof=\"code\"}") == 0)
    }

    /// A push counts with the time until its service had it, all attempts included.
    @Test func timesOfPushesAreMeasured() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.website("shop", policies: ["answers": "signed", "number": "0"])
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        rig.pushes.answer(.retry(after: nil, reason: "busy"))
        _ = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        let times = "twoefay_push_accepted_seconds"
        #expect(rig.registry.number("\(times)_count") == 0)
        rig.time.advance(by: .seconds(6))
        try await rig.on { relay in await relay.processDueEntries() }
        await rig.settled()
        #expect(rig.registry.number("\(times)_count") == 1)
        #expect(rig.registry.number("\(times)_sum") == 6)
    }

    @Test func userWithoutOpenLoginCountsNoEnd() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.shop("shop", ["number": "0"])
        let person = try await Person.registered("ada", at: shop, rig)
        let phone = try await person.bound(try TestPhone(pushToken: "push"), person.code)
        try await person.decide(try await person.login().challenge, .approve, by: phone)
        try await rig.on { relay in try await relay.forget(username: "ada", by: shop) }
        #expect(ended(rig, "failure", "cancelled", "none") == 0)
    }

    @Test func throttledSendersAreCounted() async throws {
        let rig = try await RelayRig(.memory)
        let person = try await Person.registered("ada", at: try await rig.shop(), rig)
        let thief = try TestPhone(pushToken: "thief")
        let waits = "twoefay_limits_reached_total{limit=\"code\"}"
        for count in 1...7 {
            #expect(await person.bind(thief, "guess").refusal != nil)
            #expect(rig.registry.number(waits) == Double(max(0, count - 5)))
        }
        for _ in 1...7 {
            _ = try? await rig.on { relay in
                try await relay.revoke(code: String(repeating: "A", count: 20), from: "192.0.2.1")
            }
        }
        #expect(rig.registry.number(waits) == 4)
    }

    @Test func everyMetricIsDocumented() throws {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        let page = try TextFile.read("\(root)/docs/operators/monitoring.md")
        let registry = Registry()
        _ = RelayMetrics(registry)
        #expect(registry.families.count >= 5)
        for family in registry.families {
            let labels = family.labels.map { "`\($0)`" }.joined(separator: ", ")
            #expect(page.contains("| `\(family.name)` | \(labels) |"), "\(family.name) | \(labels)")
        }
    }
}
