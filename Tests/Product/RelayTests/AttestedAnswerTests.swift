import Attestation
import Bytes
import Crypto
import Domain
import JSON
import Log
import Relay
import SimulatedAttestation
import Storage
import TestSupport
import Testing
import World

/// Attestations and assertions at the approvals of phones.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AttestedAnswerTests {
    private static let required = ["attestation-ios": "required", "attestation-android": "required"]

    /// The website gets the relay's word, and everything to verify it.
    @Test(arguments: StoreKind.all) func resultHasTheVerdictAndTheEvidence(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, Self.required)
        let phone = try TestPhone(pushToken: "push")
        let sent = try shop.attestation(.ios, of: phone)
        let bound = try await shop.bound(nil, sent, phone)
        let asked = try await shop.ada.login()
        #expect(
            try await shop.answer(by: bound, asked.challenge, assert: shop.assertion(1)) == .success(.success))
        let reported = try await shop.ada.reported(asked.challenge)
        let json = try #require(reported.json()["attestation"]?.object)
        #expect(json["verdict"] == "valid" && json["faults"] == [] && json["asserted"] == true)
        #expect(json["facts"]?.object?["hardware"] == "secure_enclave")
        let evidence = try #require(json["evidence"]?.object)
        #expect(evidence["statement"] == sent)
        // The assertion is over the receipt, by the attested key.
        let assertion = try #require(json["assertion"]?.string.flatMap { Base64URL.decode($0) })
        let receipt = try #require(reported.receipt)
        let counter = try AppAssertion.verify(
            assertion, key: shop.iPhone.key.publicKey, clientDataHash: SHA256.hash(Array(receipt.utf8)),
            app: SimulatedIPhone.app, after: 0)
        #expect(counter == 1)
        #expect(try await shop.stored(bound)?.counter == 1)
        #expect(try await shop.rig.notGenuine() == [])
    }

    @Test func phoneWithAndroidNeedsNoAssertion() async throws {
        let shop = try await AttestedShop(.memory, Self.required)
        let bound = try await shop.bound(.android)
        let asked = try await shop.ada.login()
        #expect(try await shop.answer(by: bound, asked.challenge) == .success(.success))
        let json = try await shop.ada.reported(asked.challenge).json()["attestation"]?.object
        #expect(json?["facts"]?.object?["boot_state"] == "verified" && json?["asserted"] == nil)
    }

    /// Each wrong assertion is refused, changes nothing, and the right one is accepted afterwards.
    @Test(arguments: StoreKind.all) func wrongAssertionsAreRefused(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, Self.required)
        let bound = try await shop.bound(.ios)
        var first: String?
        #expect(
            try await shop.answer(
                by: bound,
                assert: { signed in
                    first = try shop.assertion(5)(signed)
                    return first
                }) == .success(.success))
        let replayed = try #require(first)
        let other = try SimulatedIPhone(root: shop.authorities.root)
        var otherApp = shop.iPhone
        otherApp.app = "TEAM123456.other"
        let wrongs: [(name: String, assert: (String) throws -> String?)] = [
            ("none", { _ in nil }),
            ("replayed from another answer", { _ in replayed }),
            ("the same counter", shop.assertion(5)),
            ("the counter turned back", shop.assertion(4)),
            ("the counter of the attestation", shop.assertion(0)),
            ("by another phone with the same app", shop.assertion(6, by: other)),
            ("by another app", shop.assertion(6, by: otherApp)),
            ("over another answer", { _ in try shop.assertion(6)("another") }),
            ("no CBOR", { _ in "AAAA" }),
            ("no base64url", { _ in "=" }),
        ]
        let asked = try await shop.ada.login()
        for wrong in wrongs {
            #expect(
                try await shop.answer(by: bound, asked.challenge, assert: wrong.assert)
                    == .failure(.postureUnmet([.assertion])), "\(wrong.name)")
            #expect(try await shop.stored(bound)?.counter == 5, "\(wrong.name)")
        }
        #expect(
            shop.rig.registry.number(#"twoefay_decisions_refused_total{reason="posture"}"#) == Double(wrongs.count))
        #expect(try shop.rig.count("SELECT count(*) FROM audit WHERE outcome = 'posture'") == 1)
        #expect(
            try await shop.answer(by: bound, asked.challenge, assert: shop.assertion(6)) == .success(.success))
        #expect(try await shop.stored(bound)?.counter == 6)
    }

    /// A phone that cannot approve, and the reason.
    enum Unfit: CaseIterable {
        case none, revoked, flawed, withoutAssertion
    }

    /// A denial or a report of fraud never needs an attestation.
    @Test(arguments: Unfit.allCases, [Decision.deny, .fraud])
    func denialNeedsNoAttestation(unfit: Unfit, decision: Decision) async throws {
        let recorded = ["attestation-ios": "recorded", "attestation-android": "recorded"]
        let before = try await AttestedShop(.memory, recorded)
        let phone = try TestPhone(pushToken: "push")
        let sent: JSONValue? =
            switch unfit {
            case .none: nil
            case .revoked: try before.attestation(.android, of: phone)
            case .flawed: try before.android(before.subject(phone), key: phone.key) { $0.isLocked = false }
            case .withoutAssertion: try before.attestation(.ios, of: phone)
            }
        let bound = try await before.bound(nil, sent, phone)
        if unfit == .none { try before.rig.execute("DELETE FROM attestation") }
        if unfit == .revoked { try before.trust(revoked: ["abc"]) }
        let shop = try await before.changed(Self.required)
        let asked = try await shop.ada.login()
        let missing: PhoneDemands.Demand = unfit == .withoutAssertion ? .assertion : .attestation
        #expect(try await shop.answer(by: bound, asked.challenge) == .failure(.postureUnmet([missing])))
        #expect(try await shop.answer(decision, by: bound, asked.challenge) == .success(.failure))
        #expect(try await shop.ada.reported(asked.challenge).json()["attestation"] == nil)
    }

    /// Somebody changed the row by SQL. Only approvals fail.
    @Test(arguments: StoreKind.all) func forgedAttestationBlocksNothingElse(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, Self.required)
        let bound = try await shop.bound(.ios)
        let approved = try await shop.ada.login()
        #expect(
            try await shop.answer(by: bound, approved.challenge, assert: shop.assertion(1)) == .success(.success))
        try shop.rig.forge("UPDATE attestation SET counter = 0")
        #expect(try await shop.ada.reported(approved.challenge).result == .success)
        let asked = try await shop.ada.login()
        let pending = try await shop.rig.on { relay in try await relay.pending(for: bound.credential) }
        #expect(pending.map(\.challenge) == [asked.challenge])
        #expect(try await shop.answer(by: bound, asked.challenge, assert: shop.assertion(2)) == .failure(.broken))
        #expect(try await shop.answer(.deny, by: bound, asked.challenge) == .success(.failure))
        #expect(try await shop.answer(.fraud, by: bound) == .success(.failure))
    }

    /// Somebody puts another key in the place of the attested one by SQL, and holds that key. It
    /// approves nothing: neither as the phone's own key, nor as the key of App Attest's assertions.
    @Test(arguments: StoreKind.all) func keyChangedAfterTheEnrolmentApprovesNothing(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, Self.required)
        let phone = try await shop.bound(.android)
        let thief = try TestPhone(pushToken: "thief")
        let key = thief.key.publicKey
        try shop.rig.forge(
            """
            UPDATE device SET public_key = x'\(Hex.encode(key.x963))',
                thumbprint = x'\(Hex.encode(key.spkiThumbprint))' WHERE id = x'\(phone.credential.id.text)'
            """)
        let asked = try await shop.ada.login()
        await shop.rig.settled()
        let said = await refusal {
            let stolen = (phone: thief, credential: try await shop.ada.credential(thief, phone.credential.id))
            _ = try await shop.answer(by: stolen, asked.challenge).get()
        }
        #expect(said == .broken)
        #expect(try await shop.ada.reported(asked.challenge).result == .wait)

        let other = try await AttestedShop(kind, Self.required)
        let bound = try await other.bound(.ios)
        let iPhone = try SimulatedIPhone(root: other.authorities.root)
        try other.rig.forge("UPDATE attestation SET app_key = x'\(Hex.encode(iPhone.key.publicKey.x963))'")
        let second = try await other.ada.login()
        for assert in [other.assertion(1, by: iPhone), other.assertion(1)] {
            #expect(try await other.answer(by: bound, second.challenge, assert: assert) == .failure(.broken))
        }
        #expect(try await other.ada.reported(second.challenge).result == .wait)
    }

    /// A phone reports a version that is no version. An approval is malformed, and a denial counts.
    @Test func denialCountsWhateverThePhoneReports() async throws {
        let shop = try await AttestedShop(.memory, Self.required)
        let bound = try await shop.bound(.ios)
        let asked = try await shop.ada.login()
        let shown = try await shop.rig.shown(asked.challenge, to: bound.credential)
        func signed(_ decision: Decision) throws -> String {
            try bound.phone.decision(
                decision.rawValue, about: shown, device: bound.credential.id.text, origin: RelayRig.origin,
                at: shop.rig.time.now(), change: { $0.set("posture", ["os_version": "Baklava"]) })
        }
        let approval = PhoneAnswer(approves: true, signed: try signed(.approve), assertion: nil)
        #expect(await refusal { try await shop.rig.post(approval, asked.challenge, by: bound) } != nil)
        let denial = PhoneAnswer(approves: false, signed: try signed(.deny), assertion: nil)
        #expect(try await shop.rig.post(denial, asked.challenge, by: bound) == .failure)
    }

    /// Under `recorded`, the website sees whether there was an assertion, and nobody is refused.
    @Test func recordedAssertionIsReported() async throws {
        let shop = try await AttestedShop(.memory, ["attestation-ios": "recorded"])
        let bound = try await shop.bound(.ios)
        for (assert, isAsserted) in [
            (shop.assertion(1), true), ({ _ in nil }, false), (shop.assertion(1), false), (shop.assertion(2), true),
        ] as [((String) throws -> String?, Bool)] {
            let asked = try await shop.ada.login()
            #expect(try await shop.answer(by: bound, asked.challenge, assert: assert) == .success(.success))
            let json = try await shop.ada.reported(asked.challenge).json()["attestation"]?.object
            #expect(json?["asserted"] == .bool(isAsserted) && (json?["assertion"] != nil) == isAsserted)
        }
    }

    /// Two answers were judged by the same counter: a copied key, or two requests at once. One ends
    /// its challenge.
    @Test(arguments: StoreKind.all) func oneOfTwoAnswersWithOneCounterCounts(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, Self.required)
        let bound = try await shop.bound(.ios)
        let row = try #require(try await shop.stored(bound))
        let binding = try #require(row.binding)
        var ends: [ChallengeEndResult?] = []
        for (counter, next) in [(0, 1), (0, 2), (1, 2)] as [(UInt32, UInt32)] {
            let asked = try await shop.ada.login()
            await shop.rig.settled()
            let life = ChallengeLife(
                state: .answered, decision: .approve, reason: nil, expiresAt: shop.rig.time.now() + .seconds(60))
            let closing = ChallengeEnd(
                challenge: asked.challenge, life: life, factor: .push, proof: .signed, device: bound.credential,
                posture: JudgedPosture(
                    answer: AttestedAnswer(facts: "{}", assertion: "a"),
                    relied: JudgedPosture.Relied(binding: binding, counter: counter, next: next)),
                event: "challenge.answered", at: shop.rig.time.now())
            let store = shop.rig.store
            ends.append(
                try await shop.rig.on { relay in try await store.close(closing, as: relay.operations.new()) })
        }
        #expect(ends.map { $0 != nil } == [true, false, true])
        #expect(try await shop.stored(bound)?.counter == 2)
        #expect(try await shop.rig.notGenuine() == [])
    }

    /// A phone that was bound before the policy must be bound again. The phone learns this before
    /// its person answers.
    @Test(arguments: StoreKind.all) func phoneWithoutAttestationMustBeBoundAgain(kind: StoreKind) async throws {
        let before = try await AttestedShop(kind, ["attestation-ios": "recorded", "attestation-android": "recorded"])
        let bound = try await before.bound(nil, says: .android)
        #expect(try await before.answer(by: bound) == .success(.success))
        let shop = try await before.changed(Self.required)
        let asked = try await shop.ada.login()
        let demands = try await shop.demands(on: bound)
        #expect(demands == ["attestation": "required", "unmet": ["attestation"]])
        #expect(
            try await shop.answer(by: bound, asked.challenge) == .failure(.postureUnmet([.attestation])))
        // The same phone is bound again, with an attestation.
        let again = try await shop.bound(
            .android, code: try await shop.ada.furtherCode(), nil, try TestPhone(pushToken: "again"))
        #expect(try await shop.answer(by: again, asked.challenge) == .success(.success))
    }

    /// A key that is revoked after the enrolment no longer approves. An old list keeps no bound
    /// phone out.
    @Test func laterRevocationEndsApprovals() async throws {
        let shop = try await AttestedShop(.memory, Self.required)
        let bound = try await shop.bound(.android)
        try shop.trust(listAge: .seconds(30 * 86_400))
        #expect(try await shop.answer(by: bound) == .success(.success))
        try shop.trust(revoked: ["abc"])
        _ = try await shop.ada.login()
        #expect(try await shop.demands(on: bound)?["unmet"] == ["attestation"])
        #expect(try await shop.answer(by: bound) == .failure(.postureUnmet([.attestation])))
        let lines = shop.rig.sink.drain().filter { $0.contains("event=posture.refused") }
        #expect(lines.count == 1 && lines[0].contains("reason=attestation") && lines[0].contains("error=revoked"))
    }

    /// The website sees the revocation wherever it sees the phone.
    @Test(arguments: StoreKind.all) func laterRevocationIsShown(kind: StoreKind) async throws {
        let shop = try await AttestedShop(
            kind, ["attestation-ios": "recorded", "attestation-android": "recorded", "devices": "9"])
        let bound = try await shop.bound(.android)
        let iPhone = try await shop.bound(.ios, code: try await shop.ada.furtherCode())
        try shop.trust(revoked: ["abc"])
        let shown = try await shop.rig.on { relay in
            try await relay.attestations(of: bound.credential.user, at: shop.website)
        }
        #expect(shown[bound.credential.id]?.verdict == .flawed && shown[bound.credential.id]?.faults == ["revoked"])
        // App Attest has no list.
        #expect(shown[iPhone.credential.id]?.verdict == .valid)
        let one = try await shop.rig.on { relay in
            try await relay.attestation(of: bound.credential.id, at: shop.website)
        }
        #expect(one?.json["verdict"] == "flawed" && one?.json["faults"] == ["revoked"])
        let asked = try await shop.ada.login()
        #expect(try await shop.answer(by: bound, asked.challenge) == .success(.success))
        let json = try await shop.ada.reported(asked.challenge).json()["attestation"]?.object
        #expect(json?["verdict"] == "flawed" && json?["faults"] == ["revoked"])
        // The row is as it was: the key may leave the list again.
        try shop.trust()
        let again = try await shop.rig.on { relay in
            try await relay.attestation(of: bound.credential.id, at: shop.website)
        }
        #expect(again?.verdict == .valid && again?.faults == [])
        #expect(try await shop.rig.notGenuine() == [])
    }

    /// The person reset the screen lock, so the phone's key is gone: the phone cannot sign any
    /// more, and is bound again with a new key and a new attestation.
    @Test(arguments: StoreKind.all) func newKeyAfterAResetLockIsAnotherPhone(kind: StoreKind) async throws {
        let shop = try await AttestedShop(kind, Self.required)
        let before = try await shop.bound(.android)
        let fresh = try TestPhone(pushToken: before.phone.pushToken)
        // The new key under the old phone's name signs nothing.
        let impostor: RelayRig.BoundPhone = (fresh, before.credential)
        let asked = try await shop.ada.login()
        guard case .failure(.invalid(let faults)) = try await shop.answer(by: impostor, asked.challenge) else {
            Issue.record("another key signed for the phone")
            return
        }
        #expect(faults.map(\.parameter) == ["answer"])
        // The old attestation is not for the new key.
        let code = try await shop.ada.furtherCode()
        let old = try shop.attestation(.android, of: before.phone, code: code)
        #expect(try await shop.bind(fresh, old, code: code) == .failure(.notAttested(.key)))
        let after = try await shop.bound(.android, code: code, nil, fresh)
        #expect(after.credential.id != before.credential.id)
        #expect(try await shop.answer(by: after, asked.challenge) == .success(.success))
    }
}
