import Crypto
import Domain
import JSON
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The code with which the help desk lets a person set a new PIN.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct UnlockCodeTests {
    /// Issues a code as the operator's tool does; nil if the phone gets none.
    private func issue(_ shop: PINShop) async throws -> String? {
        let (phone, store, now) = (shop.bound.credential, shop.rig.store, shop.rig.time.now())
        return try await shop.rig.on { relay in
            let (operation, drawn) = (relay.operations.new(), relay.drawSecret())
            let new = try NewUnlockCode(
                drawn, for: phone.id, of: phone.user, website: phone.website.id, at: now, as: operation,
                by: relay.sealer, relay.randomness)
            let issued = try await store.run(UnlockCodes.issue(new, as: operation))
            return issued.map { UnlockCode.text(drawn, counter: $0.counter) }
        }
    }

    private func withdraw(_ shop: PINShop) async throws -> Bool {
        let (phone, store, now) = (shop.bound.credential, shop.rig.store, shop.rig.time.now())
        return try await shop.rig.on { relay in
            try await store.run(UnlockCodes.withdraw(phone.id, of: phone.user, at: now, as: relay.operations.new()))
        }
    }

    /// The number of secrets of codes in the store; the binding of the phone has one of its own.
    private func secrets(_ shop: PINShop) throws -> Int64 {
        try shop.rig.count(
            """
            SELECT count(*) FROM operation_secret
            WHERE operation IN (SELECT a.operation FROM audit a WHERE a.event = 'unlock.issued')
            """)
    }

    /// Returns another code of eight digits.
    private func other(_ code: String, _ number: Int = 1) -> String {
        let changed = String(((Int(code) ?? 0) + number) % 100_000_000)
        return String(repeating: "0", count: 8 - changed.utf8.count) + changed
    }

    private func unlock(
        _ shop: PINShop, _ version: Int, _ code: String?, pin: P256PrivateKey = PINShop.newKey(),
        to relay: RelayRig? = nil
    ) async throws -> Result<PhonePIN, Refusal> {
        let statement = try shop.statement("unlock", version, pin: pin, puk: PINShop.newKey()) {
            $0.set("unlock_code", code.map { .string($0) })
        }
        return try await shop.send(statement, to: relay)
    }

    @Test(arguments: StoreKind.all) func codeOpensAPhoneWithLockedPINAndPUK(kind: StoreKind) async throws {
        let shop = try await PINShop(kind, webhook: "https://shop.example/hook", email: "ada@example.com")
        try await shop.set()
        let asked = try await shop.ask()
        try await shop.guessWrong(asked, 3)
        let reset = try shop.statement("reset", 2, pin: PINShop.newKey(), puk: PINShop.newKey())
        for _ in 0..<5 { _ = try await shop.send(reset, puk: PINShop.newKey()) }
        #expect(try await shop.credential().pin.isPUKLocked)
        shop.rig.time.advance(by: .seconds(60))

        #expect(try await unlock(shop, 2, "12345678") == .failure(.pin(.unlockVoid)))
        let code = try #require(try await issue(shop))
        #expect(try shop.announced("unlock.issued") == [1, 1])
        #expect(try await unlock(shop, 2, other(code)) == .failure(.pin(.unlockWrong(triesLeft: 4))))
        let pin = PINShop.newKey()
        let unlocked = try await unlock(shop, 2, code, pin: pin).get()
        #expect(unlocked.state == .set && unlocked.triesLeft == 3 && unlocked.pukTriesLeft == 5)
        #expect(unlocked.version == 2 && unlocked.unlock == nil)
        #expect(try await shop.approve(asked, pin: pin) == .success(.success))
        // The code counts once, and nothing of it is left.
        #expect(try await unlock(shop, 3, code) == .failure(.pin(.unlockVoid)))
        #expect(try secrets(shop) == 0)
        #expect(try shop.announced("pin.changed") == [2, 2])
        #expect(try shop.audited("unlock.issued") == 1 && shop.audited("pin.unlocked") == 1)
        #expect(try shop.audited("unlock.wrong") == 1 && shop.audited("unlock.locked") == 0)
    }

    @Test(arguments: StoreKind.all) func fiveWrongCodesMakeACodeVoid(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let code = try #require(try await issue(shop))
        for number in 1...4 {
            // The same code again is no further try.
            for _ in 0..<2 {
                shop.rig.time.advance(by: .seconds(7))
                #expect(
                    try await unlock(shop, 2, other(code, number))
                        == .failure(.pin(.unlockWrong(triesLeft: 5 - number))))
            }
        }
        shop.rig.time.advance(by: .seconds(60))
        #expect(try await unlock(shop, 2, other(code, 5)) == .failure(.pin(.unlockVoid)))
        #expect(try await unlock(shop, 2, code) == .failure(.pin(.unlockVoid)))
        #expect(try shop.audited("unlock.wrong") == 4 && shop.audited("unlock.locked") == 1)
        // Wrong codes lock neither PIN nor PUK.
        #expect(try await shop.approve(try await shop.ask(), pin: shop.pin) == .success(.success))
        let next = try #require(try await issue(shop))
        #expect(try await unlock(shop, 2, next).get().version == 2)
    }

    @Test(arguments: StoreKind.all) func codeEndsWithTimeAndWithTheNextOne(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let first = try #require(try await issue(shop))
        let second = try #require(try await issue(shop))
        if first != second {
            #expect(try await unlock(shop, 2, first) == .failure(.pin(.unlockWrong(triesLeft: 4))))
        }
        #expect(try secrets(shop) == 1)
        #expect(try shop.rig.count("SELECT unlock_counter FROM device") == 2)
        shop.rig.time.advance(by: UnlockCode.lifetime)
        #expect(try await unlock(shop, 2, second) == .failure(.pin(.unlockVoid)))
        let third = try #require(try await issue(shop))
        #expect(try await withdraw(shop))
        #expect(try await unlock(shop, 2, third) == .failure(.pin(.unlockVoid)))
        #expect(try await !withdraw(shop))
        // Whoever remembers the PIN after all needs no code.
        let fourth = try #require(try await issue(shop))
        let new = PINShop.newKey()
        _ = try await shop.send(try shop.statement("change", 2, pin: new), pin: shop.pin).get()
        #expect(try await unlock(shop, 3, fourth) == .failure(.pin(.unlockVoid)))
        #expect(try secrets(shop) == 0)
    }

    @Test(arguments: StoreKind.all) func onlyAnActivePhoneWithAPINGetsACode(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        #expect(try await issue(shop) == nil)
        try await shop.set()
        try shop.rig.execute("UPDATE device SET state = 'suspended'")
        #expect(try await issue(shop) == nil)
        #expect(try shop.audited("unlock.issued") == 0)
        #expect(try secrets(shop) == 0)
    }

    /// Guesses at the same time over two relays, all of which have found the code open.
    @Test(arguments: [StoreKind.file, .mariadb]) func parallelGuessesAreCountedExactly(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let other = try await RelayRig(beside: shop.rig)
        let code = try #require(try await issue(shop))
        // The set was a request of the first relay.
        let outcomes = try await withThrowingTaskGroup(of: Result<PhonePIN, Refusal>.self) { group in
            for number in 1...16 {
                let guess = self.other(code, number)
                let relay = number.isMultiple(of: 2) ? shop.rig : other
                group.addTask { try await unlock(shop, 2, guess, to: relay) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        for left in 1...4 { #expect(outcomes.count { $0 == .failure(.pin(.unlockWrong(triesLeft: left))) } == 1) }
        #expect(outcomes.count { $0 == .failure(.pin(.unlockVoid)) } == 12)
        #expect(try await unlock(shop, 2, code, to: other) == .failure(.pin(.unlockVoid)))
        #expect(try shop.rig.count("SELECT unlock_failures FROM device") == 5)
    }

    /// A wrong code that is counted between the judgement and the write.
    @Test(arguments: StoreKind.all) func outdatedJudgementUnlocksNothing(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let code = try #require(try await issue(shop))
        let before = try await shop.credential()
        _ = try await unlock(shop, 2, other(code))
        let (store, now) = (shop.rig.store, shop.rig.time.now())
        let key = PINShop.newKey().publicKey.x963
        func unlocks(_ present: PhonePIN) async throws -> Bool {
            try await shop.rig.on { relay in
                let change = PINChange(of: before, .unlock, key: key, pukKey: key, present: present, at: now)
                return try await store.store(change, as: relay.operations.new()) == true
            }
        }
        #expect(try await !unlocks(before.pin))
        #expect(try await unlocks(try await shop.credential().pin))
    }

    /// Somebody who can write to the store can neither plant a code nor make one last longer.
    @Test(arguments: StoreKind.all) func forgedCodeIsFound(kind: StoreKind) async throws {
        for change in [
            "unlock_failures = 0", "unlock_until = '2099-01-01 00:00:00.000'", "unlock_counter = 7",
            "unlock_operation = x'0123456789abcdef0123456789abcdef'",
        ] {
            let shop = try await PINShop(kind)
            try await shop.set()
            let code = try #require(try await issue(shop))
            // The MAC covers that the code is void, and no smaller count.
            for number in 1...5 { _ = try await unlock(shop, 2, other(code, number)) }
            let phone = try await shop.credential()
            try shop.rig.forge("UPDATE device SET \(change)")
            let statement = try shop.statement("unlock", 2, pin: PINShop.newKey(), puk: PINShop.newKey()) {
                $0["unlock_code"] = .string(code)
            }
            let outcome = try await PINShop.outcome {
                try await shop.rig.on { relay in
                    try await relay.changePIN(statement, pinSignature: nil, pukSignature: nil, by: phone)
                }
            }
            #expect(outcome == .failure(.broken), "\(change)")
        }
    }

    /// A writer to the store can make up to four wrong codes forgotten, as the threat model says. Once
    /// the code is void, that gains no further try.
    @Test(arguments: StoreKind.all) func wrongCodesBeforeTheLastCanBeForgotten(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let code = try #require(try await issue(shop))
        for number in 1...4 { _ = try await unlock(shop, 2, other(code, number)) }
        try shop.rig.forge("UPDATE device SET unlock_failures = 0")
        #expect(try await unlock(shop, 2, other(code, 5)) == .failure(.pin(.unlockWrong(triesLeft: 4))))
        #expect(try await unlock(shop, 2, code).get().version == 2)
    }

    @Test func statementHasExactlyOneCode() async throws {
        let shop = try await PINShop(.memory)
        try await shop.set()
        for code in [nil, "", "1234567", "123456789", "1234 567", "١٢٣٤٥٦٧٨"] {
            guard case .failure(.invalid) = try await unlock(shop, 2, code) else {
                Issue.record("accepted: \(code ?? "none")")
                continue
            }
        }
        let reset = try shop.statement("reset", 2, pin: PINShop.newKey(), puk: PINShop.newKey()) {
            $0["unlock_code"] = "12345678"
        }
        guard case .failure(.invalid) = try await shop.send(reset, puk: shop.puk) else {
            Issue.record("a reset with a code was accepted")
            return
        }
    }
}
