import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

@Suite(.mayBlock) struct LoginTests {
    @Test(arguments: StoreKind.all) func approvedLoginIsReportedConsistently(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, phone) = try await rig.enrolled("ada", at: shop)

        let asked = try await rig.on { relay in
            try await relay.login(
                LoginRequest(subject: .token(user), request: "r-1", ip: "203.0.113.7", service: "pay"), by: shop,
                as: relay.operations.new())
        }
        #expect(asked.verified && asked.factor == .push && asked.number?.count == 2)
        let push = await rig.pushes.next()
        #expect(push.challenge == asked.challenge && push.deviceToken == "push-ada")
        #expect(push.ip == "203.0.113.7" && push.service == "pay" && push.website == "The shop")
        await rig.settled()
        let waiting = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        #expect(waiting.result == .wait && waiting.steps.map(\.state) == [.sent])

        let result = try await rig.on { relay in
            try await relay.answer(
                asked.challenge, PhoneAnswer(approves: true, number: asked.number), by: phone)
        }
        #expect(result == .success)
        let reported = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        #expect(reported.result == .success && reported.factor == .push && reported.assurance == .high)
        #expect(reported.proof == .certificate && reported.device == phone.id && reported.reason == nil)
        #expect(reported.steps.map(\.state) == [.answered])

        for approves in [true, false] {
            await #expect(throws: Refusal.alreadyDecided(result: "success")) {
                try await rig.on { relay in
                    try await relay.answer(
                        asked.challenge, PhoneAnswer(approves: approves, number: asked.number), by: phone)
                }
            }
        }
        rig.time.advance(by: .seconds(24 * 3600 - 1))
        #expect(try await rig.on { relay in try await relay.result(asked.challenge, to: shop) } == reported)
        rig.time.advance(by: .seconds(1))
        await #expect(throws: Refusal.notFound) {
            try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        }
    }

    @Test(arguments: StoreKind.all) func wrongNumberEndsTheChallengeAndMissingNumberDoesNot(kind: StoreKind)
        async throws
    {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, phone) = try await rig.enrolled("ada", at: shop)
        let asked = try await rig.on { relay in
            try await relay.login(
                LoginRequest(subject: .token(user), number: "12"), by: shop, as: relay.operations.new())
        }
        #expect(asked.number == "12")
        await #expect(throws: Refusal.self) {
            try await rig.on { relay in
                try await relay.answer(asked.challenge, PhoneAnswer(approves: true), by: phone)
            }
        }
        #expect(try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }.result == .wait)
        let result = try await rig.on { relay in
            try await relay.answer(asked.challenge, PhoneAnswer(approves: true, number: "11"), by: phone)
        }
        #expect(result == .failure)
        let reported = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        #expect(reported.reason == .wrongNumber && reported.assurance == nil)
    }

    @Test(arguments: StoreKind.all) func numberIsReturnedOnlyIfAPhoneCanAnswer(kind: StoreKind) async throws {
        let phoneless = try await CodeLoginFixture(kind, hasPhone: false)
        try phoneless.give(.totp)
        #expect(try await phoneless.login().number == nil)
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        #expect(try await fixture.login().number?.utf8.count == 2)
        #expect(try await fixture.login(factors: [.totp]).number == nil)
        // A phone that is bound while the login is open must not approve it without the number.
        #expect(try phoneless.rig.count("SELECT count(*) FROM challenge WHERE number IS NULL") == 0)
    }

    @Test(arguments: StoreKind.all) func laterLoginSupersedesTheEarlier(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, phone) = try await rig.enrolled("ada", at: shop)
        let ask: @Sendable (Relay) async throws -> OpenedChallenge = { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        let first = try await rig.on(ask)
        let second = try await rig.on(ask)
        let reported = try await rig.on { relay in try await relay.result(first.challenge, to: shop) }
        #expect(reported.result == .failure && reported.reason == .superseded)
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await rig.on { relay in
                try await relay.answer(
                    first.challenge, PhoneAnswer(approves: true, number: first.number), by: phone)
            }
        }
        let result = try await rig.on { relay in
            try await relay.answer(second.challenge, PhoneAnswer(approves: false), by: phone)
        }
        #expect(result == .failure)
        let denied = try await rig.on { relay in try await relay.result(second.challenge, to: shop) }
        #expect(denied.reason == .denied)
    }

    @Test(arguments: StoreKind.all) func unansweredChallengeExpires(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, phone) = try await rig.enrolled("ada", at: shop)
        let asked = try await rig.on { relay in
            try await relay.login(
                LoginRequest(subject: .token(user), expiresIn: 60), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        rig.time.advance(by: .seconds(60))
        // Before the expiry is recorded …
        let reported = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        #expect(reported.result == .failure && reported.reason == .expired)
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await rig.on { relay in
                try await relay.answer(
                    asked.challenge, PhoneAnswer(approves: true, number: asked.number), by: phone)
            }
        }
        // … and after the outbox has recorded it.
        _ = try await rig.on { relay in await relay.processDueEntries() }
        await rig.settled()
        let after = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        #expect(after.reason == .expired && after.steps.map(\.state) == [.expired])
        #expect(try rig.count("SELECT count(*) FROM outbox") == 0)
    }

    @Test(arguments: StoreKind.all) func phoneRevokedMidwayCannotAnswer(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop", policies: ["number": "0"])
        let (user, _, phone) = try await rig.enrolled("ada", at: shop)
        let asked = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        try rig.execute("UPDATE device SET state = 'revoked'")
        // The credential was looked up before the revocation, so the guard checks again.
        await #expect(throws: Refusal.self) {
            try await rig.on { relay in
                try await relay.answer(
                    asked.challenge, PhoneAnswer(approves: true, number: nil), by: phone)
            }
        }
        let reported = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        #expect(reported.result == .wait)
        await #expect(throws: Refusal.unauthenticated) {
            try await rig.on { relay in try await relay.device(phone.id, key: phone.key, isCertified: true) }
        }
    }

    @Test(arguments: StoreKind.all) func sameOperationCreatesOneChallenge(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        let ask = rig.oneLogin(of: user, by: shop)
        let first = try await rig.on(ask)
        await rig.settled()
        rig.time.advance(by: .seconds(1))
        let again = try await rig.on(ask)
        await rig.settled()
        #expect(first.challenge == again.challenge && first.number == again.number)
        #expect(try rig.count("SELECT count(*) FROM challenge") == 1)
        #expect(rig.pushes.sent.count == 1)
        let reported = try await rig.on { relay in try await relay.result(first.challenge, to: shop) }
        #expect(reported.result == .wait)
        // The push was sent and settled. A repeated request does not push again.
        #expect(rig.pushes.sent.map(\.challenge) == [first.challenge])
    }

    @Test(arguments: StoreKind.all) func sameOperationTwiceAtOnceCreatesOneChallenge(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        let ask = rig.oneLogin(of: user, by: shop)
        let asked = try await withThrowingTaskGroup(of: OpenedChallenge.self) { group in
            for _ in 0..<8 { group.addTask { try await rig.on(ask) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        await rig.settled()
        #expect(Set(asked.map(\.challenge)).count == 1)
        let reported = try await rig.on { relay in try await relay.result(asked[0].challenge, to: shop) }
        #expect(reported.result == .wait)
    }

    @Test(arguments: StoreKind.all) func userWithoutPhoneFailsAtOnce(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _) = try await rig.on { relay in
            try await relay.register(
                Registration(username: "bob", email: nil, phone: nil, displayName: nil, language: nil), by: shop,
                as: relay.operations.new())
        }
        let asked = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .username("bob")), by: shop, as: relay.operations.new())
        }
        #expect(!asked.verified && asked.factor == nil)
        let reported = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        #expect(reported.result == .failure && reported.reason == .undeliverable)
        #expect(rig.pushes.sent.isEmpty)
        _ = user
    }
}
