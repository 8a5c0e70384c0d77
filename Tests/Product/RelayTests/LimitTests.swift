import Domain
import Relay
import TestSupport
import Testing
import World

/// The limits on the challenges of a user.
@Suite(.mayBlock) struct LimitTests {
    private typealias Outcome = Result<OpenedChallenge, Refusal>

    private func login(_ rig: RelayRig, _ user: UserToken, _ website: Website) async -> Outcome {
        do {
            return .success(
                try await rig.on { relay in
                    try await relay.login(LoginRequest(subject: .token(user)), by: website, as: relay.operations.new())
                })
        } catch {
            return .failure(error as? Refusal ?? .broken)
        }
    }

    /// Opens logins at the same time, at the relays in turn.
    private func together(_ count: Int, _ rigs: [RelayRig], _ user: UserToken, _ website: Website) async -> [Outcome] {
        await withTaskGroup(of: Outcome.self) { group in
            for number in 0..<count { group.addTask { await login(rigs[number % rigs.count], user, website) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test(arguments: StoreKind.all) func pushesAreLimitedToFive(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, phone) = try await rig.enrolled("ada", at: shop)
        var outcomes: [Outcome] = []
        // One login a second. The oldest of the twenty is opened at 0 s, and leaves the window at 300 s.
        for second in 0..<50 {
            outcomes.append(await login(rig, user, shop))
            await rig.settled()
            if second == 10 {
                // Meanwhile the user logs in: the phone polls, and its answer counts.
                let asked = try outcomes[10].get()
                #expect(asked.factor == .pull && asked.number?.utf8.count == 2)
                let list = try await rig.on { relay in try await relay.pending(for: phone) }
                #expect(list.map(\.challenge) == [asked.challenge])
                let result = try await rig.on { relay in
                    try await relay.answer(
                        asked.challenge, PhoneAnswer(approves: true, number: asked.number), by: phone)
                }
                #expect(result == .success)
            }
            rig.time.advance(by: .seconds(1))
        }
        let asked = outcomes.compactMap { try? $0.get() }
        #expect(asked.map(\.factor) == Array(repeating: .push, count: 5) + Array(repeating: .pull, count: 15))
        #expect(rig.pushes.sent.map(\.challenge) == asked.prefix(5).map(\.challenge))
        for (number, outcome) in outcomes.enumerated().dropFirst(20) {
            #expect(outcome == .failure(.limited(retryAfter: .seconds(300 - number))), "login \(number)")
        }
        // At that moment one login is allowed, and it is pushed, because the pushed ones have left the window too.
        rig.time.advance(by: .seconds(300 - 50) - .milliseconds(1))
        #expect(await login(rig, user, shop) == .failure(.limited(retryAfter: .milliseconds(1))))
        rig.time.advance(by: .milliseconds(1))
        #expect(try await login(rig, user, shop).get().factor == .push)
        #expect(await login(rig, user, shop) == .failure(.limited(retryAfter: .seconds(1))))
        #expect(try rig.count("SELECT count(*) FROM challenge") == 21)
        await rig.settled()
        #expect(rig.pushes.sent.count == 6)
    }

    @Test(arguments: StoreKind.all) func concurrentLoginsAreCountedExactly(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        var rigs = [rig]
        // A SQLite store has one relay.
        if kind == .mariadb { rigs.append(try await RelayRig(beside: rig)) }
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        let other = try await rig.enrolled("bob", at: shop).user

        let first = await together(20, rigs, user, shop)
        for rig in rigs { await rig.settled() }
        let asked = first.compactMap { try? $0.get() }
        #expect(asked.count == 20)
        #expect(asked.filter { $0.factor == .push }.count == 5)
        #expect(asked.filter { $0.factor == .pull }.count == 15)
        let sent = rigs.flatMap(\.pushes.sent)
        #expect(Set(sent.map(\.challenge)) == Set(asked.filter { $0.factor == .push }.map(\.challenge)))
        #expect(sent.count == 5)
        #expect(try rig.count("SELECT count(*) FROM challenge WHERE decided_at IS NULL") == 1)

        // Every caller gets the same refusal, and nothing else.
        for outcome in await together(20, rigs, user, shop) {
            #expect(outcome == .failure(.limited(retryAfter: .seconds(300))))
        }
        #expect(try rig.count("SELECT count(*) FROM challenge") == 20)
        // The limit is only for this user.
        #expect(try await login(rig, other, shop).get().factor == .push)
    }

    @Test(arguments: StoreKind.all) func concurrentLoginsNeverExceedTheLimit(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop", policies: ["login-limit": "7", "push-limit": "3"])
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        let outcomes = await together(40, [rig], user, shop)
        await rig.settled()
        #expect(outcomes.filter { (try? $0.get())?.factor == .push }.count == 3)
        #expect(outcomes.filter { (try? $0.get())?.factor == .pull }.count == 4)
        #expect(outcomes.filter { $0 == .failure(.limited(retryAfter: .seconds(300))) }.count == 33)
        #expect(rig.pushes.sent.count == 3)
    }

    @Test(arguments: StoreKind.all) func repeatedLoginCountsOnceAgainstTheLimit(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop", policies: ["login-limit": "1"])
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        let ask = rig.oneLogin(of: user, by: shop)
        let first = try await rig.on(ask)
        await rig.settled()
        rig.time.advance(by: .seconds(2))
        #expect(try await rig.on(ask) == first)
        #expect(await login(rig, user, shop) == .failure(.limited(retryAfter: .seconds(298))))
        #expect(rig.pushes.sent.count == 1)
        // In the other order, a refused request is not stored when it is repeated.
        let refused = rig.relay.operations.new()
        for _ in 0..<2 {
            await #expect(throws: Refusal.limited(retryAfter: .seconds(298))) {
                try await rig.on { relay in
                    try await relay.login(
                        LoginRequest(subject: .token(user)), by: shop, as: relay.operations.again(refused.id))
                }
            }
        }
        #expect(try rig.count("SELECT count(*) FROM challenge") == 1)
    }

    @Test(arguments: StoreKind.all, [UserState.locked, .frozen])
    func lockedOrFrozenUserGetsAFailedChallenge(kind: StoreKind, state: UserState) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, phone) = try await rig.enrolled("ada", at: shop)
        let before = try await login(rig, user, shop).get()
        await rig.settled()
        try rig.execute("UPDATE user SET state = '\(state)'")
        let asked = try await login(rig, user, shop).get()
        #expect(asked.verified && asked.factor == nil && asked.number == nil)
        let reported = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        #expect(reported.result == .failure && reported.reason?.rawValue == state.rawValue && reported.steps.isEmpty)
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await rig.on { relay in
                try await relay.answer(
                    asked.challenge, PhoneAnswer(approves: true, number: nil), by: phone)
            }
        }
        let earlier = try await rig.on { relay in try await relay.result(before.challenge, to: shop) }
        #expect(earlier.reason == .superseded)
        await rig.settled()
        #expect(rig.pushes.sent.count == 1)
        #expect(try rig.count("SELECT count(*) FROM outbox") == 0)

        try rig.execute("UPDATE user SET state = 'active'")
        #expect(try await login(rig, user, shop).get().factor == .push)
    }

    @Test func amountBelowTheLimitNeedsNoNumber() async throws {
        let rig = try await RelayRig(.memory)
        let shop = try await rig.website("shop", policies: ["number-below": "30 EUR", "number": "6"])
        let (user, _, phone) = try await rig.enrolled("ada", at: shop)
        func ask(_ amounts: [String], number: String? = nil) async throws -> OpenedChallenge {
            let details = amounts.map { Context.Detail(label: "amount", value: $0) }
            return try await rig.on { relay in
                try await relay.login(
                    LoginRequest(subject: .token(user), number: number, details: details), by: shop,
                    as: relay.operations.new())
            }
        }
        let small = try await ask(["29.99 EUR"])
        #expect(small.number == nil)
        await #expect(throws: Refusal.self) { try await ask(["29.99 EUR"], number: "123456") }
        #expect(try await ask(["30 EUR"], number: "123456").number == "123456")
        for doubtful in [
            [], ["30.00 EUR"], ["1,00 EUR"], ["5 EUR", "5 EUR"], ["5"], ["5 USD"], ["a little"], ["-1 EUR"],
        ] {
            #expect(try await ask(doubtful).number?.utf8.count == 6, "\(doubtful)")
        }
        let last = try await ask(["0.50 EUR"])
        let result = try await rig.on { relay in
            try await relay.answer(
                last.challenge, PhoneAnswer(approves: true, number: nil), by: phone)
        }
        #expect(result == .success)
        // Without a number the assurance is lower.
        let reported = try await rig.on { relay in try await relay.result(last.challenge, to: shop) }
        #expect(reported.assurance == .substantial)
        #expect(String(decoding: reported.context, as: UTF8.self).contains(#""number_digits":0"#))
    }
}
