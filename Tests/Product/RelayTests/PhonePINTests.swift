import Bytes
import Crypto
import Domain
import JSON
import Log
import Relay
import Storage
import TestSupport
import Testing

/// The PIN of a phone at its approvals.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PhonePINTests {
    @Test(arguments: StoreKind.all) func requiredPINSignsEveryApproval(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        let asked = try await shop.ask()
        #expect(try await shop.shop.demands(on: shop.bound) == ["pin": "set"])
        #expect(try await shop.approve(asked, pin: shop.pin) == .failure(.pin(.unset)))
        try await shop.set()
        #expect(try await shop.shop.demands(on: shop.bound) == ["pin": "sign"])
        #expect(try await shop.approve(asked, pin: nil) == .failure(.pin(.unsigned)))
        #expect(try await shop.approve(asked, pin: shop.puk) == .failure(.pin(.wrong(triesLeft: 2))))
        #expect(try await shop.approve(asked, pin: shop.pin) == .success(.success))
        #expect(try shop.audited("pin.set") == 1 && shop.audited("pin.wrong") == 1)
        // The right PIN forgets the wrong one.
        #expect(try await shop.credential().pin.failures == 0)
    }

    @Test(arguments: StoreKind.all) func threeWrongPINsLockThePIN(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let asked = try await shop.ask()
        for left in [2, 1] {
            #expect(
                try await shop.approve(asked, pin: PINShop.newKey()) == .failure(.pin(.wrong(triesLeft: left))))
        }
        #expect(try await shop.approve(asked, pin: PINShop.newKey()) == .failure(.pin(.locked)))
        #expect(try await shop.approve(asked, pin: shop.pin) == .failure(.pin(.locked)))
        #expect(try await shop.shop.demands(on: shop.bound) == ["pin": "locked"])
        #expect(try shop.audited("pin.wrong") == 2 && shop.audited("pin.locked") == 1)
        #expect(shop.rig.registry.number("twoefay_pins_total{outcome=\"locked\"}") == 1)
        // The user is not locked, and the phone can still deny.
        #expect(try shop.rig.count("SELECT count(*) FROM user WHERE state = 'active'") == 1)
        #expect(try await shop.shop.answer(.deny, by: shop.bound, asked) == .success(.failure))
        #expect(try await shop.shop.answer(.fraud, by: shop.bound) == .success(.failure))
    }

    /// The website and the user learn of a lock.
    @Test(arguments: StoreKind.all) func lockIsAnnounced(kind: StoreKind) async throws {
        let shop = try await PINShop(kind, webhook: "https://shop.example/hook", email: "ada@example.com")
        try await shop.set()
        let asked = try await shop.ask()
        func announced() throws -> [Int64] { try shop.announced("pin.locked") }
        try await shop.guessWrong(asked, 2)
        #expect(try announced() == [0, 0])
        try await shop.guessWrong(asked, 3)
        #expect(try announced() == [1, 1])
        #expect(shop.rig.sink.lines.contains { $0.contains("event=pin.locked") && $0.contains("kind=pin") })
        let device = try await shop.rig.on { [ada = shop.shop.ada] relay in
            try await relay.devices(of: try await relay.user(named: ada.username, of: ada.website)).first
        }
        #expect(device?.pin.state == .locked && device?.pin.pukTriesLeft == 5)
    }

    @Test(arguments: StoreKind.all) func sameAnswerAgainCostsNoTry(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let asked = try await shop.ask()
        let answer = try await shop.answer(asked, pin: PINShop.newKey())
        for _ in 0..<5 {
            #expect(try await shop.post(answer, asked) == .failure(.pin(.wrong(triesLeft: 2))))
        }
        #expect(try await shop.credential().pin.failures == 1)
        #expect(try shop.audited("pin.wrong") == 1)
    }

    /// The signature covers the nonce of its challenge, so the one of an earlier login is a wrong PIN.
    @Test(arguments: StoreKind.all) func signatureOfAnotherLoginIsAWrongPIN(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let first = try await shop.ask()
        let right = try await shop.answer(first, pin: shop.pin)
        #expect(try await shop.post(right, first) == .success(.success))
        let second = try await shop.ask()
        let replayed = try await shop.answer(second, pin: shop.pin, over: first)
        #expect(try await shop.post(replayed, second) == .failure(.pin(.wrong(triesLeft: 2))))
        var stolen = try await shop.answer(second, pin: nil)
        stolen.pinSignature = right.pinSignature
        #expect(try await shop.post(stolen, second) == .failure(.pin(.wrong(triesLeft: 1))))
        #expect(try await shop.approve(second, pin: shop.pin) == .success(.success))
    }

    /// A guess of the number spares no try of the PIN: a wrong PIN leaves the challenge open.
    @Test(arguments: StoreKind.all) func pinIsJudgedBeforeTheNumber(kind: StoreKind) async throws {
        let shop = try await PINShop(kind, ["number": "2"])
        try await shop.set()
        let asked = try await shop.shop.ada.login()
        await shop.rig.settled()
        let number = try #require(asked.number)
        let wrong = number == "11" ? "12" : "11"
        for each in [wrong, number] {
            let answer = try await shop.answer(asked.challenge, pin: PINShop.newKey(), number: each)
            let refused = try await shop.post(answer, asked.challenge)
            #expect([.failure(.pin(.wrong(triesLeft: 2))), .failure(.pin(.wrong(triesLeft: 1)))].contains(refused))
        }
        let right = try await shop.answer(asked.challenge, pin: shop.pin, number: number)
        #expect(try await shop.post(right, asked.challenge) == .success(.success))
    }

    /// Under `optional`, a phone that has a PIN cannot do without it.
    @Test(arguments: StoreKind.all) func optionalPINCannotBeLeftOut(kind: StoreKind) async throws {
        let shop = try await PINShop(kind, pin: .optional)
        let first = try await shop.ask()
        #expect(try await shop.shop.demands(on: shop.bound) == nil)
        #expect(try await shop.approve(first, pin: nil) == .success(.success))
        let second = try await shop.ask()
        // The PIN is set after the phone was read, and before the approval is written.
        let before = try await shop.credential()
        try await shop.set()
        let answer = try await shop.answer(second, pin: nil)
        #expect(try await shop.post(answer, second, by: before) == .failure(.pin(.unsigned)))
        #expect(try await shop.approve(second, pin: shop.pin) == .success(.success))
    }

    @Test func websiteWithoutPINsAsksForNone() async throws {
        let shop = try await PINShop(.memory, pin: .none)
        try await shop.set()
        let asked = try await shop.ask()
        #expect(try await shop.shop.demands(on: shop.bound) == nil)
        #expect(try await shop.approve(asked, pin: PINShop.newKey()) == .success(.success))
        #expect(try await shop.credential().pin.failures == 0)
    }

    /// Somebody who can write to the store can neither replace nor remove a PIN, nor unlock it.
    @Test(arguments: StoreKind.all) func forgedPINIsFound(kind: StoreKind) async throws {
        let key = "x'" + String(repeating: "04", count: 65) + "'"
        for change in ["pin_key = \(key)", "pin_key = NULL", "puk_key = \(key)", "pin_version = 0", "pin_failures = 0"]
        {
            let shop = try await PINShop(kind, pin: .optional)
            try await shop.set()
            let asked = try await shop.ask()
            try await shop.guessWrong(asked, 3)
            let answer = try await shop.answer(asked, pin: shop.pin)
            try shop.rig.forge("UPDATE device SET \(change)")
            let outcome = try await PINShop.outcome { try await shop.rig.post(answer, asked, by: shop.bound) }
            #expect(outcome == .failure(.broken), "\(change)")
        }
    }

    /// Somebody restores the row of a phone from before the lock, or from before a change of the PIN.
    /// Its MAC is right, and the audit has the later event.
    @Test(arguments: StoreKind.all) func restoredPINIsOutdated(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let columns = ["operation", "mac", "pin_key"]
        func restore(_ change: () async throws -> Void) async throws {
            let former = try columns.map {
                "\($0) = x'\(try shop.rig.text("SELECT hex(\($0)) AS value FROM device"))'"
            }
            let version = try shop.rig.count("SELECT pin_version FROM device")
            shop.rig.time.advance(by: .seconds(1))
            try await change()
            let store = shop.rig.store
            #expect(try await shop.rig.on { _ in try await store.run(OutdatedRow.all) }.isEmpty)
            let row = (former + ["pin_failures = 0", "pin_version = \(version)"]).joined(separator: ", ")
            try shop.rig.forge("UPDATE device SET \(row)")
            #expect(try await shop.credential().pin.triesLeft == 3)
        }
        func outdated() async throws -> [String] {
            let store = shop.rig.store
            return try await shop.rig.on { _ in try await store.run(OutdatedRow.all) }.map { "\($0.table) \($0.event)" }
        }
        try await restore { try await shop.guessWrong(try await shop.ask(), 3) }
        #expect(try await outdated() == ["device pin.locked"])
        let new = PINShop.newKey()
        // The next change makes the row new again.
        _ = try await shop.send(try shop.statement("change", 2, pin: new), pin: shop.pin).get()
        try await restore {
            _ = try await shop.send(try shop.statement("change", 3, pin: PINShop.newKey()), pin: new).get()
        }
        #expect(try await outdated() == ["device pin.changed"])
    }

    /// The clocks of two relays differ: a wrong PUK has an earlier time than the lock before it.
    @Test(arguments: StoreKind.all) func changeWithAnEarlierTimeIsNotOutdated(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        shop.rig.time.advance(by: .seconds(1))
        try await shop.guessWrong(try await shop.ask(), 3)
        shop.rig.time.advance(by: .milliseconds(-100))
        let statement = try shop.statement("reset", 2, pin: PINShop.newKey(), puk: PINShop.newKey())
        #expect(try await shop.send(statement, puk: PINShop.newKey()) == .failure(.pin(.pukWrong(triesLeft: 4))))
        #expect(try shop.audited("puk.wrong") == 1)
        let store = shop.rig.store
        #expect(try await shop.rig.on { _ in try await store.run(OutdatedRow.all) }.isEmpty)
    }

    /// A held `/pending` began before the PIN was set, or before it was locked.
    @Test(arguments: StoreKind.all) func demandFollowsThePresentPIN(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        let asked = try await shop.ask()
        let before = try await shop.credential()
        func demands() async throws -> JSONObject? {
            try await shop.rig.on { relay in try await relay.pending(for: before).first?.demands }
        }
        #expect(try await demands() == ["pin": "set"])
        try await shop.set()
        #expect(try await demands() == ["pin": "sign"])
        try await shop.guessWrong(asked, 3)
        #expect(try await demands() == ["pin": "locked"])
    }

    /// An operator can lock a PIN by SQL.
    @Test func pinIsLockedBySQL() async throws {
        let shop = try await PINShop(.memory)
        try await shop.set()
        let asked = try await shop.ask()
        try shop.rig.forge("UPDATE device SET pin_failures = 3")
        #expect(try await shop.approve(asked, pin: shop.pin) == .failure(.pin(.locked)))
    }

    /// A key that signs something else would make each of those signatures a PIN.
    @Test(arguments: StoreKind.all, [true, false]) func keyWithAnotherUseIsNoPIN(kind: StoreKind, isPUK: Bool)
        async throws
    {
        let shop = try await PINShop(kind)
        let used = isPUK ? shop.puk : shop.pin
        let thumbprint = Hex.encode(used.publicKey.spkiThumbprint)
        try shop.rig.execute(
            """
            INSERT INTO used_key (thumbprint, purpose, device_id)
            SELECT x'\(thumbprint)', 'raw:doc', id FROM device LIMIT 1
            """)
        guard case .failure(.invalid) = try await shop.send(try shop.statement("set", 1, pin: shop.pin, puk: shop.puk))
        else { throw RigFailure("the key was taken") }
        #expect(try shop.rig.count("SELECT count(*) FROM device WHERE pin_key IS NOT NULL") == 0)
    }
}
