import Domain
import Log
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The end of a challenge. A reported result never changes.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ChallengeEndTests {
    /// Approves with a decision that was accepted in time and has waited for the store since.
    private func approveFromBefore(_ asked: OpenedChallenge, _ fixture: TwoWebsitesFixture) async throws
        -> ChallengeEndResult?
    {
        let closing = ChallengeEnd(
            challenge: asked.challenge,
            life: ChallengeLife(state: .answered, decision: .approve, reason: nil, expiresAt: asked.expiresAt),
            factor: .push, proof: .signed, device: fixture.first.credential, event: "challenge.answered",
            at: asked.expiresAt - .milliseconds(5))
        return try await fixture.rig.on { relay in
            try await relay.store.close(closing, as: relay.operations.new())
        }
    }

    @Test(arguments: StoreKind.all) func challengeReportedExpiredCannotBeApproved(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        fixture.rig.time.advance(by: .seconds(300))
        #expect(try await fixture.reported(asked).reason == .expired)
        #expect(try await approveFromBefore(asked, fixture) == nil)
        #expect(try await fixture.reported(asked).reason == .expired)
    }

    @Test(arguments: StoreKind.all) func challengeExpiredForThePhoneCannotBeApproved(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        fixture.rig.time.advance(by: .seconds(300))
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await fixture.rig.decide(.approve, asked.challenge, number: "47", by: fixture.first)
        }
        #expect(try await approveFromBefore(asked, fixture) == nil)
    }

    @Test(arguments: StoreKind.all) func challengeExpiredAtBackupCannotBeApproved(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        fixture.rig.time.advance(by: .seconds(300))
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await fixture.rig.on { relay in
                try await relay.backup(
                    asked.challenge, of: nil, code: "123456", by: fixture.shop, as: relay.operations.new())
            }
        }
        #expect(try await approveFromBefore(asked, fixture) == nil)
    }

    /// In the other order, the approval comes first, and later requests report it.
    @Test(arguments: StoreKind.all) func timelyApprovalIsReported(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        fixture.rig.time.advance(by: .seconds(300))
        #expect(try await approveFromBefore(asked, fixture) != nil)
        #expect(try await fixture.reported(asked).result == .success)
    }

    @Test(arguments: StoreKind.all) func expiredChallengeIsNotSuperseded(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        fixture.rig.time.advance(by: .seconds(300))
        _ = try await fixture.ask()
        #expect(try await fixture.reported(asked).reason == .expired)
        #expect(try fixture.rig.count("SELECT count(*) FROM challenge WHERE reason = 'superseded'") == 0)
        try await fixture.rig.on { relay in await relay.processDueEntries() }
        await fixture.rig.settled()
        #expect(try await fixture.reported(asked).reason == .expired)
    }

    @Test(arguments: StoreKind.all) func expiredChallengeIsNotFailedByALock(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        fixture.rig.time.advance(by: .seconds(300))
        #expect(try await fixture.lock())
        #expect(try await fixture.reported(asked).reason == .expired)
    }

    /// Approvals end with the phone that may have given them.
    @Test(arguments: StoreKind.all) func expiredChallengeIsNotCancelled(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["number": "0"])
        let person = try await Person.registered("ada", at: shop, rig)
        let phone = try await person.bound(try TestPhone(pushToken: "push"), person.code)
        guard case .approvalRequired(let approval, _) = await person.refusedCode() else { throw RigFailure("?") }
        rig.time.advance(by: .seconds(300))
        try await rig.on { relay in try await relay.unbind(by: phone) }
        #expect(try await person.reported(approval).reason == .expired)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'challenge.ended'") == 0)
        try await rig.on { relay in await relay.processDueEntries() }
        await rig.settled()
        #expect(try await person.reported(approval).reason == .expired)
    }

    /// An approval that is refused for the place or the number was judged by the state of the phone
    /// and its user. If that changed meanwhile, the answer is judged again.
    @Test(arguments: [Reason.place, .wrongNumber], StoreKind.all)
    func refusedApprovalEndsNothingIfTheJudgedStateChanged(reason: Reason, kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        let closing = ChallengeEnd(
            challenge: asked.challenge,
            life: ChallengeLife(state: .failed, decision: nil, reason: reason, expiresAt: asked.expiresAt),
            factor: .push, proof: .signed, device: fixture.first.credential, event: "challenge.answered",
            at: fixture.rig.time.now())
        func end() async throws -> Bool {
            try await fixture.rig.on { relay in try await relay.end(closing, as: relay.operations.new()) }
        }
        for (change, repair) in [
            ("device SET failures = 1", "device SET failures = 0"),
            ("user SET state = 'locked'", "user SET state = 'active'"),
        ] {
            try fixture.rig.execute("UPDATE \(change)")
            #expect(try await !end(), "\(change)")
            try fixture.rig.execute("UPDATE \(repair)")
        }
        #expect(try await end())
        #expect(try await fixture.reported(asked).reason == reason)
    }

    // MARK: Notification of the end

    @Test(arguments: StoreKind.all) func everyEndIsAuditedAndLogged(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let superseded = try await fixture.ask()
        let locked = try await fixture.ask()
        #expect(try await fixture.lock())
        for (asked, reason) in [(superseded, "superseded"), (locked, "locked")] {
            let sql = """
                SELECT count(*) FROM audit WHERE event = 'challenge.ended' AND outcome = '\(reason)'
                AND challenge_id = x'\(asked.challenge)' AND user_id = x'\(fixture.first.credential.user)'
                """
            #expect(try fixture.rig.count(sql) == 1)
        }
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'challenge.ended'") == 2)
        let lines = fixture.rig.sink.drain().filter { $0.contains("event=challenge.ended") }
        #expect(lines.count == 1)
        #expect(lines[0].contains("\(superseded.challenge)") && lines[0].contains("reason=superseded"))
    }

    /// The store did not confirm the write in time, so the held request reads the result itself.
    @Test func unknownEndAnswersTheHeldRequest() async throws {
        let fixture = try await TwoWebsitesFixture(.memory)
        let asked = try await fixture.ask()
        let ticket = fixture.rig.relay.heldRequests.ticket(for: .challenge(asked.challenge))
        let life = ChallengeLife(state: .cancelled, decision: nil, reason: .cancelled, expiresAt: asked.expiresAt)
        let closing = ChallengeEnd(
            challenge: asked.challenge, life: life, event: "challenge.cancelled", at: fixture.rig.time.now())
        await fixture.rig.settled()
        fixture.rig.store.close()
        await #expect(throws: Refusal.unavailable) {
            try await fixture.rig.on { relay in try await relay.end(closing, as: relay.operations.new()) }
        }
        #expect(fixture.rig.relay.heldRequests.count == 0)
        ticket.cancel()
    }

    /// The website's policy changed between the two attempts. The stored challenge asks for two digits.
    @Test(arguments: StoreKind.all) func repeatedLoginReturnsTheStoredNumber(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let operation = rig.relay.operations.new(isRepeatable: true)
        let login: @Sendable (Website, Domain.Operation) async throws -> OpenedChallenge = { website, operation in
            try await rig.on { relay in
                try await relay.login(LoginRequest(subject: .token(fixture.ada)), by: website, as: operation)
            }
        }
        let first = try await login(fixture.shop, operation)
        var policy = fixture.shop.policy
        policy.number = 6
        let edited = Website(
            id: fixture.shop.id, name: fixture.shop.name, displayName: fixture.shop.displayName, policy: policy)
        let second = try await login(edited, rig.relay.operations.again(operation.id))
        #expect(first.number?.count == 2)
        #expect(second == first)
    }
}
