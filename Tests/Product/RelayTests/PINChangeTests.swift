import Crypto
import Domain
import JSON
import Relay
import TestSupport
import Testing

/// Setting, changing and resetting the PIN of a phone.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PINChangeTests {
    @Test(arguments: StoreKind.all) func changeNeedsTheOldPIN(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let new = PINShop.newKey()
        let change = try shop.statement("change", 2, pin: new)
        #expect(try await shop.send(change, pin: PINShop.newKey()) == .failure(.pin(.wrong(triesLeft: 2))))
        // The new PIN is no proof, and neither is the PUK.
        #expect(try await shop.send(change, pin: new) == .failure(.pin(.wrong(triesLeft: 1))))
        let changed = try await shop.send(change, pin: shop.pin).get()
        #expect(changed.version == 2 && changed.key == new.publicKey.x963 && changed.failures == 0)
        #expect(changed.pukKey == shop.puk.publicKey.x963)
        let asked = try await shop.ask()
        #expect(try await shop.approve(asked, pin: shop.pin) == .failure(.pin(.wrong(triesLeft: 2))))
        #expect(try await shop.approve(asked, pin: new) == .success(.success))
        #expect(try shop.audited("pin.changed") == 1)
    }

    /// Guesses at changes and at approvals have one count.
    @Test(arguments: StoreKind.all) func lockedPINCannotBeChanged(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let asked = try await shop.ask()
        try await shop.guessWrong(asked, 2)
        let change = try shop.statement("change", 2, pin: PINShop.newKey())
        #expect(try await shop.send(change, pin: PINShop.newKey()) == .failure(.pin(.locked)))
        #expect(try await shop.send(change, pin: shop.pin) == .failure(.pin(.locked)))
        #expect(try await shop.approve(asked, pin: shop.pin) == .failure(.pin(.locked)))
    }

    @Test(arguments: StoreKind.all) func pukResetsALockedPIN(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let asked = try await shop.ask()
        try await shop.guessWrong(asked, 3)
        let (pin, puk) = (PINShop.newKey(), PINShop.newKey())
        let reset = try shop.statement("reset", 2, pin: pin, puk: puk)
        #expect(try await shop.send(reset, puk: shop.pin) == .failure(.pin(.pukWrong(triesLeft: 4))))
        let done = try await shop.send(reset, puk: shop.puk).get()
        #expect(done.state == .set && done.triesLeft == 3 && done.pukTriesLeft == 5)
        #expect(try await shop.approve(asked, pin: pin) == .success(.success))
        // The former PUK is void.
        let again = try shop.statement("reset", 3, pin: PINShop.newKey(), puk: PINShop.newKey())
        #expect(try await shop.send(again, puk: shop.puk) == .failure(.pin(.pukWrong(triesLeft: 4))))
        #expect(try await shop.send(again, puk: puk).get().version == 3)
        #expect(try shop.audited("pin.reset") == 2 && shop.audited("puk.wrong") == 2)
    }

    @Test(arguments: StoreKind.all) func fiveWrongPUKsLockThePUK(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let reset = try shop.statement("reset", 2, pin: PINShop.newKey(), puk: PINShop.newKey())
        for left in [4, 3, 2, 1] {
            #expect(
                try await shop.send(reset, puk: PINShop.newKey()) == .failure(.pin(.pukWrong(triesLeft: left))))
        }
        #expect(try await shop.send(reset, puk: PINShop.newKey()) == .failure(.pin(.pukLocked)))
        #expect(try await shop.send(reset, puk: shop.puk) == .failure(.pin(.pukLocked)))
        #expect(try shop.audited("puk.wrong") == 4 && shop.audited("puk.locked") == 1)
        // The PIN is not locked with it, and its change does not open the PUK again.
        let new = PINShop.newKey()
        let changed = try await shop.send(try shop.statement("change", 2, pin: new), pin: shop.pin).get()
        #expect(changed.isPUKLocked)
        #expect(try await shop.approve(try await shop.ask(), pin: new) == .success(.success))
        // Somebody who can write to the store cannot open it either.
        try shop.rig.forge("UPDATE device SET puk_failures = 0")
        await #expect(throws: Refusal.broken) { try await shop.credential() }
    }

    /// A statement counts once. A repetition of the last one is the same change, because its answer
    /// may have been lost.
    @Test(arguments: StoreKind.all) func oldStatementChangesNothing(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        let set = try shop.statement("set", 1, pin: shop.pin, puk: shop.puk)
        for _ in 0..<2 { #expect(try await shop.send(set).get().version == 1) }
        let new = PINShop.newKey()
        let change = try shop.statement("change", 2, pin: new)
        let signature = try PINShop.signature(change, by: shop.pin)
        for _ in 0..<2 { #expect(try await shop.send(change, pinSignature: signature).get().version == 2) }
        let back = try shop.statement("change", 3, pin: shop.pin)
        #expect(try await shop.send(back, pin: new).get().version == 3)
        for (statement, signer) in [(set, nil), (change, shop.pin)] as [(String, P256PrivateKey?)] {
            guard case .failure(.conflict(let faults)) = try await shop.send(statement, pin: signer) else {
                Issue.record("an old statement was accepted")
                continue
            }
            #expect(faults.map(\.code) == [.mismatch])
        }
        #expect(try shop.audited("pin.set") == 1 && shop.audited("pin.changed") == 2)
        #expect(try await shop.credential().pin.failures == 0)
    }

    /// Whoever holds the phone can sign a statement with any keys, and with the present version. The
    /// answer must not depend on whether the keys are those of the PIN and the PUK.
    @Test(arguments: StoreKind.all) func statementIsNoTestOfThePIN(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let (pin, puk) = (shop.pin, shop.puk)
        func answers(_ version: Int) async throws -> [Result<PhonePIN, Refusal>] {
            let (other, another) = (PINShop.newKey(), PINShop.newKey())
            // Each wait ends the budget of a minute.
            shop.rig.time.advance(by: .seconds(60))
            return [
                try await shop.send(try shop.statement("change", version, pin: other)),
                try await shop.send(try shop.statement("change", version, pin: pin)),
                try await shop.send(try shop.statement("change", version, pin: pin), pin: other),
                try await shop.send(try shop.statement("set", version, pin: pin, puk: another)),
                try await shop.send(try shop.statement("set", version, pin: pin, puk: puk)),
                try await shop.send(try shop.statement("reset", version, pin: pin, puk: puk), puk: other),
            ]
        }
        func isOneConflict(_ answers: [Result<PhonePIN, Refusal>]) -> Bool {
            guard case .failure(.conflict) = answers[0] else { return false }
            return answers.allSatisfy { $0 == answers[0] }
        }
        #expect(isOneConflict(try await answers(1)))
        try await shop.guessWrong(try await shop.ask(), 3)
        #expect(isOneConflict(try await answers(1)))
        // Even the bytes of the real statement, without its signature, are another request.
        let (new, newPUK) = (PINShop.newKey(), PINShop.newKey())
        let reset = try shop.statement("reset", 2, pin: new, puk: newPUK)
        #expect(try await shop.send(reset, puk: puk).get().version == 2)
        #expect(isOneConflict([try await shop.send(reset), try await shop.send(reset, puk: PINShop.newKey())]))
        #expect(isOneConflict(try await answers(2)))
        #expect(try await shop.credential().pin.failures == 0)
    }

    /// A phone that changes its PIN all the time fills neither the audit nor a mailbox.
    @Test(arguments: StoreKind.all) func changesAreLimited(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        for version in 2...10 {
            let change = try shop.statement("change", version, pin: shop.pin)
            #expect(try await shop.send(change, pin: shop.pin).get().version == version)
        }
        let last = try shop.statement("change", 11, pin: shop.pin)
        #expect(try await shop.send(last, pin: shop.pin) == .failure(.limited(retryAfter: .seconds(60))))
        #expect(try await shop.send("no statement") == .failure(.limited(retryAfter: .seconds(60))))
        #expect(try shop.audited("pin.changed") == 9)
        shop.rig.time.advance(by: .seconds(60))
        #expect(try await shop.send(last, pin: shop.pin).get().version == 11)
    }

    /// The website and the user learn of each change, and of a locked PUK: somebody may have the phone.
    @Test(arguments: StoreKind.all) func changesAreAnnounced(kind: StoreKind) async throws {
        let shop = try await PINShop(kind, webhook: "https://shop.example/hook", email: "ada@example.com")
        try await shop.set()
        #expect(try shop.announced("pin.changed") == [1, 1])
        let new = PINShop.newKey()
        let change = try shop.statement("change", 2, pin: new)
        _ = try await shop.send(change, pin: PINShop.newKey())
        #expect(try shop.announced("pin.changed") == [1, 1])
        let signature = try PINShop.signature(change, by: shop.pin)
        for _ in 0..<2 { _ = try await shop.send(change, pinSignature: signature).get() }
        #expect(try shop.announced("pin.changed") == [2, 2])
        let reset = try shop.statement("reset", 3, pin: shop.pin, puk: shop.puk)
        _ = try await shop.send(reset, puk: shop.puk).get()
        #expect(try shop.announced("pin.changed") == [3, 3])
        shop.rig.time.advance(by: .seconds(60))
        let next = try shop.statement("reset", 4, pin: shop.pin, puk: shop.puk)
        for _ in 0..<4 { _ = try await shop.send(next, puk: PINShop.newKey()) }
        #expect(try shop.announced("puk.locked") == [0, 0])
        for _ in 0..<2 { _ = try await shop.send(next, puk: PINShop.newKey()) }
        #expect(try shop.announced("puk.locked") == [1, 1] && shop.announced("pin.locked") == [0, 0])
    }

    @Test func firstPINIsSetOnce() async throws {
        let shop = try await PINShop(.memory)
        let early = try shop.statement("change", 1, pin: shop.pin)
        guard case .failure(.conflict) = try await shop.send(early, pin: shop.pin) else {
            Issue.record("a PIN was changed that was never set")
            return
        }
        try await shop.set()
        let second = try shop.statement("set", 2, pin: PINShop.newKey(), puk: PINShop.newKey())
        guard case .failure(.conflict(let faults)) = try await shop.send(second) else {
            Issue.record("a PIN was set without the old one")
            return
        }
        #expect(faults.map(\.code) == [.state])
        #expect(try await shop.credential().pin.key == shop.pin.publicKey.x963)
    }

    @Test func wrongStatementIsRefused() async throws {
        let shop = try await PINShop(.memory)
        let (pin, puk) = (shop.pin, shop.puk)
        let wrong = [
            try shop.statement("set", 1, pin: pin, puk: puk, by: pin),
            try shop.statement("set", 1, pin: pin),
            try shop.statement("change", 1, pin: pin, puk: puk),
            try shop.statement("remove", 1, pin: pin, puk: puk),
            try shop.statement("set", 0, pin: pin, puk: puk),
            try shop.statement("set", 1, pin: pin, puk: puk) { $0["aud"] = .string("\(RelayRig.origin)#bank") },
            try shop.statement("set", 1, pin: pin, puk: puk) { $0["v"] = 2 },
            try shop.statement("set", 1, pin: pin, puk: puk) { $0["iat"] = nil },
            try shop.statement("set", 1, pin: pin, puk: puk) { $0["later"] = 1 },
            try shop.statement("set", 1, pin: pin, puk: puk) { $0["pin"] = "1234" },
            // The phone's own key is not accepted for the PIN or the PUK, and no key for both.
            try shop.statement("set", 1, pin: shop.bound.phone.key, puk: puk),
            try shop.statement("set", 1, pin: pin, puk: shop.bound.phone.key),
            try shop.statement("set", 1, pin: pin, puk: pin),
        ]
        for statement in wrong {
            // The budget of changes is for a minute.
            shop.rig.time.advance(by: .seconds(10))
            guard case .failure(.invalid(let faults)) = try await shop.send(statement) else {
                Issue.record("accepted: \(statement)")
                continue
            }
            #expect(faults.map(\.parameter) == ["pin"])
        }
        #expect(try await shop.credential().pin == PhonePIN())
        try await shop.set()
        let change = try shop.statement("change", 2, pin: PINShop.newKey())
        #expect(try await shop.send(change) == .failure(.invalid([.missing("pin_signature")])))
        let reset = try shop.statement("reset", 2, pin: PINShop.newKey(), puk: PINShop.newKey())
        #expect(try await shop.send(reset) == .failure(.invalid([.missing("puk_signature")])))
    }
}
