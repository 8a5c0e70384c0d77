import DeliveryOutcomes
import Domain
import JSON
import Log
import TestSupport
import Testing
import World

@testable import Relay

/// Logins while a push service is down. The clock moves only where a test says so: what has
/// happened before needed no time.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PushOutageTests {
    private static let failure = DeliveryOutcome.unavailable(after: nil, reason: "connection refused")
    private static let host = PushService.configured(host: "push.example", isUnreachable: false)
    private static let unreachable = PushService.configured(host: "push.example", isUnreachable: true)

    /// A user with a phone and these further factors, while the host cannot be reached.
    private func fixture(
        _ kind: StoreKind, _ factors: Factor..., policies: [String: String] = [:],
        service: PushService = Self.unreachable
    ) async throws -> CodeLoginFixture {
        let fixture = try await CodeLoginFixture(kind, policies: policies)
        for factor in factors { try fixture.give(factor) }
        fixture.rig.pushes.stand(for: service)
        fixture.rig.pushes.answerOtherwise { _ in Self.failure }
        return fixture
    }

    /// Returns the steps with their reasons: `push queued (push_down), mail sent`.
    private func explained(_ asked: OpenedChallenge, _ fixture: CodeLoginFixture) async throws -> String {
        try await fixture.reported(asked).steps.map { step in
            "\(step.factor) \(step.state)" + (step.reason.map { " (\($0))" } ?? "")
        }.joined(separator: ", ")
    }

    private func comeBack(_ fixture: CodeLoginFixture) {
        fixture.rig.pushes.stand(for: Self.host)
        fixture.rig.pushes.answerOtherwise { _ in .accepted(by: nil) }
    }

    /// Pushes to other users fail.
    private func fail(_ users: Range<Int>, _ fixture: CodeLoginFixture) async throws {
        let pushes = fixture.rig.pushes
        try await fixture.rig.on { relay in
            for user in users {
                relay.note(.ambiguous("no answer in time"), of: .sample(user: user, device: user), by: pushes)
            }
        }
    }

    @Test(arguments: StoreKind.all) func nextFactorBeginsWithTheLogin(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail)
        let asked = try await fixture.login()
        #expect(asked.factor == .mail && asked.verified && asked.number != nil)
        #expect(try await explained(asked, fixture) == "push queued (push_down), mail sent")
        #expect(fixture.rig.mails.sent.count == 1 && fixture.rig.pushes.sent.count == 1)
        #expect(fixture.rig.registry.number("twoefay_push_services_down") == 1)
        #expect(fixture.rig.registry.number("twoefay_push_outage_logins_total") == 1)
        #expect(fixture.rig.registry.number("twoefay_challenges_asked_total{factor=\"push\"}") == 1)
        let lines = fixture.rig.sink.lines.filter { $0.contains("push.service.down") }
        #expect(lines.count == 1 && lines[0].contains("host=push.example"))
        #expect(try await fixture.handIn(CodeLoginFixture.codes[0], asked).result == .success)
        #expect(try await explained(asked, fixture) == "push skipped (push_down), mail answered")
    }

    @Test(arguments: StoreKind.all) func pushFollowsWhenTheServiceIsBack(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail)
        let asked = try await fixture.login()
        try await fixture.later(.seconds(5))
        try await fixture.later(.seconds(10))
        #expect(fixture.rig.pushes.sent.count == 3)
        let waiting = try await fixture.reported(asked)
        #expect(waiting.steps[0].tries == 3 && waiting.steps[1].tries == nil)
        let shown = try #require(waiting.json()["steps"]?.array?.first?.object)
        #expect(shown["tries"]?.integer == 3 && shown["reason"]?.string == "push_down")
        comeBack(fixture)
        try await fixture.later(.seconds(20))
        #expect(try await explained(asked, fixture) == "push sent (push_down), mail sent")
        #expect(fixture.rig.registry.number("twoefay_push_services_down") == 0)
        let lines = fixture.rig.sink.lines.filter { $0.contains("push.service.up") }
        #expect(lines.count == 1 && lines[0].contains("count=1"))
        let phone = try #require(fixture.phone)
        #expect(try await fixture.rig.decide(.approve, asked.challenge, number: asked.number, by: phone) == .success)
        #expect(try await explained(asked, fixture) == "push answered (push_down), mail skipped")
        // The next login waits for its push again.
        let next = try await fixture.login()
        #expect(next.factor == .push)
        #expect(try await explained(next, fixture) == "push sent")
    }

    /// The push is attempted until the challenge ends, however long the service is down.
    @Test(arguments: StoreKind.all) func pushFollowsLate(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail)
        let asked = try await fixture.login()
        for _ in 0..<26 { try await fixture.later(.seconds(10)) }
        #expect(try await explained(asked, fixture) == "push queued (push_down), mail sent")
        // After 0, 10 and 20 seconds, and then every 20.
        #expect(fixture.rig.pushes.sent.count == 15)
        comeBack(fixture)
        try await fixture.later(.seconds(20))
        #expect(try await explained(asked, fixture) == "push sent (push_down), mail sent")
        try await fixture.later(.seconds(20))
        #expect(try await fixture.reported(asked).reason == .expired)
        #expect(try await fixture.reported(asked).steps.allSatisfy { $0.state == .expired })
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE challenge_id IS NOT NULL") == 0)
    }

    @Test(arguments: StoreKind.all) func latePushIsDroppedAfterTheAnswer(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail)
        let asked = try await fixture.login()
        #expect(try await fixture.handIn(CodeLoginFixture.codes[0], asked).result == .success)
        comeBack(fixture)
        try await fixture.later(.seconds(30))
        #expect(fixture.rig.pushes.sent.count == 1)
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE kind = 'push'") == 0)
    }

    @Test(arguments: StoreKind.all) func nineteenFailingUsersAreNoOutage(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail, service: Self.host)
        try await fail(1..<19, fixture)
        // The push to this user is the nineteenth that fails.
        let asked = try await fixture.login()
        #expect(asked.factor == .push)
        #expect(try await explained(asked, fixture) == "push queued")
        let other = try await fixture.login()
        #expect(try await explained(other, fixture) == "push queued" && fixture.rig.mails.sent.isEmpty)
        try await fixture.later(.seconds(30))
        #expect(try await fixture.steps(other) == "push expired, mail sent")
        try await fail(19..<20, fixture)
        let next = try await fixture.login()
        #expect(try await explained(next, fixture) == "push queued (push_down), mail sent")
    }

    @Test(arguments: StoreKind.all) func chosenServiceAffectsItsOwnSubscription(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail, service: .chosen)
        let bea = try await fixture.rig.enrolled("bea", at: fixture.shop)
        try fixture.rig.addFactor(.mail, of: bea.credential.user, at: fixture.shop, address: "bea@example.com")
        for users in [1..<100, 200..<300] { try await fail(users, fixture) }
        let first = try await fixture.login()
        #expect(try await explained(first, fixture) == "push queued" && fixture.rig.mails.sent.isEmpty)
        let second = try await fixture.login()
        #expect(try await explained(second, fixture) == "push queued (push_down), mail sent")
        let asked = try await fixture.rig.on { [shop = fixture.shop] relay in
            try await relay.login(LoginRequest(subject: .token(bea.user)), by: shop, as: relay.operations.new())
        }
        await fixture.rig.settled()
        #expect(try await explained(asked, fixture) == "push queued")
    }

    @Test(arguments: StoreKind.all) func phoneThatWaitsForChallengesIsReached(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail)
        let phone = try #require(fixture.phone?.credential)
        let ticket = fixture.rig.relay.ticket(for: phone, knowing: [])
        let asked = try await fixture.login()
        #expect(ticket.hasHappened)
        #expect(asked.factor == .push && fixture.rig.mails.sent.isEmpty)
        #expect(try await explained(asked, fixture) == "push queued")
        // It has shown nothing, as if it was asleep.
        try await fixture.later(.seconds(30))
        #expect(try await fixture.steps(asked) == "push expired, mail sent")
    }

    @Test(arguments: StoreKind.all) func shownChallengeIsNotInterrupted(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .totp, .mail)
        let asked = try await fixture.login()
        #expect(try await explained(asked, fixture) == "push queued (push_down), totp sent")
        let phone = try #require(fixture.phone?.credential)
        #expect(try await fixture.rig.on { relay in try await relay.pending(for: phone) }.count == 1)
        #expect(try await explained(asked, fixture) == "push seen (push_down), totp sent")
        try await fixture.later(.seconds(120))
        #expect(try await fixture.steps(asked) == "push seen, totp sent")
        #expect(fixture.rig.mails.sent.isEmpty)
    }

    @Test(arguments: StoreKind.all) func policyCanWait(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail, policies: ["when-push-is-down": "wait"])
        let asked = try await fixture.login()
        #expect(asked.factor == .push)
        try await fixture.later(.seconds(29))
        #expect(try await explained(asked, fixture) == "push queued" && fixture.rig.mails.sent.isEmpty)
        try await fixture.later(.seconds(1))
        #expect(try await fixture.steps(asked) == "push expired, mail sent")
    }

    /// Neither a weaker factor than the login needs nor one that it does not permit begins.
    @Test(arguments: StoreKind.all) func policiesStillHold(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail, .totp)
        for asked in [
            try await fixture.login(minAssurance: .high), try await fixture.login(factors: [.push]),
            try await fixture.login(factors: [.push, .recovery]),
        ] {
            #expect(asked.factor == .push)
            #expect(try await fixture.reported(asked).steps.map(\.factor) == [.push])
        }
        let asked = try await fixture.login(minAssurance: .high)
        #expect(try await explained(asked, fixture) == "push queued (push_down)")
        try await fixture.later(.seconds(120))
        #expect(try await explained(asked, fixture) == "push queued (push_down)")
        #expect(fixture.rig.mails.sent.isEmpty)
        let strong = try await fixture.login(minAssurance: .substantial)
        #expect(try await explained(strong, fixture) == "push queued (push_down), totp sent")
    }

    @Test(arguments: StoreKind.all) func messagesOfOutagesHaveABudgetOfTheirOwn(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail, .sms, policies: ["limit-outage-messages": "2"])
        for _ in 0..<2 {
            let asked = try await fixture.login()
            #expect(try await explained(asked, fixture) == "push queued (push_down), sms sent")
        }
        let asked = try await fixture.login()
        let limited = "push queued (push_down), sms refused (outage_limited), mail refused (outage_limited)"
        #expect(try await explained(asked, fixture) == limited)
        #expect(fixture.rig.mails.sent.isEmpty && fixture.rig.texts.sent.count == 2)
        #expect(try fixture.rig.count("SELECT count(*) FROM sent_code") == 2)
        #expect(
            fixture.rig.registry.number(
                "twoefay_website_limit_reached_total{website=\"shop\",limit=\"outage_messages\"}") == 2)
        try fixture.give(.totp)
        let offered = try await fixture.login()
        #expect(try await explained(offered, fixture) == "push queued (push_down), totp sent")
        // A message that the user requests is not one of the outage.
        try await fixture.later(.seconds(20))
        #expect(try await fixture.begin(.mail, offered).state == .queued)
        #expect(fixture.rig.mails.sent.count == 1)
        // The hour is over.
        fixture.rig.time.advance(by: .seconds(3600))
        let later = try await fixture.login(factors: [.push, .mail])
        #expect(try await explained(later, fixture) == "push queued (push_down), mail sent")
    }

    /// Neither a website without a budget nor the budget of texts is exceeded.
    @Test(arguments: StoreKind.all) func otherBudgetsStillHold(kind: StoreKind) async throws {
        let policies = ["limit-mails-day": "0", "limit-texts-day": "0", "limit-outage-messages": "none"]
        let fixture = try await fixture(kind, .mail, .sms, policies: policies)
        let asked = try await fixture.login()
        let limited = "push queued (push_down), sms refused (website_limited), mail refused (website_limited)"
        #expect(try await explained(asked, fixture) == limited)
    }

    @Test(arguments: StoreKind.all) func failedMailGivesWayToTheNextFactor(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail, .sms)
        fixture.rig.texts.answer(.unregistered(since: nil, reason: "no such number"))
        let asked = try await fixture.login()
        #expect(
            try await explained(asked, fixture) == "push queued (push_down), sms refused (no such number), mail sent")
    }

    /// The relay dies after it has stored the login: at the deadline of the push another one begins
    /// the next factor.
    @Test(arguments: StoreKind.all) func deadlineOfThePushStays(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .mail, service: Self.host)
        let asked = try await fixture.login()
        fixture.rig.pushes.stand(for: Self.unreachable)
        _ = try await fixture.rig.on { relay in await relay.beginBesidePush(of: asked.challenge) }
        await fixture.rig.settled()
        #expect(try await explained(asked, fixture) == "push queued (push_down), mail sent")
        // Once more changes nothing.
        _ = try await fixture.rig.on { relay in await relay.beginBesidePush(of: asked.challenge) }
        #expect(try await explained(asked, fixture) == "push queued (push_down), mail sent")
        #expect(fixture.rig.mails.sent.count == 1)
    }

    /// A push that comes later in the order of factors is not waited for either.
    @Test(arguments: StoreKind.all) func laterPushIsNotWaitedFor(kind: StoreKind) async throws {
        let fixture = try await fixture(kind, .totp, .mail, policies: ["factors": "totp, push, mail"])
        let asked = try await fixture.login()
        #expect(asked.factor == .totp)
        try await fixture.later(.seconds(90))
        #expect(try await explained(asked, fixture) == "totp expired, push queued (push_down), mail sent")
    }
}
