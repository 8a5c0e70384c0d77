import Bytes
import Crypto
import Domain
import JSON
import Relay
import TestSupport
import Testing
import World

/// Signed decisions: each decides once, and reaches the website with everything that proves it.
@Suite(.mayBlock) struct DecisionTests {
    @Test(arguments: StoreKind.all) func websiteReceivesTheSignedDecision(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        let signed = try await fixture.rig.signed(.approve, asked.challenge, number: "47", by: fixture.first)
        let answer = PhoneAnswer(approves: true, signed: signed)
        #expect(try await fixture.rig.post(answer, asked.challenge, by: fixture.first) == .success)
        let reported = try await fixture.reported(asked)
        #expect(reported.result == .success && reported.proof == .signed && reported.assurance == .high)
        #expect(reported.receipt == signed && reported.device == fixture.first.credential.id)
        // Verified with what the website has: the pinned key and the context.
        let receipt = try JWS.parse(try #require(reported.receipt))
        #expect(receipt.verify(fixture.first.phone.key.publicKey))
        let claims = try #require(try JSONReader.read(receipt.payload).object)
        #expect(claims["context"]?.string == Base64URL.encode(SHA256.hash(reported.context)))
        #expect(claims["request"] == "r-1" && claims["number"] == "47" && claims["decision"] == "approve")
        #expect(
            try fixture.rig.count(
                "SELECT count(*) FROM audit WHERE event = 'challenge.answered' AND proof = 'signed'") == 1)
    }

    @Test(arguments: StoreKind.all) func denialNeedsOnlyASignature(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["min-uv": "biometric"])
        let asked = try await fixture.ask()
        #expect(try await fixture.rig.decide(.deny, asked.challenge, by: fixture.first) == .failure)
        let reported = try await fixture.reported(asked)
        #expect(
            reported.reason == .denied && reported.proof == .signed && reported.receipt != nil
                && reported.assurance == nil)
        #expect(try fixture.rig.count("SELECT sum(failures) FROM device") == 0)
    }

    // MARK: User verification

    @Test(arguments: StoreKind.all) func insufficientUserVerificationIsRefusedAndCanBeRetried(kind: StoreKind)
        async throws
    {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["min-uv": "passcode"])
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        let untouched = try await fixture.state(asked)
        let refusal = await #expect(throws: Refusal.self) {
            try await fixture.rig.decide(.approve, asked.challenge, number: "47", by: fixture.first)
        }
        guard case .forbidden(let why) = refusal else {
            throw RigFailure("refused with \(String(describing: refusal))")
        }
        #expect(why.english.contains("passcode") && why.english.contains("none"))
        #expect(try await fixture.state(asked) == untouched)
        #expect(try fixture.refusals(.verification, by: fixture.first, about: asked.challenge) == 1)
        let again = try await fixture.rig.decide(
            .approve, asked.challenge, number: "47", uv: .biometric, by: fixture.first)
        #expect(again == .success)
    }

    /// A plain answer does not state user verification, so it is not enough for `min-uv`.
    @Test func onlySignedAnswersStateUserVerification() async throws {
        let fixture = try await TwoWebsitesFixture(.memory, policies: ["answers": "certificate", "min-uv": "passcode"])
        let asked = try await fixture.ask()
        await #expect(throws: Refusal.self) {
            try await fixture.rig.post(
                PhoneAnswer(approves: true, number: "47"), asked.challenge, by: fixture.first)
        }
        #expect(try fixture.refusals(.verification, by: fixture.first, about: asked.challenge) == 1)
        #expect(
            try await fixture.rig.post(PhoneAnswer(approves: false), asked.challenge, by: fixture.first) == .failure)
    }

    @Test(arguments: UserVerification.allCases, ["0", "2"])
    func assuranceIsHighWithNumberOrUserVerification(uv: UserVerification, number: String) async throws {
        let fixture = try await TwoWebsitesFixture(.memory, policies: ["number": number])
        let asked = try await fixture.ask(number: nil)
        let result = try await fixture.rig.decide(
            .approve, asked.challenge, number: asked.number, uv: uv, by: fixture.first)
        #expect(result == .success)
        let isHigh = number == "2" || uv != .none
        #expect(try await fixture.reported(asked).assurance == (isHigh ? .high : .substantial))
        #expect(try fixture.rig.count("SELECT count(*) FROM challenge WHERE uv = '\(uv.rawValue)'") == 1)
    }
}
