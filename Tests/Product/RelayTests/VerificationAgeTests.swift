import Domain
import JSON
import Relay
import TestSupport
import Testing

/// The demand that a phone verified its user within so many seconds.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct VerificationAgeTests {
    private func answer(
        _ shop: AttestedShop, _ bound: RelayRig.BoundPhone, _ challenge: ChallengeID, uv: UserVerification,
        age: JSONValue?, _ decision: Decision = .approve
    ) async throws -> Result<ChallengeLife.Result, Refusal> {
        let signed = try bound.phone.decision(
            decision.rawValue, about: try await shop.rig.shown(challenge, to: bound.credential),
            device: bound.credential.id.text, origin: RelayRig.origin, uv: uv.rawValue, at: shop.rig.time.now()
        ) { $0.set("uv_age", age) }
        return try await PINShop.outcome {
            try await shop.rig.post(
                PhoneAnswer(approves: decision == .approve, signed: signed), challenge, by: bound)
        }
    }

    @Test(arguments: StoreKind.all) func oldVerificationIsRefused(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, ["max-uv-age": "60"])
        let bound = try await shop.bound(nil)
        let challenge = try await shop.ada.login().challenge
        #expect(try await shop.demands(on: bound) == ["max_uv_age": 60])
        let refused: [(UserVerification, JSONValue?)] = [
            (.biometric, 61), (.biometric, nil), (.none, 0), (.passcode, .integer(Int64(Int32.max))),
        ]
        for (uv, age) in refused {
            guard case .failure(.forbidden) = try await answer(shop, bound, challenge, uv: uv, age: age) else {
                Issue.record("\(uv) of \(age as Any) was not refused")
                continue
            }
        }
        for age in [-1, "5", .number(5.5), .integer(Int64(Int32.max) + 1)] as [JSONValue] {
            guard case .failure(.invalid) = try await answer(shop, bound, challenge, uv: .passcode, age: age) else {
                Issue.record("\(age) was not refused")
                continue
            }
        }
        #expect(try await answer(shop, bound, challenge, uv: .passcode, age: 60) == .success(.success))
    }

    @Test func denialNeedsNoVerification() async throws {
        let shop = try await AttestedShop(.memory, ["max-uv-age": "60"])
        let bound = try await shop.bound(nil)
        let challenge = try await shop.ada.login().challenge
        #expect(try await answer(shop, bound, challenge, uv: .none, age: "soon", .deny) == .success(.failure))
    }

    /// A phone may say the age without being asked; it decides nothing then.
    @Test func websiteWithoutTheDemandIgnoresTheAge() async throws {
        let shop = try await AttestedShop(.memory)
        let bound = try await shop.bound(nil)
        let challenge = try await shop.ada.login().challenge
        #expect(try await shop.demands(on: bound) == nil)
        #expect(try await answer(shop, bound, challenge, uv: .none, age: 90_000) == .success(.success))
        #expect(try await shop.ada.reported(challenge).verified == nil)
    }

    @Test func websiteWithTheDemandSeesTheAge() async throws {
        let shop = try await AttestedShop(.memory, ["max-uv-age": "60"])
        let bound = try await shop.bound(nil)
        let challenge = try await shop.ada.login().challenge
        #expect(try await answer(shop, bound, challenge, uv: .passcode, age: 59) == .success(.success))
        let seen = try await shop.ada.reported(challenge).verified
        #expect(seen?.uv == .passcode && seen?.age == 59)
    }
}
