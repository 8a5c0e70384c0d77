import DeliveryOutcomes
import Domain
import Log
import Storage
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay

/// The outcomes of pushes, which are independent of the results of their challenges.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PushDeliveryTests {
    private static let gone = DeliveryOutcome.unregistered(since: nil, reason: "Unregistered")
    private static let broken = DeliveryOutcome.misconfigured(.message, reason: "PayloadEmpty")

    private func audits(_ rig: RelayRig) throws -> Int64 {
        try rig.count("SELECT count(*) FROM audit WHERE event = 'push.settled'")
    }

    private func attend(_ rig: RelayRig) async throws {
        try await rig.on { relay in await relay.processDueEntries() }
        await rig.settled()
    }

    /// The step has the better of the two outcomes, in either order. Each push has its own audit row and log line.
    @Test(
        arguments: StoreKind.all,
        [
            ([DeliveryOutcome.accepted(by: nil), gone], StepState.sent, nil as String?),
            ([gone, .accepted(by: nil)], .sent, nil),
            ([gone, broken], .undeliverable, "PayloadEmpty"), ([broken, gone], .refused, "Unregistered"),
            ([.accepted(by: nil), .accepted(by: nil)], .sent, nil),
        ])
    func stepHasTheBestStateOfTwoPhones(kind: StoreKind, expected: ([DeliveryOutcome], StepState, String?)) async throws
    {
        let (outcomes, state, reason) = expected
        let fixture = try await TwoWebsitesFixture(kind)
        for outcome in outcomes { fixture.rig.pushes.answer(outcome) }
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        let steps = try await fixture.reported(asked).steps
        #expect(steps.map(\.state) == [state] && steps.map(\.reason) == [reason])
        #expect(try audits(fixture.rig) == 2)
        #expect(try fixture.rig.count("SELECT count(DISTINCT device_id) FROM audit WHERE event = 'push.settled'") == 2)
        let lines = fixture.rig.sink.drain().filter { $0.contains("challenge=\(asked.challenge)") }
        let sent = fixture.rig.pushes.sent
        for (push, outcome) in zip(sent, outcomes) {
            let event =
                switch outcome {
                case .accepted: "level=info event=push.accepted"
                case .unregistered: "level=info event=push.refused"
                default: "level=error event=push.undeliverable"
                }
            let mine = lines.filter { $0.contains("push=\(push.id)") }
            #expect(mine.count == 2 && mine[0].contains("event=push.queued") && mine[1].contains(event), "\(mine)")
            #expect(mine.allSatisfy { $0.contains("device=") } && mine[1].contains("milliseconds=0"), "\(mine)")
            #expect(mine[1].contains("reason=") == (outcome != .accepted(by: nil)))
        }
    }

    /// People may see the reason, so it must be safe whatever the push service sends.
    @Test(arguments: StoreKind.all) func reasonIsShortAndPrintable(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let evil = "a\u{202e}b\n\u{e9}" + String(repeating: "x", count: 100)
        fixture.rig.pushes.answer(.misconfigured(.message, reason: evil), .misconfigured(.message, reason: evil))
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        let reason = try #require(try await fixture.reported(asked).steps.first?.reason)
        #expect(reason == "a?b??" + String(repeating: "x", count: 59))
    }

    /// A phone that gets no push can poll and answer.
    @Test(arguments: StoreKind.all) func answerCountsWithoutADeliveredPush(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        fixture.rig.pushes.answer(Self.broken, Self.broken)
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        let waiting = try await fixture.reported(asked)
        #expect(waiting.result == .wait && waiting.reason == nil)
        #expect(try await fixture.rig.decide(.approve, asked.challenge, number: "47", by: fixture.first) == .success)
        let reported = try await fixture.reported(asked)
        #expect(reported.result == .success && reported.reason == nil)
        #expect(reported.steps.map(\.state) == [.undeliverable, .answered])
        #expect(reported.steps.map(\.reason) == ["PayloadEmpty", "late"])
    }

    /// The push service accepted the push after the user had answered, or after another relay had settled it.
    @Test(arguments: StoreKind.all) func lateOutcomeChangesNothing(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        fixture.rig.pushes.answer(
            .retry(after: .seconds(2), reason: "busy"), .retry(after: .seconds(2), reason: "busy"))
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        let sent = try #require(fixture.rig.pushes.sent.first)
        _ = try await fixture.rig.decide(.deny, asked.challenge, by: fixture.first)
        let ended = try await fixture.reported(asked)
        let audits = try fixture.rig.count("SELECT count(*) FROM audit")
        for outcome in [DeliveryOutcome.accepted(by: nil), Self.gone, Self.broken, .ambiguous("silence")] {
            fixture.rig.pushes.answer(outcome)
            _ = fixture.rig.sink.drain()
            try await fixture.rig.on { relay in await relay.deliver(sent.again) }
            let lines = fixture.rig.sink.drain().filter { $0.contains("event=push.") }
            #expect(lines.count == 1 && lines[0].contains("level=info event=push.overtaken"), "\(lines)")
        }
        #expect(try await fixture.reported(asked) == ended)
        #expect(try fixture.rig.count("SELECT count(*) FROM audit") == audits)
        #expect(try fixture.rig.count("SELECT count(*) FROM device WHERE push_token = ''") == 0)
    }

    /// Two relays held the push: one was declared dead, but was alive.
    @Test(arguments: StoreKind.all) func pushIsSettledOnce(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        rig.pushes.answer(.retry(after: .seconds(2), reason: "busy"))
        let asked = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        let sent = try #require(rig.pushes.sent.first)
        rig.pushes.answer(Self.gone, .accepted(by: nil))
        for _ in 0..<2 { try await rig.on { relay in await relay.deliver(sent.again) } }
        let reported = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        #expect(reported.steps.map(\.state) == [.refused] && reported.steps.map(\.reason) == ["Unregistered"])
        #expect(try rig.count("SELECT count(*) FROM challenge WHERE state = 'asked'") == 1)
        #expect(try audits(rig) == 1)
    }

    @Test(arguments: StoreKind.all) func seenChallengeIsNotPushedAfterwards(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        fixture.rig.pushes.answer(
            .retry(after: .seconds(2), reason: "busy"), .retry(after: .seconds(2), reason: "busy"))
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        fixture.rig.time.advance(by: .milliseconds(1500))
        for _ in 0..<2 {
            let pending = try await fixture.rig.on { [phone = fixture.first.credential] relay in
                try await relay.pending(for: phone)
            }
            #expect(pending.count == 1)
        }
        let seen = fixture.rig.sink.drain().filter { $0.contains("event=push.seen") }
        #expect(seen.count == 1 && seen[0].contains("device=\(fixture.first.credential.id)"), "\(seen)")
        #expect(seen[0].contains("challenge=\(asked.challenge)") && seen[0].contains("milliseconds=1500"))
        fixture.rig.time.advance(by: .seconds(1))
        try await attend(fixture.rig)
        #expect(fixture.rig.pushes.sent.count == 4)
        #expect(try audits(fixture.rig) == 2)
        #expect(try await fixture.reported(asked).steps.map(\.state) == [.seen])
    }

    @Test(arguments: StoreKind.all) func serviceThatNamesNoPauseGetsTheUsualOne(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        rig.pushes.answer(.retry(after: nil, reason: "busy"))
        _ = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        rig.time.advance(by: Push.pause - .milliseconds(1))
        try await attend(rig)
        #expect(rig.pushes.sent.count == 1)
        rig.time.advance(by: .milliseconds(1))
        try await attend(rig)
        #expect(rig.pushes.sent.count == 2)
    }

    /// The challenge has expired when the push is due. That is no fault.
    @Test(arguments: StoreKind.all) func unsentPushExpires(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        rig.pushes.answer(.retry(after: .seconds(2), reason: "busy"))
        let asked = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        let sent = try #require(rig.pushes.sent.first)
        rig.time.advance(by: .seconds(300))
        try await rig.on { relay in await relay.deliver(sent.again) }
        #expect(rig.pushes.sent.count == 1)
        let steps = try await rig.on { relay in try await relay.store.challenge(asked.challenge, of: shop.id) }?.steps
        #expect(steps?.map(\.state) == [.expired] && steps?.map(\.reason) == ["expired unsent"])
        let lines = rig.sink.drain()
        #expect(lines.contains { $0.contains("level=info event=push.expired") && $0.contains("milliseconds=300000") })
        #expect(!lines.contains { $0.contains("level=error") })
        // The challenge expires by itself, and the step keeps its state.
        let reported = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        #expect(reported.reason == .expired && reported.steps == steps)
    }

    /// The push is due again when the phone has no token any more.
    @Test(arguments: StoreKind.all, ["push_token = ''", "state = 'suspended'"])
    func pushWithoutTokenIsUndeliverable(kind: StoreKind, change: String) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        fixture.rig.pushes.answer(
            .retry(after: .seconds(2), reason: "busy"), .retry(after: .seconds(2), reason: "busy"))
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        try fixture.rig.execute("UPDATE device SET \(change)")
        fixture.rig.time.advance(by: .seconds(2))
        try await attend(fixture.rig)
        #expect(fixture.rig.pushes.sent.count == 2)
        let steps = try await fixture.reported(asked).steps
        #expect(steps.map(\.state) == [.undeliverable] && steps.map(\.reason) == ["no device token"])
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE kind = 'push'") == 0)
    }

    /// The lease has ended, and the push service has not answered yet.
    @Test(arguments: StoreKind.all) func pushInFlightIsNotResent(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (ada, _, _) = try await rig.enrolled("ada", at: shop)
        let (bob, _, _) = try await rig.enrolled("bob", at: shop)
        func ask(_ user: UserToken) async throws -> OpenedChallenge {
            try await rig.on { relay in
                try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
            }
        }
        rig.pushes.hold()
        let first = try await ask(ada)
        #expect(await rig.pushes.next().challenge == first.challenge)
        rig.time.advance(by: Relay.lease + .seconds(1))
        try await rig.on { relay in await relay.processDueEntries() }
        // A push of the outbox round would arrive before this one.
        let second = try await ask(bob)
        #expect(await rig.pushes.next().challenge == second.challenge)
        rig.pushes.release()
        await rig.settled()
        #expect(rig.pushes.sent.count == 2)
        #expect(try audits(rig) == 2)
        for asked in [first, second] {
            let reported = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
            #expect(reported.steps.map(\.state) == [.sent])
        }
    }

    /// The answer arrived while the store was down: the outcome is not lost, and the phone gets no second push.
    @Test func unrecordedOutcomeIsNotResent() async throws {
        let place = try await StoreKind.file.fresh()
        let rig = try await RelayRig(over: place, time: TestTime())
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        let isAway = Mutex(true)
        let store = try Store.watched(at: place.url, rows: RelayRig.rowAuthenticator()) {
            (steps, session) throws(SessionFailure) in
            let settles = steps.contains { $0.statement.sql.contains("push.settled") }
            if settles, isAway.withLock({ $0 }) { throw .refused("the disk is full") }
            return try session.run(steps)
        }
        defer { store.close() }
        let relay = try rig.relay(over: store)
        let asked = try await rig.on { _ in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        for isBack in [false, true] {
            isAway.withLock { $0 = !isBack }
            rig.time.advance(by: .seconds(16))
            try await rig.on { _ in await relay.processDueEntries() }
            await rig.settled()
            let steps = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }.steps
            #expect(steps.map(\.state) == [isBack ? .sent : .queued])
        }
        #expect(rig.pushes.sent.count == 1)
        #expect(rig.sink.drain().filter { $0.contains("event=push.accepted") }.count == 1)
    }

    /// The pushes end with their phones, and the last one ends the step.
    @Test(arguments: StoreKind.all) func pushToAnUnboundPhoneIsUndeliverable(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        fixture.rig.pushes.answer(
            .retry(after: .seconds(2), reason: "busy"), .retry(after: .seconds(2), reason: "busy"))
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        for (phone, state) in [(fixture.first, StepState.queued), (fixture.second, .undeliverable)] {
            let credential = phone.credential
            try await fixture.rig.on { relay in try await relay.unbind(by: credential) }
            #expect(try await fixture.reported(asked).steps.map(\.state) == [state])
        }
        let reported = try await fixture.reported(asked)
        #expect(reported.result == .wait && reported.steps.first?.reason == "the phone was unbound or suspended")
    }

    /// A relay that has no push service finds an entry of another relay.
    @Test(arguments: StoreKind.all) func pushWithoutAServiceIsUndeliverable(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop")
        let (user, _, _) = try await rig.enrolled("ada", at: shop)
        rig.pushes.answer(.retry(after: .seconds(2), reason: "busy"))
        let asked = try await rig.on { relay in
            try await relay.login(LoginRequest(subject: .token(user)), by: shop, as: relay.operations.new())
        }
        await rig.settled()
        let sent = try #require(rig.pushes.sent.first)
        let other = try rig.another()
        try await rig.on { _ in await other.deliver(sent.again) }
        let reported = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
        #expect(reported.steps.map(\.state) == [.undeliverable] && reported.steps.map(\.reason) == ["no push service"])
    }
}
