import Crypto
import Domain
import Log
import Relay
import TestSupport
import Testing

/// Guesses of a PIN at the same time, over two relays.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PINGuessTests {
    @Test(arguments: [StoreKind.file, .mariadb]) func parallelGuessesAreCountedExactly(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let other = try await RelayRig(beside: shop.rig)
        let asked = try await shop.ask()
        var answers: [PhoneAnswer] = []
        for _ in 0..<24 { answers.append(try await shop.answer(asked, pin: PINShop.newKey())) }
        // All have read the phone before the first wrong PIN is counted.
        let phone = try await shop.credential()
        let outcomes = try await withThrowingTaskGroup(of: PINShop.Outcome.self) { group in
            for (index, answer) in answers.enumerated() {
                let relay = index.isMultiple(of: 2) ? shop.rig : other
                group.addTask { try await shop.post(answer, asked, by: phone, to: relay) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.count { $0 == .failure(.pin(.wrong(triesLeft: 2))) } == 1)
        #expect(outcomes.count { $0 == .failure(.pin(.wrong(triesLeft: 1))) } == 1)
        #expect(outcomes.count { $0 == .failure(.pin(.locked)) } == 22)
        #expect(try shop.audited("pin.wrong") == 2 && shop.audited("pin.locked") == 1)
        #expect(try await shop.credential(other).pin.failures == 3)
    }

    /// Each phone of a user has a PIN and a count of its own. The PIN of one is a wrong one for
    /// another.
    @Test(arguments: [StoreKind.file, .mariadb]) func guessesAtManyPhonesAreCountedForEach(
        kind: StoreKind
    ) async throws {
        let first = try await PINShop(kind, ["devices": "3"])
        var phones = [first]
        for _ in 0..<2 { phones.append(try await PINShop(beside: first)) }
        for phone in phones { try await phone.set() }
        let other = try await RelayRig(beside: first.rig)
        let asked = try await first.ask()
        let outcomes = try await withThrowingTaskGroup(of: (phone: Int, outcome: PINShop.Outcome).self) { group in
            for guess in 0..<8 {
                for (index, phone) in phones.enumerated() {
                    let pin = guess == 0 ? phones[(index + 1) % 3].pin : PINShop.newKey()
                    let answer = try await phone.answer(asked, pin: pin)
                    let relay = (guess + index).isMultiple(of: 2) ? first.rig : other
                    group.addTask { (index, try await phone.post(answer, asked, to: relay)) }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        for (index, phone) in phones.enumerated() {
            let own = outcomes.filter { $0.phone == index }.map(\.outcome)
            #expect(own.count { $0 == .failure(.pin(.wrong(triesLeft: 2))) } == 1, "\(own)")
            #expect(own.count { $0 == .failure(.pin(.wrong(triesLeft: 1))) } == 1, "\(own)")
            #expect(own.count { $0 == .failure(.pin(.locked)) } == 6, "\(own)")
            #expect(try await phone.credential(other).pin.failures == 3)
        }
        #expect(try first.audited("pin.wrong") == 6 && first.audited("pin.locked") == 3)
    }

    /// Approvals and changes share one count, also at the same time.
    @Test(arguments: [StoreKind.file, .mariadb]) func parallelGuessesOfBothRoutesShareTheCount(
        kind: StoreKind
    ) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let other = try await RelayRig(beside: shop.rig)
        let asked = try await shop.ask()
        let phone = try await shop.credential()
        let refusals = try await withThrowingTaskGroup(of: Refusal?.self) { group in
            for index in 0..<16 {
                let relay = index.isMultiple(of: 4) || index % 4 == 1 ? shop.rig : other
                if index.isMultiple(of: 2) {
                    let answer = try await shop.answer(asked, pin: PINShop.newKey())
                    group.addTask { try await Self.refusal(shop.post(answer, asked, by: phone, to: relay)) }
                } else {
                    let change = try shop.statement("change", 2, pin: PINShop.newKey())
                    group.addTask { try await Self.refusal(shop.send(change, pin: PINShop.newKey(), to: relay)) }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(refusals.count { $0 == .pin(.wrong(triesLeft: 2)) } == 1)
        #expect(refusals.count { $0 == .pin(.wrong(triesLeft: 1)) } == 1)
        #expect(refusals.count { $0 == .pin(.locked) } == 14)
        #expect(try shop.audited("pin.wrong") == 2 && shop.audited("pin.locked") == 1)
        #expect(try await shop.credential(other).pin.failures == 3)
    }

    private static func refusal<Value>(_ outcome: Result<Value, Refusal>) -> Refusal? {
        if case .failure(let refusal) = outcome { refusal } else { nil }
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func parallelPUKsAreCountedExactly(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let other = try await RelayRig(beside: shop.rig)
        let reset = try shop.statement("reset", 2, pin: PINShop.newKey(), puk: PINShop.newKey())
        let refusals = try await withThrowingTaskGroup(of: Refusal?.self) { group in
            for index in 0..<16 {
                let relay = index.isMultiple(of: 2) ? shop.rig : other
                group.addTask { try await Self.refusal(shop.send(reset, puk: PINShop.newKey(), to: relay)) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        for left in 1...4 { #expect(refusals.count { $0 == .pin(.pukWrong(triesLeft: left)) } == 1) }
        #expect(refusals.count { $0 == .pin(.pukLocked) } == 12)
        #expect(try shop.audited("puk.wrong") == 4 && shop.audited("puk.locked") == 1)
        // The right one comes too late, also when the relay accepts further requests of the phone.
        shop.rig.time.advance(by: .seconds(60))
        #expect(try await shop.send(reset, puk: shop.puk) == .failure(.pin(.pukLocked)))
    }

    /// A right change that arrives twice at both relays, amid wrong PINs, is one change.
    @Test(arguments: [StoreKind.file, .mariadb]) func rightChangeAmidWrongPINsIsMadeOnce(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let other = try await RelayRig(beside: shop.rig)
        let asked = try await shop.ask()
        let phone = try await shop.credential()
        let new = PINShop.newKey()
        let change = try shop.statement("change", 2, pin: new)
        let signature = try PINShop.signature(change, by: shop.pin)
        let wrong = [
            try await shop.answer(asked, pin: PINShop.newKey()), try await shop.answer(asked, pin: PINShop.newKey()),
        ]
        let (changes, refusals) = try await withThrowingTaskGroup(
            of: (Result<PhonePIN, Refusal>?, Refusal?).self
        ) { group in
            for relay in [shop.rig, other] {
                for _ in 0..<2 {
                    group.addTask { (try await shop.send(change, pinSignature: signature, to: relay), nil) }
                }
            }
            for (answer, relay) in zip(wrong, [shop.rig, other]) {
                group.addTask { (nil, try await Self.refusal(shop.post(answer, asked, by: phone, to: relay))) }
            }
            return try await group.reduce(into: ([Result<PhonePIN, Refusal>](), [Refusal]())) { all, one in
                all.0 += [one.0].compactMap(\.self)
                all.1 += [one.1].compactMap(\.self)
            }
        }
        #expect(changes.count == 4 && changes.allSatisfy { (try? $0.get())?.version == 2 }, "\(changes)")
        // A wrong one counts against the former PIN, or was read before the change and counts for nothing.
        let expected: [Refusal] = [
            .pin(.wrong(triesLeft: 2)), .pin(.wrong(triesLeft: 1)), .limited(retryAfter: .zero),
        ]
        #expect(refusals.count == 2 && refusals.allSatisfy(expected.contains), "\(refusals)")
        #expect(try shop.audited("pin.changed") == 1 && shop.audited("pin.locked") == 0)
        // Both relays have the same clock, so it does not tell which one has made the change.
        #expect(Self.counted("changed", [shop.rig, other]) == 1)
        #expect(try await shop.approve(asked, pin: new) == .success(.success))
    }

    /// A wrong answer that arrives many times at both relays costs one try.
    @Test(arguments: [StoreKind.file, .mariadb]) func parallelRepetitionsCostOneTry(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let other = try await RelayRig(beside: shop.rig)
        let asked = try await shop.ask()
        let answer = try await shop.answer(asked, pin: PINShop.newKey())
        let outcomes = try await withThrowingTaskGroup(of: PINShop.Outcome.self) { group in
            for index in 0..<12 {
                let relay = index.isMultiple(of: 2) ? shop.rig : other
                group.addTask { try await shop.post(answer, asked, to: relay) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.allSatisfy { $0 == .failure(.pin(.wrong(triesLeft: 2))) })
        #expect(try await shop.credential(other).pin.failures == 1)
        #expect(Self.counted("wrong", [shop.rig, other]) == 1)
    }

    /// The sum of a counter of several relays.
    private static func counted(_ outcome: String, _ rigs: [RelayRig]) -> Double {
        rigs.reduce(0) { $0 + ($1.registry.number("twoefay_pins_total{outcome=\"\(outcome)\"}") ?? 0) }
    }

    /// A phone whose answer was lost sends the same bytes again.
    @Test(arguments: StoreKind.all) func repetitionIsReportedOnce(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let asked = try await shop.ask()
        let answer = try await shop.answer(asked, pin: PINShop.newKey())
        for _ in 0..<3 {
            #expect(try await shop.post(answer, asked) == .failure(.pin(.wrong(triesLeft: 2))))
            shop.rig.time.advance(by: .seconds(1))
        }
        #expect(shop.rig.registry.number("twoefay_pins_total{outcome=\"wrong\"}") == 1)
        #expect(shop.rig.sink.drain().filter { $0.contains("event=pin.wrong") }.count == 1)
    }

    /// A right PIN that was read before the lock looks like a wrong one.
    @Test(arguments: StoreKind.all) func rightPINAfterTheLockLooksLikeAWrongOne(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let asked = try await shop.ask()
        let before = try await shop.credential()
        try await shop.guessWrong(asked, 3)
        let right = try await shop.answer(asked, pin: shop.pin)
        let wrong = try await shop.answer(asked, pin: PINShop.newKey())
        #expect(try await shop.post(right, asked, by: before) == .failure(.pin(.locked)))
        #expect(try await shop.post(wrong, asked, by: before) == .failure(.pin(.locked)))
        #expect(try await shop.credential().pin.failures == 3)
    }

    /// A wrong PIN that is counted between the read and the write does not refuse the right one.
    @Test(arguments: StoreKind.all) func rightPINIsJudgedAgainAfterAWrongOne(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let asked = try await shop.ask()
        let before = try await shop.credential()
        try await shop.guessWrong(asked, 2)
        let right = try await shop.answer(asked, pin: shop.pin)
        #expect(try await shop.post(right, asked, by: before) == .success(.success))
        #expect(try await shop.credential().pin.failures == 0)
    }

    /// A PIN is reset while a guess of the former one is under way. The guess is not compared with
    /// the new PIN, and costs it no try.
    @Test(arguments: StoreKind.all) func guessOfAReplacedPINIsNotCounted(kind: StoreKind) async throws {
        let shop = try await PINShop(kind)
        try await shop.set()
        let asked = try await shop.ask()
        let before = try await shop.credential()
        let new = PINShop.newKey()
        _ = try await shop.send(try shop.statement("change", 2, pin: new), pin: shop.pin).get()
        let wrong = try await shop.answer(asked, pin: PINShop.newKey())
        #expect(try await shop.post(wrong, asked, by: before) == .failure(.limited(retryAfter: .zero)))
        // The former PIN is judged again, as a wrong one.
        let former = try await shop.answer(asked, pin: shop.pin)
        #expect(try await shop.post(former, asked, by: before) == .failure(.pin(.wrong(triesLeft: 2))))
        #expect(try await shop.credential().pin.failures == 1)
    }
}
