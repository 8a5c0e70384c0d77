import Bytes
import Crypto
import DeliveryOutcomes
import Domain
import Log
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The way back from a lost factor.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RecoveryTests {
    private static let day = Duration.seconds(86_400)

    @Test(arguments: StoreKind.all) func lostAppIsReplacedAfterTheWait(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let expiresAt = try await fixture.start()
        #expect(expiresAt == fixture.rig.time.now() + .seconds(900))
        let mail = try #require(fixture.rig.mails.sent.last { $0.recoveryLink != nil })
        #expect(mail.to == RecoveryFixture.address && mail.expiresAt == expiresAt)
        let token = try fixture.token()
        #expect(token.utf8.count == 43)
        // The store has neither the token nor its secret any more.
        #expect(try fixture.rig.count("SELECT count(*) FROM operation_secret") == 0)
        let (handle, opened) = try await fixture.open(token)
        #expect(opened.phase == .opened && opened.proofs == [.recovery] && opened.recovery.username == "ada")
        let proved = try await fixture.proved(handle)
        let ready = fixture.rig.time.now() + Self.day
        #expect(proved.phase == .waiting && proved.recovery.life.readyAt == ready && proved.recovery.proof == .recovery)
        #expect(try fixture.cancelToken().utf8.count == 43)
        #expect(await refusal { try await fixture.finish(handle) } != nil)
        // The former app is valid until the new one is confirmed.
        fixture.rig.time.advance(by: Self.day - .seconds(60))
        #expect(try await fixture.logsIn(fixture.app))
        let setup = try await fixture.finish(handle)
        #expect(try await fixture.logsIn(fixture.app))
        #expect(try await fixture.ada.confirm(try fixture.ada.code(setup.secret)))
        #expect(try fixture.phase() == "done")
        #expect(try await !fixture.logsIn(fixture.app))
        fixture.rig.time.advance(by: .seconds(10))
        #expect(try await fixture.logsIn(setup.secret))
        #expect(try fixture.events("recovery.done") == [1, 1])
        #expect(await refusal { try await fixture.finish(handle) } != nil)
    }

    @Test(arguments: StoreKind.all) func phoneEndsTheWait(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        let handle = try await fixture.opened()
        #expect(try await fixture.state(handle).proofs == [.push, .recovery])
        // The proof is pushed to the phone; the recovery code is quicker.
        let pushes = fixture.rig.pushes.sent.count
        let proved = try await fixture.proved(handle)
        #expect(proved.phase == .waiting)
        // The announcement is pushed, too, and stands in the state.
        #expect(fixture.rig.pushes.sent.count == pushes + 2)
        let asked = try #require(proved.challenge)
        #expect(try fixture.ada.lastAsked() == asked)
        try await fixture.ada.decide(asked, .approve, by: try #require(fixture.phone))
        #expect(try await fixture.state(handle).phase == .ready)
        let setup = try await fixture.finish(handle)
        #expect(try await fixture.ada.confirm(try fixture.ada.code(setup.secret)))
        #expect(try fixture.phase() == "done")
    }

    /// A phone that gives the second proof has approved the change.
    @Test(arguments: StoreKind.all) func proofByPhoneNeedsNoWait(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        let handle = try await fixture.opened()
        let challenge = try await fixture.asked(handle)
        try await fixture.ada.decide(challenge, .approve, by: try #require(fixture.phone))
        let proved = try await fixture.prove(handle, challenge)
        #expect(proved.phase == .ready && proved.recovery.proof == .phone)
        _ = try await fixture.finish(handle)
    }

    @Test(arguments: StoreKind.all) func denialOnThePhoneCancels(kind: StoreKind) async throws {
        for isLater in [false, true] {
            let fixture = try await RecoveryFixture(kind)
            let handle = try await fixture.opened()
            let asked =
                if isLater { try #require(try await fixture.proved(handle).challenge) } else {
                    try await fixture.asked(handle)
                }
            try await fixture.ada.decide(asked, .deny, by: try #require(fixture.phone))
            #expect(try fixture.phase() == "cancelled")
            #expect(try await fixture.state(handle).phase == .cancelled)
            #expect(try fixture.events("recovery.cancelled") == [1, 1])
            fixture.rig.time.advance(by: Self.day)
            #expect(await refusal { try await fixture.finish(handle) } != nil)
        }
    }

    /// Other changes that end a recovery. The website has shown it as waiting, and learns that it is over.
    @Test(arguments: StoreKind.all, ["factor", "phone", "fraud", "address", "operator"])
    func endByAnotherChangeIsReported(kind: StoreKind, way: String) async throws {
        let fixture = try await RecoveryFixture(kind)
        let (ada, rig, shop) = (fixture.ada, fixture.rig, fixture.shop)
        let phone = try #require(fixture.phone)
        let handle = try await fixture.opened()
        _ = try await fixture.proved(handle)
        #expect(try fixture.events("recovery.cancelled") == [0, 0])
        switch way {
        case "factor": try await ada.drop(.recovery)
        case "phone": try await rig.on { relay in try await relay.unbind(phone.id, ofUser: "ada", by: shop) }
        case "fraud":
            // A report about a login that has ended, as a signed answer makes it.
            let asked = try await ada.login()
            try await ada.decide(asked.challenge, .deny, by: phone)
            let frozen = try await rig.on { relay in
                try await rig.store.freeze(
                    LateFraud(challenge: asked.challenge, phone: phone, at: rig.time.now()), as: relay.operations.new())
            }
            #expect(frozen?.became == .frozen)
        case "address": _ = try await ada.change { $0.addresses.updateValue(nil, forKey: .mail) }
        default:
            let user = try await rig.on { relay in try await relay.user(named: "ada", of: shop).id }
            let isDropped = try await rig.on { relay in
                try await rig.store.run(
                    Factors.drop(.mail, of: user, by: .operator, at: rig.time.now(), as: relay.operations.new()))
            }
            #expect(isDropped)
        }
        #expect(try fixture.phase() == "cancelled")
        #expect(try fixture.events("recovery.cancelled")[0] == 1)
        let reason = ["operator": "factor"][way] ?? way
        #expect(
            try rig.count("SELECT count(*) FROM AuditTrail WHERE event = 'recovery.cancelled' AND note = '\(reason)'")
                == 1)
        // The change by the store alone is that of the operator's tool, which has no log.
        if !["fraud", "operator"].contains(way) {
            #expect(
                rig.sink.lines.count { $0.contains("event=recovery.cancelled ") && $0.contains("outcome=\(reason)") }
                    == 1)
        }
        #expect(try await fixture.state(handle).phase == .cancelled)
    }

    /// The thief of a mailbox has a new secret, and the owner removes the address in time.
    @Test(arguments: StoreKind.all) func endByAnotherChangeTakesTheNewSecretBack(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let handle = try await fixture.opened()
        _ = try await fixture.proved(handle)
        fixture.rig.time.advance(by: Self.day)
        let setup = try await fixture.finish(handle)
        _ = try await fixture.ada.change { $0.addresses.updateValue(nil, forKey: .mail) }
        let code = try fixture.ada.code(setup.secret)
        #expect(await refusal { try await fixture.ada.confirm(code) } != nil)
        #expect(try await fixture.logsIn(fixture.app))
    }

    /// A recovery that has expired has ended already.
    @Test(arguments: StoreKind.all) func expiredRecoveryIsNotReportedAsCancelled(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let handle = try await fixture.opened()
        fixture.rig.time.advance(by: Self.day * 30)
        try await fixture.ada.drop(.recovery)
        #expect(try fixture.events("recovery.cancelled") == [0, 0])
        #expect(try await fixture.state(handle).phase == .expired)
    }

    /// The links of a website without a page of its own lead to the page of the settings, as they
    /// are when the mail is sent.
    @Test(arguments: StoreKind.all) func reloadedPageReachesTheMails(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let page = "https://new.example/recover"
        var policy = Policy()
        try policy.set("recovery-url", to: "https://old.example/recover")
        rig.relay.replace(policy)
        let stored = try await rig.shop()
        try rig.execute("UPDATE website SET policy = '{\"answers\":\"certificate\"}'")
        let shop = try await rig.on { relay in
            try await relay.website(named: "shop", key: SHA256.hash(Array("shop".utf8)))
        }
        #expect(shop.id == stored.id && shop.policy.recoveryURL == policy.recoveryURL)
        let ada = try await Person.registered("ada", at: shop, rig, email: RecoveryFixture.address)
        _ = try await ada.withTOTP()
        // The relay gets other settings between the request and the mail, which is tried again.
        rig.mails.answer(.retry(after: .seconds(30), reason: "busy"))
        _ = try await rig.on { relay in
            try await relay.startRecovery(of: .totp, username: "ada", by: shop, as: relay.operations.new())
        }
        await rig.settled()
        try policy.set("recovery-url", to: page)
        rig.relay.replace(policy)
        rig.time.advance(by: .seconds(60))
        try await rig.on { relay in await relay.processDueEntries() }
        await rig.settled()
        let links = rig.mails.sent.compactMap { mail -> String? in
            guard case .recovery(.begin(let link)) = mail.content else { return nil }
            return String(decoding: link.reveal(), as: UTF8.self)
        }
        #expect(links.count == 2)
        #expect(links.first?.hasPrefix("https://old.example/recover#") == true)
        #expect(links.last?.hasPrefix("\(page)#") == true)
    }

    @Test(arguments: StoreKind.all) func tokenIsReplacedAtOnce(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        _ = try await fixture.ada.addHOTP(Secret(RelayRig.secret))
        let handle = try await fixture.opened(.hotp)
        #expect(try await fixture.state(handle).proofs == [.totp, .recovery])
        _ = try await fixture.proved(handle)
        fixture.rig.time.advance(by: Self.day)
        let (shop, seed) = (fixture.shop, TokenSeed(secret: Secret([UInt8](repeating: 9, count: 20)), counter: 5))
        let operation = fixture.rig.relay.operations.new(isRepeatable: true)
        for attempt in [operation, fixture.rig.relay.operations.again(operation.id)] {
            let token = try await fixture.rig.on { relay in
                try await relay.recoverHOTP(handle: handle, seed: seed, shape: CodeShape(), by: shop, as: attempt)
            }
            #expect(token.counter == 5 && token.state == .active)
        }
        #expect(try fixture.phase() == "done")
        #expect(try fixture.rig.count("SELECT count(*) FROM factor WHERE kind = 'hotp'") == 1)
        #expect(try fixture.events("recovery.done") == [1, 1])
    }

    /// The new phone and the end of the former ones are one change.
    @Test(arguments: StoreKind.all) func newPhoneReplacesAllOthersAtOnce(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, ["devices": "2"])
        let (ada, former) = (fixture.ada, try #require(fixture.phone))
        let second = try await ada.bound(try TestPhone(pushToken: "second"), try await ada.furtherCode())
        let handle = try await fixture.opened(.push)
        #expect(try await fixture.state(handle).proofs == [.totp, .recovery])
        _ = try await fixture.proved(handle)
        fixture.rig.time.advance(by: Self.day)
        let shop = fixture.shop
        let code = try await fixture.rig.on { relay in
            try await relay.recoverPhone(handle: handle, by: shop, as: relay.operations.new())
        }.code
        #expect(try fixture.rig.devices(.active) == 2)
        let open = try await ada.login()
        // All slots are held, and the new phone needs none.
        let new = try await ada.bound(try TestPhone(pushToken: "new"), code)
        #expect(try fixture.rig.devices(.active) == 1 && fixture.rig.devices(.revoked) == 2)
        // The certificates of the two others are in the revocation list.
        #expect(try fixture.rig.count("SELECT count(*) FROM certificate WHERE revoked_at IS NOT NULL") == 2)
        for device in [former, second] {
            let refused = await refusal { try await ada.decide(open.challenge, .approve, by: device) }
            #expect(refused == .unauthenticated)
            #expect(
                try fixture.rig.count(
                    "SELECT count(*) FROM audit WHERE event = 'device.unbound' AND device_id = x'\(device.id)'") == 1)
        }
        #expect(try await ada.decide(open.challenge, .approve, by: new) == .success)
        #expect(try fixture.phase() == "done")
        #expect(try fixture.events("recovery.done") == [1, 1])
        // The repeated request of the phone finds it bound.
        #expect(await ada.bind(try TestPhone(pushToken: "other"), code).refusal == .unauthenticated)
    }

    /// The end-to-end tests run the command itself.
    @Test(arguments: StoreKind.all) func operatorsWordIsAnnouncedAndWaits(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        try fixture.rig.execute("DELETE FROM factor WHERE kind = 'recovery'")
        let handle = try await fixture.opened()
        #expect(try await fixture.state(handle).proofs == [])
        guard case .forbidden? = await refusal({ try await fixture.prove(handle) }) else {
            Issue.record("a proof without a factor")
            return
        }
        #expect(try await fixture.approvedByOperator(handle))
        await fixture.rig.settled()
        #expect(try await fixture.state(handle).phase == .waiting)
        let note = try fixture.rig.text("SELECT note AS value FROM AuditTrail WHERE event = 'recovery.proved'")
        #expect(note == "Ben Berg: passport, seen at the branch")
        // A relay sends the announcement that the operator's tool has written.
        try await fixture.rig.round(after: .seconds(1))
        #expect(fixture.rig.mails.sent.contains { $0.cancelLink != nil })
        fixture.rig.time.advance(by: Self.day)
        _ = try await fixture.finish(handle)
    }

    /// A relay asks the phones about what an operator approved, too.
    @Test(arguments: StoreKind.all) func phonesAreAskedByAnyRelay(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind)
        let handle = try await fixture.opened()
        let pushes = fixture.rig.pushes.sent.count
        #expect(try await fixture.approvedByOperator(handle, asksPhones: true))
        #expect(fixture.rig.pushes.sent.count == pushes)
        for _ in 0..<2 { try await fixture.rig.round(after: .seconds(20)) }
        #expect(fixture.rig.pushes.sent.count == pushes + 1)
        #expect(try fixture.rig.count("SELECT count(*) FROM outbox WHERE kind = 'recovery'") == 0)
        let asked = try #require(try await fixture.state(handle).challenge)
        try await fixture.ada.decide(asked, .approve, by: try #require(fixture.phone))
        #expect(try await fixture.state(handle).phase == .ready)
    }

    /// A recovery that is proved in another browser takes the place of the earlier one.
    @Test(arguments: StoreKind.all) func newLinkNeedsTheProofAndTheWaitAgain(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let first = try await fixture.opened()
        _ = try await fixture.proved(first)
        fixture.rig.time.advance(by: Self.day)
        let second = try await fixture.opened()
        // A link alone ends nothing.
        #expect(try await fixture.state(first).phase == .ready)
        let state = try await fixture.state(second)
        #expect(state.phase == .opened && state.recovery.life.readyAt == nil)
        #expect(await refusal { try await fixture.finish(second) } != nil)
        #expect(try await fixture.proved(second, by: 1).phase == .waiting)
        // The first handle is void now.
        #expect(try await fixture.state(first).phase == .cancelled)
        #expect(await refusal { try await fixture.finish(first) } != nil)
        fixture.rig.time.advance(by: Self.day)
        #expect(try await fixture.state(second).phase == .ready)
        _ = try await fixture.finish(second)
    }

    @Test(arguments: StoreKind.all) func repeatedRequestsChangeNothingTwice(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let (shop, operations) = (fixture.shop, fixture.rig.relay.operations)
        let starting = operations.new(isRepeatable: true)
        for attempt in [starting, operations.again(starting.id)] {
            _ = try await fixture.rig.on { relay in
                try await relay.startRecovery(of: .totp, username: "ada", by: shop, as: attempt)
            }
        }
        await fixture.rig.settled()
        #expect(fixture.rig.mails.sent.count { $0.recoveryLink != nil } == 1)
        let (token, opening) = (try fixture.token(), operations.new(isRepeatable: true))
        let first = try await fixture.open(token, as: opening)
        let again = try await fixture.open(token, as: operations.again(opening.id))
        #expect(first.handle == again.handle)
        let challenge = try await fixture.asked(first.handle)
        _ = try await fixture.answer(challenge, fixture.codes[0])
        let proving = operations.new(isRepeatable: true)
        for attempt in [proving, operations.again(proving.id)] {
            let seen = try await fixture.rig.on { relay in
                try await relay.proveRecovery(handle: first.handle, approval: challenge, by: shop, as: attempt)
            }
            #expect(seen.phase == .waiting)
        }
        await fixture.rig.settled()
        #expect(fixture.rig.mails.sent.count { $0.cancelLink != nil } == 1)
        fixture.rig.time.advance(by: Self.day)
        let finishing = operations.new(isRepeatable: true)
        let setup = try await fixture.finish(first.handle, as: finishing)
        #expect(try await fixture.finish(first.handle, as: operations.again(finishing.id)).secret == setup.secret)
    }

    /// Another relay continues after each step.
    @Test(arguments: StoreKind.all) func restartLosesNothing(kind: StoreKind) async throws {
        let fixture = try await RecoveryFixture(kind, hasPhone: false)
        let other = try fixture.rig.relay(over: fixture.rig.store)
        let (rig, shop) = (fixture.rig, fixture.shop)
        _ = try await fixture.start()
        let token = try fixture.token()
        let handle = try await rig.on { _ in
            try await other.openRecovery(token: token, by: shop, as: other.operations.new())
        }.handle
        _ = try await fixture.proved(handle)
        rig.time.advance(by: Self.day)
        let setup = try await rig.on { _ in
            try await other.recoverTOTP(handle: handle, shape: CodeShape(), by: shop, as: other.operations.new())
        }
        #expect(try await fixture.ada.confirm(try fixture.ada.code(setup.secret)))
        #expect(try fixture.phase() == "done")
    }
}

extension RecoveryFixture {
    /// Approves the recovery of this handle, as `twoefay user approve-recovery` does.
    func approvedByOperator(_ handle: String, asksPhones: Bool = false) async throws -> Bool {
        let code = SpokenCode(of: try await state(handle).recovery.id).text
        let (store, now, shop) = (rig.store, rig.time.now(), shop)
        let drawn = OperationSecret(drawnFrom: SystemRandomness())
        return try await rig.on { relay in
            let user = try await relay.user(named: "ada", of: shop)
            let open = try await relay.recoveries(username: "ada", of: shop)
            guard let row = SpokenCode.recovery(code, among: open, at: now) else { return false }
            let operation = relay.operations.new()
            let delivery = RecoveryMail.Delivery(
                to: user.id, of: shop.id, language: nil, sender: nil, at: now, as: operation,
                by: try RelayRig.sealer(), SystemRandomness())
            let announcement =
                asksPhones ? RecoveryAnnouncement(relay.operations.new(), sender: nil, at: now) : nil
            let proving = try RecoveryProving(
                row, try row.life.proved(by: .operator, wait: shop.policy.wait, at: now), by: .operator, nil,
                note: "Ben Berg: passport, seen at the branch", announcement: announcement, drawn, delivery)
            return try await store.run(Recoveries.proved(proving, as: operation))
        }
    }
}
