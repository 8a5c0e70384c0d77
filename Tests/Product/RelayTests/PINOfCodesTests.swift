import Crypto
import Domain
import JSON
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The PIN of a phone that asks for the secret of its codes.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PINOfCodesTests {
    private func shop(_ kind: StoreKind, pin: PINUse) async throws -> PINShop {
        let phone = try TestPhone(pushToken: UniqueText.next(), agreement: PINShop.newKey())
        return try await PINShop(kind, pin: pin, ["phone-codes": "again"], phone: phone)
    }

    /// Asks for the secret, signed with the key of a PIN; nil for a request without one.
    private func ask(
        _ shop: PINShop, pin: P256PrivateKey?, to relay: RelayRig? = nil
    ) async throws -> Result<FactorID, Refusal> {
        // A request must be later than the one before, and ten are allowed in a minute.
        shop.rig.time.advance(by: .seconds(7))
        let phone = try await shop.credential(relay)
        let request = try shop.bound.phone.secretRequest(
            device: phone.id.text, origin: RelayRig.origin, website: "shop", at: shop.rig.time.now())
        let signature = try pin.map { try PINShop.signature(request, by: $0) }
        return try await PINShop.outcome {
            try await (relay ?? shop.rig).on { relay in
                try await relay.phoneCodes(
                    request, pinSignature: signature, by: phone, as: relay.operations.new()
                ).factor
            }
        }
    }

    /// Codes count like approvals, so a thief who cannot approve gets no codes either.
    @Test(arguments: StoreKind.all) func requiredPINGuardsTheSecret(kind: StoreKind) async throws {
        let shop = try await shop(kind, pin: .required)
        #expect(try await ask(shop, pin: nil) == .failure(.pin(.unset)))
        try await shop.set()
        #expect(try await ask(shop, pin: nil) == .failure(.pin(.unsigned)))
        #expect(try await ask(shop, pin: shop.puk) == .failure(.pin(.wrong(triesLeft: 2))))
        let factor = try await ask(shop, pin: shop.pin).get()
        // The right PIN does not forget the wrong one, because it decides no challenge.
        #expect(try await shop.credential().pin.failures == 1)
        // Guesses at codes and at approvals have one count.
        let asked = try await shop.ask()
        #expect(try await shop.approve(asked, pin: PINShop.newKey()) == .failure(.pin(.wrong(triesLeft: 1))))
        #expect(try await ask(shop, pin: PINShop.newKey()) == .failure(.pin(.locked)))
        #expect(try await ask(shop, pin: shop.pin) == .failure(.pin(.locked)))
        #expect(try await ask(shop, pin: nil) == .failure(.pin(.locked)))
        #expect(try shop.audited("secret.delivered") == 1)
        let reset = try shop.statement("reset", 2, pin: shop.pin, puk: shop.puk)
        _ = try await shop.send(reset, puk: shop.puk).get()
        #expect(try await ask(shop, pin: shop.pin) == .success(factor))
    }

    @Test(arguments: StoreKind.all) func optionalPINGuardsTheSecretOfPhonesThatHaveOne(kind: StoreKind) async throws {
        let shop = try await shop(kind, pin: .optional)
        let factor = try await ask(shop, pin: nil).get()
        try await shop.set()
        #expect(try await ask(shop, pin: nil) == .failure(.pin(.unsigned)))
        #expect(try await ask(shop, pin: shop.pin) == .success(factor))
    }

    /// The group of a user may need a PIN although the website does not, and the other way round.
    @Test(arguments: StoreKind.all) func policyOfTheGroupCounts(kind: StoreKind) async throws {
        let shop = try await shop(kind, pin: .none)
        _ = try await ask(shop, pin: nil).get()
        try shop.rig.execute(#"UPDATE user SET policy = '{"pin":"required"}'"#)
        #expect(try await ask(shop, pin: nil) == .failure(.pin(.unset)))
        let strict = try await self.shop(kind, pin: .required)
        try strict.rig.execute(#"UPDATE user SET policy = '{"pin":"none"}'"#)
        _ = try await ask(strict, pin: nil).get()
    }

    /// A wrong PIN that is counted between the judgement and the write.
    @Test(arguments: StoreKind.all) func outdatedJudgementDeliversNothing(kind: StoreKind) async throws {
        let shop = try await shop(kind, pin: .required)
        try await shop.set()
        let phone = try await shop.credential()
        let judged = JudgedPIN(version: 1, failures: 0, isRight: true)
        try await shop.guessWrong(try await shop.ask(), 1)
        let (store, now) = (shop.rig.store, shop.rig.time.now())
        let agreement = try #require(shop.bound.phone.agreement).publicKey.x963
        func deliver(_ judged: JudgedPIN) async throws -> SecretDeliveryOutcome {
            try await shop.rig.on { relay in
                let operation = relay.operations.new()
                let factor = NewFactor(
                    id: operation.identifier("totp"), user: phone.user, kind: .totp, state: .active,
                    sealed: SealedSecret(bytes: [1], key: "key"), period: 30, at: now)
                return try await store.deliver(
                    SecretDelivery(
                        phone: phone, agreement: agreement, askedAt: now, factor: factor, pin: judged,
                        repeatableSince: nil, at: now), as: operation)
            }
        }
        #expect(try await deliver(judged) == .otherPIN)
        #expect(try await deliver(JudgedPIN(version: 2, failures: 1, isRight: true)) == .otherPIN)
        #expect(try shop.audited("secret.delivered") == 0)
        guard case .done = try await deliver(JudgedPIN(version: 1, failures: 1, isRight: true)) else {
            Issue.record("nothing was delivered")
            return
        }
    }

    /// The codes of a lost phone prove nothing about its loss: whoever has the phone sees them.
    @Test(arguments: StoreKind.all) func codesOfALostPhoneAreNoProof(kind: StoreKind) async throws {
        let shop = try await shop(kind, pin: .none)
        func proofs(of lost: Factor) async throws -> [Factor] {
            let (ada, now) = (shop.shop.ada, shop.rig.time.now())
            return try await shop.rig.on { relay in
                let user = try await relay.user(named: ada.username, of: ada.website)
                return try await relay.proofs(of: lost, user, ada.website, at: now)
            }
        }
        #expect(try await proofs(of: .hotp) == [.push])
        _ = try await ask(shop, pin: nil).get()
        #expect(try await proofs(of: .hotp) == [.push, .totp])
        #expect(try await proofs(of: .push) == [])
    }
}
