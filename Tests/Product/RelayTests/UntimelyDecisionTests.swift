import Bytes
import Domain
import Relay
import TestSupport
import Testing
import World

/// Correct decisions that arrive too early, too late, or again.
@Suite(.timeLimit(.minutes(5))) struct UntimelyDecisionTests {
    /// A decision that predicts all values of a later challenge: correct in every point except its time.
    @Test(arguments: StoreKind.all) func earlyDecisionIsRefused(kind: StoreKind) async throws {
        let (fixture, oracle) = (try await TwoWebsitesFixture(kind), try await TwoWebsitesFixture(.memory))
        let operation = fixture.rig.relay.operations.new()
        let earlier = try await fixture.ask()
        await fixture.rig.settled()
        let untouched = try await fixture.state(earlier)
        // The same challenge, at another relay with the same key and clock.
        let foreseen = try await oracle.ask(as: operation.id)
        let shown = try await oracle.rig.shown(foreseen.challenge, to: oracle.first.credential)
        let signed = try fixture.first.phone.decision(
            "approve", about: shown, device: fixture.first.credential.id.text, origin: RelayRig.origin, number: "47",
            at: fixture.rig.time.now())
        let answer = PhoneAnswer(approves: true, signed: signed)
        for _ in 0..<2 {
            await #expect(throws: Refusal.notFound) {
                try await fixture.rig.post(answer, foreseen.challenge, by: fixture.first)
            }
        }
        #expect(fixture.counted(.unknown) == 2)
        #expect(try fixture.refusals(.unknown, by: fixture.first, about: nil) == 1)
        #expect(try await fixture.state(earlier) == untouched)
        // The early decision was not kept.
        let asked = try await fixture.ask(as: operation.id)
        #expect(asked.challenge == foreseen.challenge)
        // The nonce is random, so in reality it cannot be predicted.
        let nonce = try #require(Base64URL.decode(shown.nonce))
        #expect(try await fixture.rig.shown(asked.challenge, to: fixture.first.credential).nonce != shown.nonce)
        try fixture.rig.execute("UPDATE challenge SET nonce = x'\(Hex.encode(nonce))' WHERE id = x'\(asked.challenge)'")
        #expect(try await fixture.reported(asked).result == .wait)
        #expect(try await fixture.rig.post(answer, asked.challenge, by: fixture.first) == .success)
    }

    @Test(arguments: StoreKind.all) func lateDecisionIsRefused(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        let signed = try await fixture.rig.signed(.approve, asked.challenge, number: "47", by: fixture.first)
        fixture.rig.time.advance(by: .seconds(300))
        // The first read after the expiry records it.
        #expect(try await fixture.reported(asked).reason == .expired)
        let untouched = try await fixture.state(asked)
        for _ in 0..<2 {
            await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
                try await fixture.rig.post(
                    PhoneAnswer(approves: true, signed: signed), asked.challenge, by: fixture.first)
            }
        }
        #expect(try fixture.refusals(.late, by: fixture.first, about: asked.challenge) == 1)
        #expect(fixture.counted(.late) == 2)
        #expect(try await fixture.state(asked) == untouched)
    }

    @Test(arguments: StoreKind.all) func replayedDecisionIsRefused(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        await fixture.rig.settled()
        let signed = try await fixture.rig.signed(.approve, asked.challenge, number: "47", by: fixture.first)
        let answer = PhoneAnswer(approves: true, signed: signed)
        #expect(try await fixture.rig.post(answer, asked.challenge, by: fixture.first) == .success)
        let decided = try await fixture.state(asked)
        for _ in 0..<3 {
            await #expect(throws: Refusal.alreadyDecided(result: "success")) {
                try await fixture.rig.post(answer, asked.challenge, by: fixture.first)
            }
        }
        #expect(try fixture.refusals(.decided, by: fixture.first, about: asked.challenge) == 1)
        #expect(try await fixture.state(asked) == decided)
        // It is not valid for the next challenge either.
        let next = try await fixture.ask()
        await #expect(throws: Refusal.self) { try await fixture.rig.post(answer, next.challenge, by: fixture.first) }
        #expect(try fixture.refusals(.challenge, by: fixture.first, about: next.challenge) == 1)
        #expect(try await fixture.reported(next).result == .wait)
    }

    /// The relay's clock and the nonce decide whether a decision is late. `iat` is the phone's own time, and only
    /// recorded.
    @Test(arguments: StoreKind.all, [-86_400 * 365, 86_400 * 365])
    func phoneClockIsIgnored(kind: StoreKind, seconds: Int64) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        let shown = try await fixture.rig.shown(asked.challenge, to: fixture.first.credential)
        let said = fixture.rig.time.now().seconds + seconds
        let signed = try fixture.first.phone.decision(
            "approve", about: shown, device: fixture.first.credential.id.text, origin: RelayRig.origin, number: "47",
            at: Timestamp(seconds: said))
        let answer = PhoneAnswer(approves: true, signed: signed)
        #expect(try await fixture.rig.post(answer, asked.challenge, by: fixture.first) == .success)
        let receipt = try #require(try await fixture.reported(asked).receipt)
        #expect(Forgery.payload(of: receipt).contains(#""iat":\#(said)"#))
    }
}
