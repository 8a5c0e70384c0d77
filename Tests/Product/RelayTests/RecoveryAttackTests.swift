import Bytes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Attacks on the way back from a lost factor. The thief reads Ada's mailbox, or knows her name.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RecoveryAttackTests {
    private static let day = Duration.seconds(86_400)

    /// The answer is the same for everybody, and only Ada gets a mail.
    @Test(arguments: StoreKind.all) func noAnswerTellsWhoIsKnown(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let expected = fixture.rig.time.now() + RecoveryLife.linkLife
        let before = fixture.rig.mails.sent.count
        for (username, factor) in [("eve", Factor.totp), ("ada", .hotp), ("ada", .push)] {
            #expect(try await fixture.start(factor, username: username) == expected)
        }
        #expect(fixture.rig.mails.sent.count == before)
        #expect(try await fixture.start() == expected)
        #expect(fixture.rig.mails.sent.count == before + 1)
        for state in [UserState.frozen, .locked, .disabled] {
            try fixture.rig.stop(state)
            #expect(try await fixture.start() == expected)
        }
        try fixture.rig.stop(.active)
        try await fixture.expire(at: fixture.rig.time.now())
        #expect(try await fixture.start() == expected)
        #expect(fixture.rig.mails.sent.count == before + 1)
    }

    @Test(arguments: StoreKind.all) func replayedLinkOpensNothing(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        _ = try await fixture.start()
        let first = try fixture.token()
        _ = try await fixture.start()
        let second = try fixture.token()
        for link in [first, second] {
            _ = try await fixture.open(link)
            for _ in 0..<2 { #expect(await refusal { try await fixture.open(link) } == .notFound) }
        }
        // An expired link.
        _ = try await fixture.start()
        let third = try fixture.token()
        fixture.rig.time.advance(by: RecoveryLife.linkLife)
        #expect(await refusal { try await fixture.open(third) } == .notFound)
    }

    @Test(arguments: StoreKind.all) func linkIsHandedInOnceAlsoAtTheSameTime(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        _ = try await fixture.start()
        let token = try fixture.token()
        let opened = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 { group.addTask { await refusal { try await fixture.open(token) } == nil } }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(opened == 1)
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'recovery.opened'") == 1)
    }

    /// Guessed tokens, digests from the store, tokens of another use or another website.
    @Test(arguments: StoreKind.all) func guessedTokenOpensNothing(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let bank = try await fixture.rig.shop("bank", ["recovery-url": RecoveryFixture.page])
        _ = try await fixture.start()
        let token = try fixture.token()
        let digest = try fixture.rig.text("SELECT lower(hex(link)) AS value FROM recovery")
        for guess in ["", "x", digest, String(token.reversed()), token + "x"] {
            #expect(await refusal { try await fixture.open(guess) } == .notFound)
        }
        #expect(await refusal { try await fixture.open(token, at: bank) } == .notFound)
        let (handle, _) = try await fixture.open(token)
        _ = try await fixture.proved(handle)
        let cancel = try fixture.cancelToken()
        for other in [token, cancel] { #expect(await refusal { try await fixture.state(other) } == .notFound) }
        let shop = fixture.shop
        for other in [token, handle] {
            let refused = await refusal {
                try await fixture.rig.on { relay in try await relay.cancelRecovery(token: other, by: shop) }
            }
            #expect(refused == .notFound)
        }
        #expect(try fixture.phase() == "proved")
    }

    /// The thief of the mailbox cannot prove anything with a code that arrives there.
    @Test(arguments: StoreKind.all) func mailboxAloneProvesNothing(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let handle = try await fixture.opened()
        let challenge = try await fixture.asked(handle)
        let shop = fixture.shop
        let refused = await refusal {
            try await fixture.rig.on { relay in
                try await relay.begin(.mail, of: challenge, by: shop, as: relay.operations.new())
            }
        }
        guard case .forbidden? = refused else {
            Issue.record("a code to the mailbox of the link: \(String(describing: refused))")
            return
        }
        #expect(await refusal { try await fixture.prove(handle, challenge) } != nil)
    }

    /// A login that the thief has got approved is no proof.
    @Test(arguments: StoreKind.all) func otherApprovalIsNoProof(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        let handle = try await fixture.opened()
        let login = try await fixture.ada.login()
        try await fixture.ada.decide(login.challenge, .approve, by: try #require(fixture.phone))
        guard case .forbidden? = await refusal({ try await fixture.prove(handle, login.challenge) }) else {
            Issue.record("the approval of a login proves a recovery")
            return
        }
        // And the approval of one recovery does not prove another one.
        let challenge = try await fixture.asked(handle)
        try await fixture.ada.decide(challenge, .approve, by: try #require(fixture.phone))
        let other = try await fixture.opened()
        guard case .forbidden? = await refusal({ try await fixture.prove(other, challenge) }) else {
            Issue.record("the proof of another recovery is accepted")
            return
        }
    }

    /// An operator's code proves who the person is by nobody but the operator, who can vouch for a recovery.
    @Test(arguments: StoreKind.all) func temporaryCodeIsNoSecondProof(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(
            kind, hasPhone: false, ["factors": "push, totp, hotp, sms, mail, recovery, operator"])
        try fixture.rig.execute("DELETE FROM factor WHERE kind = 'recovery'")
        #expect(try await fixture.rig.giveTemporaryCode(to: try await fixture.id(), mayEnrol: true) != nil)
        let handle = try await fixture.opened()
        #expect(try await fixture.state(handle).proofs == [])
        guard case .forbidden? = await refusal({ try await fixture.prove(handle) }) else {
            Issue.record("a temporary code can prove a recovery")
            return
        }
    }

    /// A number that was changed in the last days may be the thief's.
    @Test(arguments: StoreKind.all) func changedNumberProvesNothingForAWeek(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        try fixture.rig.execute("DELETE FROM factor WHERE kind = 'recovery'")
        try fixture.rig.addFactor(
            .sms, of: try await fixture.id(), at: fixture.shop, address: "+4366012345678")
        fixture.rig.time.advance(by: .seconds(7 * 86_400 - 1))
        let early = try await fixture.opened()
        #expect(try await fixture.state(early).proofs == [])
        fixture.rig.time.advance(by: .seconds(3600))
        let late = try await fixture.opened()
        #expect(try await fixture.state(late).proofs == [.sms])
        let challenge = try await fixture.asked(late)
        // The number changes while the code is under way.
        try fixture.rig.execute("UPDATE factor SET confirmed_at = '\(fixture.rig.time.now().sql)' WHERE kind = 'sms'")
        let text = await fixture.rig.texts.next()
        guard case .code(let code) = text.content else { throw RigFailure("no code") }
        _ = try await fixture.answer(challenge, String(decoding: code.digits.reveal(), as: UTF8.self))
        #expect(await refusal { try await fixture.prove(late, challenge) } != nil)
    }

    /// The website vouches for the new number, and the code for it was typed.
    @Test(arguments: StoreKind.all) func numberOfTheWebsiteProvesNothingForAWeek(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let (ada, rig, number) = (fixture.ada, fixture.rig, "+4366012345678")
        try await ada.drop(.recovery)
        _ = try await ada.change { $0.addresses.updateValue(number, forKey: .sms) }
        await rig.settled()
        #expect(try await ada.confirm(number, try addressCode(await rig.texts.next())))
        rig.time.advance(by: .seconds(7 * 86_400 - 1))
        let handle = try await fixture.opened()
        #expect(try await fixture.state(handle).proofs == [])
        rig.time.advance(by: .seconds(1))
        #expect(try await fixture.state(handle).proofs == [.sms])
        // Another number begins anew.
        let other = "+4366087654321"
        _ = try await ada.change { $0.addresses.updateValue(other, forKey: .sms) }
        await rig.settled()
        #expect(try await ada.confirm(other, try addressCode(await rig.texts.next())))
        #expect(try await fixture.state(handle).proofs == [])
    }

    /// Under the default policy a website cannot add a factor alone, but a finished recovery permits
    /// it.
    @Test(arguments: StoreKind.all) func recoveryIsThePermissionUnderTheDefaultPolicy(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind).under(["further-factors": Policy().furtherFactors.rawValue])
        let (rig, shop) = (fixture.rig, fixture.shop)
        #expect(shop.policy.furtherFactors != .website)
        guard case .approvalRequired? = await refusal({ try await fixture.ada.addTOTP() }) else {
            Issue.record("the website alone adds a factor")
            return
        }
        for isCancelled in [true, false] {
            let handle = try await fixture.opened()
            let id = try await fixture.proved(handle, by: isCancelled ? 0 : 1).recovery.id
            rig.time.advance(by: Self.day)
            let setup = try await fixture.finish(handle)
            if isCancelled {
                try await rig.on { relay in try await relay.cancelRecovery(id, ofUser: "ada", by: shop) }
            }
            let code = try fixture.ada.code(setup.secret)
            let isConfirmed = try? await fixture.ada.confirm(code)
            #expect((isConfirmed == true) == !isCancelled)
        }
        let handle = try await fixture.opened(.push)
        _ = try await fixture.proved(handle, by: 2)
        rig.time.advance(by: Self.day)
        let code = try await rig.on { relay in
            try await relay.recoverPhone(handle: handle, by: shop, as: relay.operations.new())
        }.code
        _ = try await fixture.ada.bound(try TestPhone(pushToken: "new"), code)
        #expect(try rig.devices(.active) == 1 && rig.devices(.revoked) == 1)
    }

    /// Somebody who changed the mail address cannot hide the recovery from its former owner.
    @Test(arguments: StoreKind.all) func formerAddressIsTold(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        for address in ["thief@example.net", "other@example.net"] {
            try await fixture.move(to: address)
        }
        let handle = try await fixture.opened()
        let link = try #require(fixture.rig.mails.sent.last { $0.recoveryLink != nil })
        #expect(link.to == "other@example.net")
        _ = try await fixture.proved(handle)
        let told = fixture.rig.mails.sent.filter { $0.cancelLink != nil }.map(\.to)
        #expect(Set(told) == ["other@example.net", RecoveryFixture.address])
        // Later the former address has nothing to do with the account.
        let late = try await RecoveryFixture(kind, hasPhone: false)
        try await late.move(to: "new@example.com")
        late.rig.time.advance(by: RecoveryLife.addressAge)
        _ = try await late.proved(try await late.opened())
        #expect(late.rig.mails.sent.filter { $0.cancelLink != nil }.map(\.to) == ["new@example.com"])
    }

    /// The owner moves to another mailbox because a thief reads the present one.
    @Test(arguments: StoreKind.all) func newAddressEndsTheRecovery(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let handle = try await fixture.opened()
        _ = try await fixture.proved(handle)
        _ = try await fixture.start()
        let token = try fixture.token()
        try await fixture.move(to: "new@example.com")
        #expect(try await fixture.state(handle).phase == .cancelled)
        #expect(await refusal { try await fixture.open(token) } == .notFound)
    }

    /// The thief has the new secret already when the owner moves to another mailbox.
    @Test(arguments: StoreKind.all) func newAddressTakesTheNewSecretBack(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let handle = try await fixture.opened()
        _ = try await fixture.proved(handle)
        fixture.rig.time.advance(by: Self.day)
        let setup = try await fixture.finish(handle)
        try await fixture.move(to: "new@example.com")
        let code = try fixture.ada.code(setup.secret)
        #expect(await refusal { try await fixture.ada.confirm(code) } != nil)
        #expect(try fixture.rig.count("SELECT count(*) FROM factor WHERE state = 'waiting'") == 0)
        #expect(try await fixture.logsIn(fixture.app))
    }

    @Test(arguments: StoreKind.all) func mailBombIsLimited(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        for _ in 0..<NewRecovery.most + 3 { _ = try await fixture.start() }
        #expect(fixture.rig.mails.sent.count { $0.recoveryLink != nil } == NewRecovery.most)
        // The newest link is valid.
        _ = try await fixture.open(try fixture.token())
        fixture.rig.time.advance(by: NewRecovery.window)
        _ = try await fixture.start()
        #expect(fixture.rig.mails.sent.count { $0.recoveryLink != nil } == NewRecovery.most + 1)
    }

    /// The thief of the mailbox waits until the owner has proved the recovery, or wants to stop it.
    @Test(arguments: StoreKind.all) func thiefCannotContinueTheRecoveryOfTheOwner(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let owner = try await fixture.opened()
        _ = try await fixture.proved(owner)
        fixture.rig.time.advance(by: Self.day)
        let thief = try await fixture.opened()
        #expect(try await fixture.state(thief).phase == .opened)
        #expect(await refusal { try await fixture.finish(thief) } != nil)
        let setup = try await fixture.finish(owner)
        _ = try await fixture.opened()
        #expect(try await fixture.ada.confirm(try fixture.ada.code(setup.secret)))
    }

    /// The thief of the mailbox also has a recovery code of the owner, who has waited already.
    @Test(arguments: StoreKind.all) func newProofWaitsAnew(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        _ = try await fixture.proved(try await fixture.opened())
        fixture.rig.time.advance(by: Self.day)
        let thief = try await fixture.opened()
        #expect(try await fixture.proved(thief, by: 1).phase == .waiting)
        #expect(await refusal { try await fixture.finish(thief) } != nil)
        fixture.rig.time.advance(by: Self.day)
        _ = try await fixture.finish(thief)
    }

    /// The thief of the phone cannot bind a phone at once by the stolen one.
    @Test(arguments: StoreKind.all) func lostPhoneDoesNotEndTheWait(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        let handle = try await fixture.opened(.push)
        let asked = try #require(try await fixture.proved(handle).challenge)
        try await fixture.ada.decide(asked, .approve, by: try #require(fixture.phone))
        #expect(try await fixture.state(handle).phase == .waiting)
        #expect(try fixture.rig.count("SELECT count(*) FROM audit WHERE event = 'recovery.approved'") == 0)
        let shop = fixture.shop
        let refused = await refusal {
            try await fixture.rig.on { relay in
                try await relay.recoverPhone(handle: handle, by: shop, as: relay.operations.new())
            }
        }
        #expect(refused != nil)
        fixture.rig.time.advance(by: Self.day)
        #expect(try await fixture.state(handle).phase == .ready)
    }

    @Test(arguments: StoreKind.all) func everyAnnouncementCancels(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        let (shop, rig) = (fixture.shop, fixture.rig)
        let phone = try #require(fixture.phone)
        for way in 0..<3 {
            let handle = try await fixture.opened()
            _ = try await fixture.proved(handle, by: way)
            let id = try await fixture.state(handle).recovery.id
            let token = try fixture.cancelToken()
            try await rig.on { relay in
                switch way {
                case 0: try await relay.cancelRecovery(token: token, by: shop)
                case 1: try await relay.cancelRecovery(id, by: phone)
                default: try await relay.cancelRecovery(id, ofUser: "ada", by: shop)
                }
            }
            #expect(try await fixture.state(handle).phase == .cancelled)
            rig.time.advance(by: Self.day)
            #expect(await refusal { try await fixture.finish(handle) } != nil)
        }
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'recovery.cancelled'") == 3)
    }

    /// A recovery that is cancelled at the last moment leaves no new secret.
    @Test(arguments: StoreKind.all) func cancelledRecoveryTakesTheNewSecretBack(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let (shop, handle) = (fixture.shop, try await fixture.opened())
        _ = try await fixture.proved(handle)
        fixture.rig.time.advance(by: Self.day)
        let setup = try await fixture.finish(handle)
        let token = try fixture.cancelToken()
        try await fixture.rig.on { relay in try await relay.cancelRecovery(token: token, by: shop) }
        let code = try fixture.ada.code(setup.secret)
        #expect(await refusal { try await fixture.ada.confirm(code) } != nil)
        #expect(try await fixture.logsIn(fixture.app))
        // Likewise the activation of a phone.
        let phones = try await RecoveryFixture(kind)
        let other = try await phones.opened(.push)
        _ = try await phones.proved(other)
        phones.rig.time.advance(by: Self.day)
        let bank = phones.shop
        let activation = try await phones.rig.on { relay in
            try await relay.recoverPhone(handle: other, by: bank, as: relay.operations.new())
        }.code
        let cancel = try phones.cancelToken()
        try await phones.rig.on { relay in try await relay.cancelRecovery(token: cancel, by: bank) }
        #expect(await phones.ada.bind(try TestPhone(pushToken: "thief"), activation).refusal == .unauthenticated)
        #expect(try phones.rig.devices(.active) == 1)
    }

    /// A flood of logins does not keep the announcement from the phone.
    @Test(arguments: StoreKind.all) func announcementIsPushedWhateverElseIsAsked(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, ["push-limit": "1", "login-limit": "4"])
        let handle = try await fixture.opened()
        let challenge = try await fixture.asked(handle)
        _ = try await fixture.answer(challenge, fixture.codes[0])
        for _ in 0..<3 { _ = try? await fixture.ada.login() }
        await fixture.rig.settled()
        let pushes = fixture.rig.pushes.sent.count
        let proved = try await fixture.prove(handle, challenge)
        #expect(fixture.rig.pushes.sent.count == pushes + 1)
        #expect(try fixture.ada.lastAsked() == proved.challenge)
    }

    /// The thief who waits cannot push again and again until the owner taps.
    @Test(arguments: StoreKind.all) func phonesAreAskedAFewTimesOnly(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        let (rig, shop, handle) = (fixture.rig, fixture.shop, try await fixture.opened())
        _ = try await fixture.proved(handle)
        let pushes = rig.pushes.sent.count
        let ask = {
            await refusal {
                try await rig.on { relay in
                    try await relay.askPhones(handle: handle, by: shop, as: relay.operations.new())
                }
            }
        }
        var limited = 0
        for _ in 0..<10 {
            rig.time.advance(by: .seconds(3600))
            if case .limited(let wait)? = await ask(), wait > .zero { limited += 1 }
            await rig.settled()
        }
        #expect(rig.pushes.sent.count == pushes + 3 && limited == 7)
        // Only the announcement counts as a login from a known browser.
        #expect(try rig.count("SELECT count(*) FROM challenge WHERE known = 1") == 1)
    }

    /// A request to end the wait is no reason to end a login of the owner.
    @Test(arguments: StoreKind.all, [true, false])
    func requestToEndTheWaitSupersedesNoLogin(kind: StoreKind, isKnown: Bool) async throws {
        let fixture = try await RecoveryFixture(kind)
        let (rig, shop, handle) = (fixture.rig, fixture.shop, try await fixture.opened())
        _ = try await fixture.proved(handle)
        rig.time.advance(by: .seconds(3600))
        let request = LoginRequest(subject: .token(fixture.ada.token), isKnown: isKnown)
        let login = try await rig.on { relay in
            try await relay.login(request, by: shop, as: relay.operations.new())
        }
        _ = try await rig.on { relay in
            try await relay.askPhones(handle: handle, by: shop, as: relay.operations.new())
        }
        await rig.settled()
        try await fixture.ada.decide(login.challenge, .approve, by: try #require(fixture.phone))
        #expect(try await fixture.ada.reported(login.challenge).result == .success)
    }

    @Test(arguments: StoreKind.all) func stoppedUserRecoversNothing(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let handle = try await fixture.opened()
        _ = try await fixture.proved(handle)
        fixture.rig.time.advance(by: Self.day)
        for state in [UserState.locked, .frozen, .disabled] {
            try fixture.rig.stop(state)
            guard case .forbidden? = await refusal({ try await fixture.finish(handle) }) else {
                Issue.record("a \(state) user gets a factor")
                return
            }
        }
        try fixture.rig.execute("UPDATE user SET state = 'active', prior_state = NULL")
        try await fixture.expire(at: fixture.rig.time.now())
        #expect(await refusal { try await fixture.finish(handle) } == .userExpired)
        try await fixture.expire(at: nil)
        _ = try await fixture.finish(handle)
    }

    /// Wrong codes for the proof count as at a login, and lock codes.
    @Test(arguments: StoreKind.all) func guessesCountForTheProof(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false, ["guesses": "2"])
        let handle = try await fixture.opened()
        let challenge = try await fixture.asked(handle)
        for _ in 0..<2 {
            _ = try? await fixture.answer(challenge, "aaaa-aaaa-aaaa-aaaa")
            fixture.rig.time.advance(by: .seconds(20))
        }
        #expect(try fixture.rig.count("SELECT count(*) FROM user WHERE codes_locked_at IS NOT NULL") == 1)
        #expect(await refusal { try await fixture.prove(handle) } == .codesLocked)
    }

    @Test(arguments: StoreKind.all) func forgedRowLeadsToNoFactor(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let handle = try await fixture.opened()
        _ = try await fixture.proved(handle)
        try fixture.rig.forge("UPDATE recovery SET ready_at = '\(fixture.rig.time.now().sql)'")
        #expect(await refusal { try await fixture.finish(handle) } == .broken)
        #expect(fixture.rig.forgeries.contains { $0.hasPrefix("recovery ") })
    }
}

extension RecoveryFixture {
    func id() async throws -> UserID {
        let shop = shop
        return try await rig.on { relay in try await relay.user(named: "ada", of: shop).id }
    }

    /// Lets the website set the end of the user's access.
    fileprivate func expire(at time: Timestamp?) async throws {
        _ = try await ada.change { $0.expiresAt = .some(time) }
    }

    /// Gives the user another mail address, and confirms it.
    fileprivate func move(to address: String) async throws {
        let shop = shop
        var change = UserChange()
        change.addresses.updateValue(address, forKey: .mail)
        _ = try await rig.on { [change] relay in
            try await relay.change(username: "ada", change, approval: nil, by: shop, as: relay.operations.new())
        }
        await rig.settled()
        let mail = try #require(rig.mails.sent.last { $0.to == address })
        guard case .code(let code) = mail.content else { throw RigFailure("no code") }
        let digits = String(decoding: code.digits.reveal(), as: UTF8.self)
        let confirmed = try await rig.on { relay in
            try await relay.confirm(
                address: address, code: digits, username: "ada", by: shop, as: relay.operations.new())
        }
        guard confirmed else { throw RigFailure("not confirmed") }
    }
}
