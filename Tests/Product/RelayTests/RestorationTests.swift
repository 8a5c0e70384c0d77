import Bytes
import Crypto
import Domain
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// The rows that a restore voids, and the things that relays refuse in the new epoch.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RestorationTests {
    private func epoch(_ fixture: CodeLoginFixture) -> InstallationEpoch {
        InstallationEpoch(
            id: [UInt8](repeating: 5, count: 16), isReady: false, source: [UInt8](repeating: 6, count: 32),
            beganAt: fixture.rig.time.now())
    }

    /// Voids everything of all users, in pages of one user, and returns the sums.
    @discardableResult
    private func void(
        _ fixture: CodeLoginFixture, _ effects: [RestoreEffect] = RestoreEffect.allCases, in epoch: InstallationEpoch
    ) throws -> [RestoreEffect: Int64] {
        let store = fixture.rig.store
        var (user, sums): (UserID?, [RestoreEffect: Int64]) = (nil, [:])
        repeat {
            let last = try store.runBlocking(VoidedRows.last(after: user))
            let page = try store.runBlocking(VoidedRows.page(after: user, upTo: last, effects, in: epoch))
            sums.merge(page.counts) { $0 + $1 }
            user = last
        } while user != nil
        return sums
    }

    private func verify(_ code: String, _ fixture: CodeLoginFixture) async throws -> Factor? {
        try await fixture.rig.on { [shop = fixture.shop] relay in
            try await relay.verify(code: code, of: .username("ada"), by: shop, as: relay.operations.new())
        }
    }

    // MARK: Effects

    @Test(arguments: StoreKind.all) func voidedRowsStayGenuineAndAreCountedAgain(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        for kind in [Factor.totp, .hotp, .sms] { try fixture.give(kind) }
        _ = try await fixture.login()
        let epoch = epoch(fixture)
        let first = try void(fixture, in: epoch)
        #expect(first[.logins] == 1 && first[.totp] == 1 && first[.hotp] == 1 && first[.phones] == 1)
        #expect(try await fixture.rig.notGenuine() == [])
        // A run that was interrupted is repeated from its beginning, with the same result.
        #expect(try void(fixture, in: epoch) == first)
        #expect(try await fixture.rig.notGenuine() == [])
    }

    @Test(arguments: StoreKind.all) func openLoginIsCancelled(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        let asked = try await fixture.login()
        try void(fixture, [.logins], in: epoch(fixture))
        let result = try await fixture.reported(asked)
        #expect(result.result == .failure && result.reason == .cancelled)
        #expect(result.steps.allSatisfy { $0.state == .skipped })
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE kind <> 'webhook'") == 0)
    }

    @Test(arguments: StoreKind.all) func codesOfAnAppUpToNowAreRefused(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.totp)
        let codes = [fixture.totp(), fixture.totp(1)]
        try void(fixture, [.totp], in: epoch(fixture))
        for code in codes {
            #expect(try await verify(code, fixture) == nil)
            fixture.rig.time.advance(by: .seconds(10))
        }
        fixture.rig.time.advance(by: .seconds(60))
        #expect(try await verify(fixture.totp(), fixture) == .totp)
    }

    @Test(arguments: StoreKind.all) func tokenAcceptsNoCodeUntilItIsResynchronised(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        let token = try fixture.give(.hotp)
        try void(fixture, [.hotp], in: epoch(fixture))
        let shown = try await fixture.rig.on { [id = fixture.id] relay in try await relay.factors(of: id) }
        #expect(shown.first { $0.id == token.id }?.needsResync == true)
        // The user has no other code, so a check outside a login finds nothing to check.
        await #expect(throws: Refusal.self) { try await verify(CodeLoginFixture.codes[0], fixture) }
        let asked = try await fixture.login()
        if case .success(let result) = await fixture.outcome(of: CodeLoginFixture.codes[0], asked) {
            #expect(result.result == .wait)
        }
        let isSynced = try await fixture.rig.on { [shop = fixture.shop] relay in
            try await relay.resynchronise(
                username: "ada", codes: [CodeLoginFixture.codes[3], CodeLoginFixture.codes[4]], by: shop,
                as: relay.operations.new())
        }
        #expect(isSynced)
        #expect(try await verify(CodeLoginFixture.codes[5], fixture) == .hotp)
        #expect(try await fixture.rig.notGenuine() == [])
    }

    /// SQL alone does not give the token its right back.
    @Test(arguments: StoreKind.all) func markOfATokenCannotBeRemovedBySQL(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.hotp)
        try void(fixture, [.hotp], in: epoch(fixture))
        // The page signs the row, as the next change of the row does.
        try fixture.rig.execute("UPDATE factor SET failures = 0")
        try fixture.rig.forge("UPDATE factor SET resync_since = NULL")
        await #expect(throws: Refusal.broken) { try await verify(CodeLoginFixture.codes[0], fixture) }
    }

    @Test(arguments: StoreKind.all) func activationAndRecoveryCodesAreUsedUp(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        #expect(try fixture.rig.count("SELECT count(*) FROM activation WHERE used_at IS NULL") > 0)
        try fixture.rig.execute(
            """
            INSERT INTO recovery_code (user_id, digest, factor_id, position)
            SELECT id, x'\(String(repeating: "88", count: 32))', id, 1 FROM user
            """)
        let sums = try void(fixture, [.activations, .recoveryCodes], in: epoch(fixture))
        #expect(sums[.recoveryCodes] == 1)
        #expect(try fixture.rig.count("SELECT count(*) FROM activation WHERE used_at IS NULL") == 0)
        #expect(try fixture.rig.count("SELECT count(*) FROM recovery_code WHERE used_at IS NULL") == 0)
    }

    @Test(arguments: StoreKind.all) func laterSentCodesAreOtherOnes(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.sms)
        try void(fixture, [.sentCodes], in: epoch(fixture))
        let counter = try fixture.rig.count("SELECT counter FROM factor WHERE kind = 'sms'")
        #expect(counter == fixture.rig.time.now().seconds)
        #expect(try fixture.rig.count("SELECT count(*) FROM sent_code") == 0)
    }

    @Test(arguments: StoreKind.all) func phoneIsMarkedUntilItsWebsiteVerifiesIt(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        let phone = try #require(fixture.phone)
        let epoch = epoch(fixture)
        try void(fixture, [.phones], in: epoch)
        func view(_ isVerified: Bool) async throws -> DeviceView {
            try await fixture.rig.on { [shop = fixture.shop] relay in
                try await relay.change(
                    phone.credential.id, ofUser: "ada", name: nil, state: nil, isVerified: isVerified, by: shop)
            }
        }
        #expect(try await view(false).verifySince == epoch.beganAt)
        #expect(try await view(true).verifySince == nil)
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'device.verified'") == 1)
        #expect(try await fixture.rig.notGenuine() == [])
        // Without a mark there is nothing to lift.
        #expect(try await view(true).verifySince == nil)
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'device.verified'") == 1)
    }

    /// SQL alone gives nothing back that the restore has taken away.
    @Test(arguments: [
        "UPDATE factor SET resync_since = NULL", "UPDATE device SET verify_since = NULL",
        "UPDATE challenge SET decided_at = NULL",
    ])
    func takenRightsDoNotComeBackBySQL(sql: String) async throws {
        let fixture = try await CodeLoginFixture(.file)
        try fixture.give(.hotp)
        _ = try await fixture.login()
        try void(fixture, in: epoch(fixture))
        #expect(try await fixture.rig.notGenuine() == [])
        try fixture.rig.forge(sql)
        #expect(try await fixture.rig.notGenuine() != [])
    }

    // MARK: The epoch

    @Test(arguments: StoreKind.all) func epochIsReadyWhenItIsFinished(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        let store = fixture.rig.store
        #expect(try store.runBlocking(InstallationEpoch.current) == nil)
        let former = InstallationEpoch(
            id: [UInt8](repeating: 4, count: 16), isReady: false, source: [UInt8](repeating: 6, count: 32),
            beganAt: fixture.rig.time.now())
        try store.runBlocking(former.begun)
        fixture.rig.time.advance(by: .seconds(1))
        let epoch = epoch(fixture)
        try store.runBlocking(epoch.begun)
        #expect(try store.runBlocking(InstallationEpoch.current) == epoch)
        #expect(try fixture.rig.count("SELECT count(*) FROM installation_epoch") == 1)
        try store.runBlocking(epoch.finished)
        #expect(try store.runBlocking(InstallationEpoch.current)?.isReady == true)
        #expect(try await fixture.rig.notGenuine() == [])
        // SQL alone cannot call a restore complete.
        try fixture.rig.forge("DELETE FROM installation_epoch")
        try store.runBlocking(epoch.begun)
        try fixture.rig.forge("UPDATE installation_epoch SET state = 'ready'")
        #expect(throws: StoreFailure.self) { try store.runBlocking(InstallationEpoch.current) }
    }

    @Test func keysOfAnotherEpochAreOthers() throws {
        let keys = RelayKeys(masterKey: Secret([UInt8](repeating: 1, count: 32)))
        let (one, other) = ([UInt8](repeating: 1, count: 16), [UInt8](repeating: 2, count: 16))
        #expect(keys.bound(to: one).proofs.reveal() != keys.proofs.reveal())
        #expect(keys.bound(to: one).operations.reveal() != keys.bound(to: other).operations.reveal())
        #expect(keys.bound(to: one).proofs.reveal() == keys.bound(to: one).proofs.reveal())
        #expect(keys.bound(to: []).proofs.reveal() == keys.proofs.reveal())
    }

    /// The rolling keys are the same before and after: the copy has them.
    @Test func nonceOfAnotherEpochIsRefused() throws {
        let (now, key) = (Timestamp(seconds: 1_800_000_000), Secret([UInt8](repeating: 3, count: 32)))
        func nonces(_ epoch: [UInt8]) -> Nonces {
            Nonces(key: key, epoch: epoch, since: now - .seconds(100), randomness: SystemRandomness())
        }
        let nonce = nonces([1]).current(at: now)
        #expect(nonces([1]).step(of: nonce, at: now) != nil)
        #expect(nonces([2]).step(of: nonce, at: now) == nil)
        #expect(nonces([]).step(of: nonce, at: now) == nil)
    }

    @Test func answerOfAnotherEpochIsThatOfAnotherRequest() throws {
        let sealer = try RelayRig.sealer()
        let request = IdempotentRequest(
            website: WebsiteID(leading: [UInt8](repeating: 1, count: 16)), route: "POST /login", key: "k",
            content: Array("{}".utf8))
        let row = IdempotencyRow(
            fingerprint: request.stored(by: sealer, in: [1]).fingerprint, state: .done,
            operation: OperationID(leading: [UInt8](repeating: 1, count: 16)), holder: nil, isHeld: false, status: 200,
            sealed: nil, createdAt: Timestamp(seconds: 0))
        #expect(request.isSame(as: row, sealer, in: [1]))
        #expect(!request.isSame(as: row, sealer, in: [2]))
    }

    // MARK: Replayed losses

    @Test(arguments: StoreKind.all) func replayedLocksTakeEffect(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        let (store, phone) = (fixture.rig.store, try #require(fixture.phone))
        let now = fixture.rig.time.now()
        #expect(try store.runBlocking(ReplayedLosses.website(of: fixture.id)) == fixture.shop.id)
        for lock in [ReplayedLosses.Lock.codes(fixture.id), .pin(phone.credential.id), .puk(phone.credential.id)] {
            try store.runBlocking(ReplayedLosses.lock(lock, at: now))
        }
        let locked = """
            SELECT count(*) FROM user u JOIN device d ON d.user_id = u.id
            WHERE u.codes_locked_at IS NOT NULL AND d.pin_failures = \(PhonePIN.tries)
            AND d.puk_failures = \(PhonePIN.pukTries)
            """
        #expect(try fixture.rig.count(locked) == 1)
        // The website owns the user, so no directory has disabled them.
        try store.runBlocking(ReplayedLosses.lock(.directory(fixture.id), at: now))
        #expect(try fixture.rig.count("SELECT count(*) FROM user WHERE state = 'disabled'") == 0)
        try fixture.rig.execute("UPDATE user SET directory = 'staff'")
        try store.runBlocking(ReplayedLosses.lock(.directory(fixture.id), at: now))
        #expect(try fixture.rig.count("SELECT count(*) FROM user WHERE state = 'disabled'") == 1)
        #expect(try await fixture.rig.notGenuine() == [])
    }

    @Test(arguments: StoreKind.all) func keptAnswersAndHeartbeatsAreDeleted(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        let store = fixture.rig.store
        try fixture.rig.execute(
            """
            INSERT INTO idempotency (website_id, digest, fingerprint, state, operation, created_at)
            SELECT website_id, x'\(String(repeating: "88", count: 32))', x'\(String(repeating: "88", count: 32))',
            'running', id, created_at FROM user
            """)
        while try store.runBlocking(RestoredStore.answersDropped) {}
        #expect(try fixture.rig.count("SELECT count(*) FROM idempotency") == 0)
        #expect(try fixture.rig.count("SELECT count(*) FROM operation_secret") == 0)
        try fixture.rig.execute(
            "INSERT INTO relay (id, beat, started_at) SELECT id, 0, created_at FROM user")
        #expect(try store.runBlocking(RestoredStore.relays).count == 1)
        try store.runBlocking(RestoredStore.relaysDropped)
        #expect(try store.runBlocking(RestoredStore.relays) == [])
    }

    @Test(arguments: StoreKind.all) func knownOperationsAreFound(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        let operation = OperationID(leading: [UInt8](repeating: 9, count: 16))
        let recorded = fixture.rig.relay.operations.again(operation)
        try fixture.rig.store.runBlocking(ProgramEvents.record("test.event", at: fixture.rig.time.now(), as: recorded))
        let unknown = [UInt8](repeating: 8, count: 16)
        #expect(
            try fixture.rig.store.runBlocking(RestoredStore.known([operation.bytes, unknown])) == [operation.bytes])
    }
}
