import Crypto
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// A temporary code must not do these: lift a freeze, bind more than it may, or work again.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct TemporaryCodeAttackTests {
    private func fixture(_ kind: StoreKind, hasPhone: Bool = true) async throws -> CodeLoginFixture {
        try await CodeLoginFixture(
            kind, policies: CodeLoginFixture.allowing, hasPhone: hasPhone, webhook: "https://shop.example/hook")
    }

    private func answer(
        _ challenge: ChallengeID, _ code: String, _ fixture: CodeLoginFixture
    ) async -> Result<ChallengeResult, Refusal> {
        do {
            return .success(
                try await fixture.rig.on { [shop = fixture.shop] relay in
                    try await relay.backup(challenge, of: nil, code: code, by: shop, as: relay.operations.new())
                })
        } catch {
            return .failure(error as? Refusal ?? .broken)
        }
    }

    /// Begins the binding of a further phone, and returns the challenge that must approve it.
    private func approval(_ fixture: CodeLoginFixture) async throws -> ChallengeID {
        guard case .approvalRequired(let challenge, _) = await fixture.person.refusedCode() else {
            throw RigFailure("no approval is required")
        }
        await fixture.rig.settled()
        return challenge
    }

    // MARK: Phones and other changes

    @Test(arguments: StoreKind.all) func codeBindsAPhoneOnlyIfItMay(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        let plain = try #require(try await fixture.giveTemporaryCode())
        let challenge = try await approval(fixture)
        #expect(await answer(challenge, plain, fixture) == .failure(Relay.bindsNothing))
        // It is neither used up nor a guess, and the change is not approved.
        #expect(try await fixture.temporaryCode()?.usesLeft == 1)
        #expect(try fixture.budget == 0 && fixture.audited("temporary.used") == 0)
        #expect(await fixture.person.refusedCode(challenge)?.isApprovalRequired == true)
        #expect(try await fixture.handIn(plain, try await fixture.login()).result == .success)

        let enrolling = try #require(try await fixture.giveTemporaryCode(mayEnrol: true))
        let next = try await approval(fixture)
        #expect(try (await answer(next, fixture.other(enrolling), fixture)).get().result == .wait)
        #expect(try fixture.budget == 1)
        fixture.rig.time.advance(by: FailureDelay.pause)
        let approved = try await answer(next, enrolling, fixture).get()
        #expect(approved.result == .success && approved.factor == .operator && approved.assurance == .low)
        let activation = try await fixture.person.furtherCode(next)
        let phone = try TestPhone(pushToken: "new")
        let bound = await fixture.person.bind(phone, activation)
        #expect(bound.bound != nil)
        // The approval is used up with the activation, and the code with the approval.
        #expect(await fixture.person.refusedCode(next) == Relay.noApproval)
        #expect(try await fixture.handIn(enrolling, try await fixture.login()).result == .wait)
    }

    /// An operator who has given a code to a stranger ends what the code has approved, too.
    @Test(arguments: StoreKind.all) func revocationEndsWhatTheCodeHasApproved(kind: StoreKind) async throws {
        for isActivated in [false, true] {
            let fixture = try await fixture(kind)
            let code = try #require(try await fixture.giveTemporaryCode(mayEnrol: true))
            let challenge = try await approval(fixture)
            #expect(try (await answer(challenge, code, fixture)).get().result == .success)
            let activation = isActivated ? try await fixture.person.furtherCode(challenge) : nil
            #expect(try await fixture.temporaryCode()?.usesLeft == 0)
            #expect(try await fixture.revokeTemporaryCode())
            if let activation {
                let bound = await fixture.person.bind(try TestPhone(pushToken: "stranger"), activation)
                #expect(bound.bound == nil && !bound.isWaiting)
            } else {
                #expect(await fixture.person.refusedCode(challenge) == Relay.noApproval)
            }
            #expect(try fixture.rig.count("SELECT count(*) FROM device") == 1)
        }
    }

    /// Other changes need the user's own factors, whatever the code may do.
    @Test(arguments: StoreKind.all) func codeApprovesNoOtherChange(kind: StoreKind) async throws {
        for policies in [CodeLoginFixture.allowing, ["factors": "push, operator"], ["factors": "operator"]] {
            let fixture = try await CodeLoginFixture(kind, policies: policies)
            let code = try #require(try await fixture.giveTemporaryCode(uses: 5, mayEnrol: true))
            guard case .approvalRequired(let challenge, _) = await refusal({ try await fixture.person.addTOTP() })
            else {
                Issue.record("no approval is required")
                continue
            }
            await fixture.rig.settled()
            let outcome = await answer(challenge, code, fixture)
            #expect((try? outcome.get())?.result != .success, "\(policies)")
            #expect(await refusal { try await fixture.person.addTOTP(approval: challenge) } != nil)
            #expect(try await fixture.temporaryCode()?.usesLeft == 5)
        }
    }

    /// The script repeats the check of the approval: a website may ask between the read and the
    /// write.
    @Test(arguments: StoreKind.all) func scriptChecksWhatIsApproved(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        _ = try #require(try await fixture.giveTemporaryCode())
        let challenge = try await approval(fixture)
        let (store, now, id) = (fixture.rig.store, fixture.rig.time.now(), fixture.id)
        let shown = try #require(try await fixture.temporaryCode())
        func closes(mayEnrol: Bool, approving digest: [UInt8], in rig: RelayRig) async throws -> Bool {
            try await rig.on { [shop = fixture.shop] relay in
                let row = try #require(try await store.challenge(challenge, of: shop.id))
                let stored = try await store.codes(
                    for: challenge, of: id, recovery: nil, isTemporary: true, at: now, as: relay.operations.new().id)
                let open = try #require(stored.temporary)
                let claimed = OpenTemporaryCode(
                    factor: open.factor, digest: open.digest, usesLeft: open.usesLeft, mayEnrol: mayEnrol)
                let life = try row.life.after(.answer(.approve, numberMatches: true), at: now)
                let code = UsedCode(
                    user: id, factor: shown.factor, failures: 0, kind: .temporary(claimed, enrolling: digest))
                return try await store.close(
                    ChallengeEnd(
                        challenge: challenge, life: life, factor: .operator, proof: .code, code: code,
                        event: "challenge.answered", at: now), as: relay.operations.new()) != nil
            }
        }
        let digest = Approvable.activation(of: id).digest
        #expect(try await !closes(mayEnrol: true, approving: digest, in: fixture.rig))
        try fixture.rig.execute("UPDATE temporary_code SET may_enrol = 1")
        #expect(try await !closes(mayEnrol: true, approving: SHA256.hash([1]), in: fixture.rig))
        #expect(try await closes(mayEnrol: true, approving: digest, in: fixture.rig))
    }

    // MARK: Stopped users

    @Test(arguments: StoreKind.all) func stoppedUserGetsNoCodeAndUsesNone(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        let code = try #require(try await fixture.giveTemporaryCode(uses: 5))
        let asked = try await fixture.login()
        for change in ["state = 'frozen'", "state = 'locked'", "state = 'disabled'", "expires_at = created_at"] {
            try fixture.rig.execute("UPDATE user SET \(change)")
            #expect((try? await fixture.outcome(of: code, asked).get())?.result != .success, "\(change)")
            let shown = try #require(try await fixture.temporaryCode())
            #expect(try await fixture.giveTemporaryCode(replacing: shown.factor) == nil, "\(change)")
            #expect(shown.usesLeft == 5)
            try fixture.rig.execute("UPDATE user SET state = 'active', expires_at = NULL")
        }
        #expect(try await fixture.handIn(code, asked).result == .success)
    }

    /// It is no recovery code, so it lifts no freeze, and an attempt is a guess.
    @Test(arguments: StoreKind.all) func codeLiftsNoFreeze(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        _ = try await fixture.person.addRecoveryCodesWithApproval(fixture)
        let code = try #require(try await fixture.giveTemporaryCode(uses: 5, mayEnrol: true))
        try fixture.rig.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
        #expect(try await !fixture.person.unlock(by: code))
        #expect(try fixture.budget == 1)
        #expect(try fixture.rig.count("SELECT count(*) FROM user WHERE state = 'frozen'") == 1)
    }

    /// Somebody who tricked the help desk into a code cannot use it after the freeze.
    @Test(arguments: StoreKind.all) func reportOfFraudMakesTheCodeVoid(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        let phone = try #require(fixture.phone)
        let code = try #require(try await fixture.giveTemporaryCode(uses: 5))
        let asked = try await fixture.login()
        _ = try await fixture.rig.decide(.fraud, asked.challenge, by: phone)
        #expect(try await fixture.temporaryCode() == nil)
        #expect(
            try fixture.rig.count(
                "SELECT count(*) FROM audit WHERE event = 'temporary.revoked' AND outcome = 'fraud'") == 1)
        #expect(try await fixture.unlockByOperator())
        #expect(try await fixture.handIn(code, try await fixture.login()).result == .wait)
    }

    // MARK: The store

    @Test(arguments: StoreKind.all) func forgedCodeIsFound(kind: StoreKind) async throws {
        for change in [
            "uses_left = 5", "may_enrol = 1", "expires_at = '2099-01-01 00:00:00.000'",
            "digest = x'\(String(repeating: "77", count: 32))'",
        ] {
            let fixture = try await fixture(kind)
            let code = try #require(try await fixture.giveTemporaryCode())
            let asked = try await fixture.login()
            try fixture.rig.forge("UPDATE temporary_code SET \(change)")
            #expect(await fixture.outcome(of: code, asked) == .failure(.broken), "\(change)")
            #expect(try fixture.audited("temporary.used") == 0)
        }
    }

    /// A used code cannot be made usable again, nor planted for another user.
    @Test(arguments: StoreKind.all) func usedCodeCannotBeRestored(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        let code = try #require(try await fixture.giveTemporaryCode())
        #expect(try await fixture.handIn(code, try await fixture.login()).result == .success)
        try fixture.rig.forge("UPDATE temporary_code SET uses_left = 1, last_used_at = NULL")
        #expect(await fixture.outcome(of: code, try await fixture.login()) == .failure(.broken))
        #expect(try fixture.audited("temporary.used") == 1)
    }

    /// A restored store has codes that may have been used since its copy was made.
    @Test(arguments: StoreKind.all) func allCodesCanBeMadeVoid(kind: StoreKind) async throws {
        let fixture = try await fixture(kind)
        let code = try #require(try await fixture.giveTemporaryCode(uses: 5))
        let asked = try await fixture.login()
        _ = try await fixture.handIn(fixture.other(code), asked)
        let (store, now) = (fixture.rig.store, fixture.rig.time.now())
        try await fixture.rig.on { _ in try await store.run(TemporaryCodes.voidAll(at: now)) }
        #expect(try await fixture.temporaryCode() == nil)
        #expect(try fixture.rig.count("SELECT count(*) FROM factor WHERE kind = 'operator'") == 0)
        #expect(try fixture.rig.count("SELECT code_failures_kept FROM user") == 1)
        #expect(
            try fixture.rig.count(
                "SELECT count(*) FROM audit WHERE event = 'temporary.revoked' AND outcome = 'restore'") == 1)
        fixture.rig.time.advance(by: FailureDelay.pause)
        #expect(try await fixture.handIn(code, asked).result == .wait)
    }
}

extension Refusal {
    fileprivate var isApprovalRequired: Bool { if case .approvalRequired = self { true } else { false } }
}

extension Person {
    /// Adds recovery codes, which the user approves with the phone.
    fileprivate func addRecoveryCodesWithApproval(_ fixture: CodeLoginFixture) async throws -> [String] {
        guard case .approvalRequired(let challenge, let number) = await refusal({ try await addRecoveryCodes() }),
            let phone = fixture.phone
        else { throw RigFailure("no approval is required") }
        await rig.settled()
        _ = try await rig.decide(.approve, challenge, number: number, by: phone)
        return try await rig.on { relay in
            try await relay.addRecoveryCodes(
                username: username, approval: challenge, by: website, as: relay.operations.new()
            ).codes
        }
    }
}
