import Domain
import Log
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// What somebody was told as the end of a challenge stays its end.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ChallengeEndTests {
    /// An approval that was judged in time and has waited for the store since.
    private func approveFromBefore(_ asked: OpenedChallenge, _ cast: TwoWebsitesFixture) async throws
        -> ChallengeEndResult?
    {
        let closing = ChallengeEnd(
            challenge: asked.challenge,
            life: ChallengeLife(state: .answered, decision: .approve, reason: nil, expiresAt: asked.expiresAt),
            factor: .push, proof: .signed, device: cast.first.credential, event: "challenge.answered",
            at: asked.expiresAt - .milliseconds(5))
        return try await cast.rig.on { relay in
            try await relay.store.close(closing, as: relay.operations.new())
        }
    }

    @Test(arguments: StoreKind.all) func challengeReportedExpiredCannotBeApproved(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        cast.rig.time.advance(by: .seconds(300))
        #expect(try await cast.told(asked).reason == .expired)
        #expect(try await approveFromBefore(asked, cast) == nil)
        #expect(try await cast.told(asked).reason == .expired)
    }

    @Test(arguments: StoreKind.all) func challengeExpiredForThePhoneCannotBeApproved(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        cast.rig.time.advance(by: .seconds(300))
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await cast.rig.decide(.approve, asked.challenge, number: "47", by: cast.first)
        }
        #expect(try await approveFromBefore(asked, cast) == nil)
    }

    @Test(arguments: StoreKind.all) func challengeExpiredAtBackupCannotBeApproved(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        cast.rig.time.advance(by: .seconds(300))
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await cast.rig.on { relay in
                try await relay.backup(
                    asked.challenge, of: nil, code: "123456", by: cast.shop, as: relay.operations.new())
            }
        }
        #expect(try await approveFromBefore(asked, cast) == nil)
    }

    /// The other way round: the approval was first, and whoever asks afterwards is told so.
    @Test(arguments: StoreKind.all) func timelyApprovalIsReported(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        cast.rig.time.advance(by: .seconds(300))
        #expect(try await approveFromBefore(asked, cast) != nil)
        #expect(try await cast.told(asked).result == .success)
    }

    @Test(arguments: StoreKind.all) func expiredChallengeIsNotSuperseded(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        cast.rig.time.advance(by: .seconds(300))
        _ = try await cast.ask()
        #expect(try await cast.told(asked).reason == .expired)
        #expect(try cast.rig.count("SELECT count(*) FROM challenge WHERE reason = 'superseded'") == 0)
        try await cast.rig.on { relay in await relay.processDueEntries() }
        await cast.rig.settled()
        #expect(try await cast.told(asked).reason == .expired)
    }

    @Test(arguments: StoreKind.all) func expiredChallengeIsNotFailedByALock(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        cast.rig.time.advance(by: .seconds(300))
        #expect(try await cast.lock())
        #expect(try await cast.told(asked).reason == .expired)
    }

    /// Approvals end with a phone that may have given them.
    @Test(arguments: StoreKind.all) func expiredChallengeIsNotCancelled(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["number": "0"])
        let person = try await Person.registered("ada", at: shop, rig)
        let phone = try await person.bound(try TestPhone(pushToken: "push"), person.code)
        guard case .approvalRequired(let approval, _) = await person.refusedCode() else { throw RigFailure("?") }
        rig.time.advance(by: .seconds(300))
        try await rig.on { relay in try await relay.unbind(by: phone) }
        #expect(try await person.told(approval).reason == .expired)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'challenge.ended'") == 0)
        try await rig.on { relay in await relay.processDueEntries() }
        await rig.settled()
        #expect(try await person.told(approval).reason == .expired)
    }

    // MARK: Everybody learns of it

    @Test(arguments: StoreKind.all) func everyEndIsAuditedAndLogged(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let superseded = try await cast.ask()
        let locked = try await cast.ask()
        #expect(try await cast.lock())
        for (asked, reason) in [(superseded, "superseded"), (locked, "locked")] {
            let sql = """
                SELECT count(*) FROM audit WHERE event = 'challenge.ended' AND outcome = '\(reason)'
                AND challenge_id = x'\(asked.challenge)' AND user_id = x'\(cast.first.credential.user)'
                """
            #expect(try cast.rig.count(sql) == 1)
        }
        #expect(try cast.rig.count("SELECT count(*) FROM audit WHERE event = 'challenge.ended'") == 2)
        let lines = cast.rig.sink.drain().filter { $0.contains("event=challenge.ended") }
        #expect(lines.count == 1)
        #expect(lines[0].contains("\(superseded.challenge)") && lines[0].contains("reason=superseded"))
    }

    /// The store did not say in time whether it was written: whoever waits looks for himself.
    @Test func unknownEndAnswersTheHeldRequest() async throws {
        let cast = try await TwoWebsitesFixture(.memory)
        let asked = try await cast.ask()
        let ticket = cast.rig.relay.heldRequests.ticket(for: .challenge(asked.challenge))
        let life = ChallengeLife(state: .cancelled, decision: nil, reason: .cancelled, expiresAt: asked.expiresAt)
        let closing = ChallengeEnd(
            challenge: asked.challenge, life: life, event: "challenge.cancelled", at: cast.rig.time.now())
        await cast.rig.settled()
        cast.rig.store.close()
        await #expect(throws: Refusal.unavailable) {
            try await cast.rig.on { relay in try await relay.end(closing, as: relay.operations.new()) }
        }
        #expect(cast.rig.relay.heldRequests.count == 0)
        ticket.cancel()
    }

    /// Its website was edited between the two tries: the phone was told two digits.
    @Test(arguments: StoreKind.all) func repeatedLoginReturnsTheStoredNumber(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let rig = cast.rig
        let operation = rig.relay.operations.new()
        let login: @Sendable (Website, Domain.Operation) async throws -> OpenedChallenge = { website, operation in
            try await rig.on { relay in
                try await relay.login(LoginRequest(subject: .token(cast.ada)), by: website, as: operation)
            }
        }
        let first = try await login(cast.shop, operation)
        var policy = cast.shop.policy
        policy.number = 6
        let edited = Website(
            id: cast.shop.id, name: cast.shop.name, displayName: cast.shop.displayName, policy: policy)
        let second = try await login(edited, rig.relay.operations.again(operation.id))
        #expect(first.number?.count == 2)
        #expect(second == first)
    }
}
