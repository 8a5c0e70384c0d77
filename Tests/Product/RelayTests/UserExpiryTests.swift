import Bytes
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Users with an expiry, such as temporary staff: no login succeeds after it.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct UserExpiryTests {
    private let fixture: TwoWebsitesFixture
    private let rig: RelayRig

    private static func set(_ expiresAt: Timestamp?, _ username: String, _ rig: RelayRig, at shop: Website) async throws
    {
        var change = UserChange()
        change.expiresAt = .some(expiresAt)
        let changed = try await rig.on { [change] relay in
            try await relay.change(
                username: username, change, approval: nil, by: shop, as: relay.operations.new())
        }
        #expect(changed.user.expiresAt == expiresAt)
    }

    private static func row(_ fixture: TwoWebsitesFixture) async throws -> UserRow {
        try await fixture.rig.on { relay in try await relay.user(named: "ada", of: fixture.shop) }
    }

    private static func set(_ expiresAt: Timestamp?, _ fixture: TwoWebsitesFixture) async throws {
        try await set(expiresAt, "ada", fixture.rig, at: fixture.shop)
    }

    init() async throws {
        fixture = try await TwoWebsitesFixture(.memory)
        rig = fixture.rig
    }

    @Test(arguments: StoreKind.all) func loginOfAnExpiredUserFailsUntilAnotherTimeIsSet(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let end = rig.time.now() + .seconds(60)
        try await Self.set(end, fixture)
        rig.time.advance(by: .milliseconds(59_999))
        #expect(try await Self.row(fixture).state == .active)
        let inTime = try await fixture.ask()
        #expect(try await rig.decide(.approve, inTime.challenge, number: "47", by: fixture.first) == .success)

        rig.time.advance(by: .milliseconds(1))
        let late = try await fixture.ask()
        #expect(late.number == nil && late.factor == nil)
        let result = try await fixture.reported(late)
        #expect(result.result == .failure && result.reason == .userExpired)
        #expect(try await Self.row(fixture).state == .expired)
        #expect(try rig.count("SELECT count(*) FROM user WHERE state <> 'active'") == 0)
        let devices = try await rig.on { relay in
            try await relay.devices(of: try await relay.user(named: "ada", of: fixture.shop))
        }
        #expect(devices.count == 2 && devices.allSatisfy { $0.hasExpired(at: rig.time.now()) })
        // The users of others do not expire with her.
        #expect(try await rig.on { relay in try await relay.user(named: "bob", of: fixture.shop) }.state == .active)

        for time in [rig.time.now() + .seconds(60), nil] {
            try await Self.set(time, fixture)
            let asked = try await fixture.ask()
            #expect(try await rig.decide(.approve, asked.challenge, number: "47", by: fixture.first) == .success)
        }
    }

    @Test(arguments: StoreKind.all) func openLoginCannotBeApprovedAfterTheExpiry(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let asked = try await fixture.ask()
        try await Self.set(rig.time.now() + .seconds(30), fixture)
        rig.time.advance(by: .seconds(30))
        let refused = await refusal {
            try await rig.decide(.approve, asked.challenge, number: "47", by: fixture.first)
        }
        // As with a locked user, the phone does not learn the reason.
        #expect(refused == .unauthenticated)
        #expect(try fixture.refusals(.revoked, by: fixture.first, about: asked.challenge) == 1)
        #expect(try await fixture.reported(asked).result == .wait)
        // The phone is not asked about it any more, and may deny it.
        let pending = try await rig.on { relay in try await relay.pending(for: fixture.first.credential) }
        #expect(pending.isEmpty)
        #expect(try await rig.decide(.deny, asked.challenge, by: fixture.first) == .failure)
        #expect(try rig.count("SELECT sum(login_successes) FROM device") == 0)
    }

    @Test(arguments: StoreKind.all) func codeIsRefusedAfterTheExpiry(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind, hasPhone: false)
        try fixture.give(.totp)
        let asked = try await fixture.login()
        try await Self.set(fixture.rig.time.now(), "ada", fixture.rig, at: fixture.shop)
        for code in [fixture.totp(), CodeLoginFixture.wrong] {
            guard case .failure(.forbidden(let text)) = await fixture.outcome(of: code, asked) else {
                throw RigFailure("\(code) is not refused")
            }
            #expect(text.english.contains("has expired"))
        }
        // Neither the right code nor the wrong one is used or counted.
        #expect(try fixture.budget == 0)
        try await Self.set(nil, "ada", fixture.rig, at: fixture.shop)
        #expect(try await fixture.handIn(fixture.totp(), asked).result == .success)
    }

    @Test(arguments: StoreKind.all) func noFactorBeginsAfterTheExpiry(kind: StoreKind) async throws {
        let fixture = try await CodeLoginFixture(kind)
        try fixture.give(.totp)
        let asked = try await fixture.login()
        try await Self.set(fixture.rig.time.now() + .seconds(10), "ada", fixture.rig, at: fixture.shop)
        // The deadline of the push.
        try await fixture.later(.seconds(30))
        #expect(try await fixture.steps(asked) == "push sent")
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE kind = 'next'") == 0)
        #expect(await refusal { try await fixture.begin(.totp, asked) } == .userExpired)
        #expect(try await fixture.reported(asked).result == .wait)
        // The website can begin the factor after another expiry.
        try await Self.set(nil, "ada", fixture.rig, at: fixture.shop)
        #expect(try await fixture.begin(.totp, asked).factor == .totp)
        #expect(try await fixture.handIn(fixture.totp(), asked).result == .success)
    }

    /// Otherwise somebody could get a factor that counts as soon as the user is prolonged.
    @Test(arguments: StoreKind.all) func expiredUserGetsNoPhoneAndNoFactor(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop", policies: ["further-factors": "website", "addresses": "confirmed"])
        let ada = try await Person.registered("ada", at: shop, rig)
        try await Self.set(rig.time.now(), "ada", rig, at: shop)
        let secret = Secret(Array(repeating: 7, count: 20))
        #expect(await refusal { try await ada.addTOTP() } == .userExpired)
        #expect(await refusal { try await ada.addHOTP(secret) } == .userExpired)
        #expect(await ada.refusedCode() == .userExpired)
        // The code from the time before.
        #expect(await ada.bind(try TestPhone(pushToken: "late"), ada.code) == .failure(.unauthenticated))
        #expect(try rig.count("SELECT count(*) FROM device") == 0)
        try await Self.set(nil, "ada", rig, at: shop)
        _ = try await ada.bound(try TestPhone(pushToken: "late"), ada.code)
    }

    /// The user approved the phone before the expiry, and the phone asks for the result after it.
    @Test(arguments: StoreKind.all) func approvedPhoneIsNotAdmittedAfterTheExpiry(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop()
        let ada = try await Person.registered("ada", at: shop, rig)
        let code = try await ada.furtherCode()
        let first = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        let second = try TestPhone(pushToken: "second")
        let number = try #require(await ada.bind(second, code).number)
        await rig.settled()
        try await ada.decide(try ada.lastAsked(), .approve, number, by: first)
        try await Self.set(rig.time.now(), "ada", rig, at: shop)
        #expect(await ada.bind(second, code).bound == nil)
        #expect(try rig.devices(.active) == 1)
        #expect(try rig.count("SELECT count(*) FROM challenge WHERE used_by IS NOT NULL") == 0)
        try await Self.set(nil, "ada", rig, at: shop)
        #expect(await ada.bind(second, code).bound != nil)
    }

    @Test(arguments: StoreKind.all) func approvalIsNotUsedAfterTheExpiry(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop()
        let ada = try await Person.registered("ada", at: shop, rig)
        let phone = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        guard case .approvalRequired(let challenge, let number) = await refusal({ try await ada.addTOTP() }) else {
            throw RigFailure("not asked")
        }
        try await ada.decide(challenge, .approve, number, by: phone)
        try await Self.set(rig.time.now(), "ada", rig, at: shop)
        #expect(await refusal { try await ada.addTOTP(approval: challenge) } == .userExpired)
        #expect(await ada.refusedCode(challenge) == .userExpired)
        try await Self.set(nil, "ada", rig, at: shop)
        let setup = try await ada.addTOTP(approval: challenge)
        #expect(try await ada.confirm(try ada.code(setup.secret)))
    }

    @Test(arguments: StoreKind.all) func addressIsNotConfirmedAfterTheExpiry(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop()
        let ada = try await Person.registered("ada", at: shop, rig)
        let address = "new@example.com"
        _ = try await ada.change { $0.addresses.updateValue(address, forKey: .mail) }
        let code = try addressCode(await rig.mails.next())
        try await Self.set(rig.time.now(), "ada", rig, at: shop)
        #expect(await refusal { try await ada.confirm(address, code) } == .userExpired)
        #expect(await refusal { try await ada.sendCode(to: address) } == .userExpired)
        #expect(
            await refusal { try await ada.change { $0.addresses.updateValue("b@example.com", forKey: .mail) } }
                == .userExpired)
        try await Self.set(nil, "ada", rig, at: shop)
        #expect(try await ada.confirm(address, code))
    }

    /// Without the refusal, the code would be used up, or a wrong one counted.
    @Test(arguments: StoreKind.all) func recoveryCodeIsNotUsedAfterTheExpiry(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["recovery-check": "off"])
        let ada = try await Person.registered("ada", at: shop, rig)
        let codes = try await ada.addRecoveryCodes()
        try await Self.set(rig.time.now(), "ada", rig, at: shop)
        for code in [codes[0], "wrong"] {
            #expect(await refusal { try await ada.unlock(by: code) } == .userExpired)
        }
        #expect(try rig.count("SELECT count(*) FROM recovery_code WHERE used_at IS NOT NULL") == 0)
        #expect(try rig.count("SELECT code_failures FROM user") == 0)
        try rig.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
        // The code lifts the freeze, and the expiry stays.
        #expect(try await ada.unlock(by: codes[0]))
        #expect(try await rig.on { relay in try await relay.user(named: "ada", of: shop).state } == .expired)
    }

    @Test(arguments: StoreKind.all) func websiteCannotApproveAfterTheExpiry(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["answers": "website"])
        let (rig, shop) = (fixture.rig, fixture.shop)
        let asked = try await fixture.ask(number: nil)
        try await Self.set(rig.time.now() + .seconds(30), fixture)
        rig.time.advance(by: .seconds(30))
        func answer(_ decision: Decision) async throws -> ChallengeLife.Result {
            try await rig.on { relay in
                try await relay.answer(asked.challenge, of: nil, decision, by: shop, as: relay.operations.new())
            }
        }
        #expect(await refusal { try await answer(.approve) } == .userExpired)
        #expect(try await fixture.reported(asked).result == .wait)
        #expect(try await answer(.deny) == .failure)
    }

    @Test(arguments: StoreKind.all) func websiteBindsNoPhoneOfAnExpiredUser(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.website("shop", policies: ["answers": "website"])
        let ada = try await Person.registered("ada", at: shop, rig)
        func bind() async throws {
            _ = try await rig.on { relay in
                try await relay.bind(token: ada.token, pushToken: "token", by: shop, as: relay.operations.new())
            }
        }
        try await Self.set(rig.time.now(), "ada", rig, at: shop)
        #expect(await refusal { try await bind() } == .userExpired)
        #expect(try rig.count("SELECT count(*) FROM device") == 0)
        try await Self.set(nil, "ada", rig, at: shop)
        try await bind()
    }

    /// A lock says more than the expiry, and stays when the expiry is removed.
    @Test func lockedUserStaysLocked() async throws {
        #expect(try await fixture.lock())
        try await Self.set(rig.time.now(), fixture)
        #expect(try await Self.row(fixture).state == .locked)
        #expect(try await fixture.reported(try await fixture.ask()).reason == .locked)
        try await Self.set(nil, fixture)
        #expect(try await fixture.reported(try await fixture.ask()).reason == .locked)
    }

    /// Somebody with access to the database cannot prolong a user.
    @Test(arguments: StoreKind.all) func expiryCannotBeRemovedBySQL(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        try await Self.set(fixture.rig.time.now(), fixture)
        try fixture.rig.forge("UPDATE user SET expires_at = NULL WHERE username = 'ada'")
        #expect(await refusal { try await fixture.ask() } == .broken)
    }

    /// As with a lock, the website cannot undo what the operator has decided.
    @Test(arguments: StoreKind.all) func websiteCanOnlyShortenAnExpiryOfTheOperator(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let user = try await Self.row(fixture).id
        func setByOperator(_ expiresAt: Timestamp?) async throws {
            let isSet = try await rig.on { relay in
                try await rig.store.run(
                    Expiries.set(user, to: expiresAt, at: rig.time.now(), as: relay.operations.new()))
            }
            #expect(isSet)
        }
        let end = rig.time.now() + .seconds(600)
        try await setByOperator(end)
        for wanted in [nil, end + .milliseconds(1)] {
            #expect(await refusal { try await Self.set(wanted, fixture) } == .expiryOfOperator)
        }
        #expect(try await Self.row(fixture).expiresAt == end)
        let earlier = end - .seconds(300)
        for wanted in [end, earlier] { try await Self.set(wanted, fixture) }
        // It is still the operator's.
        #expect(await refusal { try await Self.set(end, fixture) } == .expiryOfOperator)
        #expect(try await Self.row(fixture).expiresBy == .operator)
        // Other changes are not affected.
        _ = try await rig.on { relay in
            var change = UserChange()
            change.language = .some("de")
            return try await relay.change(
                username: "ada", change, approval: nil, by: fixture.shop, as: relay.operations.new())
        }
        try await setByOperator(nil)
        for wanted in [end, nil] { try await Self.set(wanted, fixture) }
        #expect(try await Self.row(fixture).expiresBy == nil)
    }

    /// The website's request was read before the operator set the time.
    @Test(arguments: StoreKind.all) func storeRefusesToProlongAnExpiryOfTheOperator(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let user = try await Self.row(fixture).id
        let now = rig.time.now()
        var change = UserChange()
        change.expiresAt = .some(nil)
        let outcome = try await rig.on { [change] relay in
            _ = try await rig.store.run(Expiries.set(user, to: now, at: now, as: relay.operations.new()))
            return try await rig.store.change(
                UserUpdate(
                    user: user, website: fixture.shop.id, change: change, addresses: [], isVouchedFor: true, at: now),
                as: relay.operations.new())
        }
        #expect(outcome == .expiryOfOperator)
        #expect(try await Self.row(fixture).expiresAt == now)
    }

    @Test func registrationMayHaveAnExpiry() async throws {
        let registration = Registration(
            username: "eve", email: nil, phone: nil, displayName: nil, language: nil, expiresAt: rig.time.now())
        _ = try await rig.on { [fixture] relay in
            try await relay.register(registration, by: fixture.shop, as: relay.operations.new())
        }
        let row = try await rig.on { [fixture] relay in try await relay.user(named: "eve", of: fixture.shop) }
        #expect(row.state == .expired && row.expiresAt == rig.time.now())
    }
}
