import Bytes
import Domain
import Relay
import TestSupport
import Testing
import World

/// Decisions that are right in themselves and come too early, too late, or once more.
@Suite(.timeLimit(.minutes(5))) struct UntimelyDecisionTests {
    /// By somebody who knew all that the relay was going to make up: right in every point, but for its time.
    @Test(arguments: StoreKind.all) func earlyDecisionIsRefused(kind: StoreKind) async throws {
        let (cast, oracle) = (try await TwoWebsitesFixture(kind), try await TwoWebsitesFixture(.memory))
        let operation = cast.rig.relay.operations.new()
        let earlier = try await cast.ask()
        await cast.rig.settled()
        let untouched = try await cast.state(earlier)
        // The same challenge, at another relay with the same key and clock.
        let foreseen = try await oracle.ask(as: operation.id)
        let shown = try await oracle.rig.shown(foreseen.challenge, to: oracle.first.credential)
        let signed = try cast.first.phone.decision(
            "approve", about: shown, device: cast.first.credential.id.text, origin: RelayRig.origin, number: "47",
            at: cast.rig.time.now())
        let answer = PhoneAnswer(approves: true, signed: signed)
        for _ in 0..<2 {
            await #expect(throws: Refusal.notFound) {
                try await cast.rig.post(answer, foreseen.challenge, by: cast.first)
            }
        }
        #expect(cast.counted(.unknown) == 2)
        #expect(try cast.refusals(.unknown, by: cast.first, about: nil) == 1)
        #expect(try await cast.state(earlier) == untouched)
        // Nothing of it was kept for when it would be right.
        let asked = try await cast.ask(as: operation.id)
        #expect(asked.challenge == foreseen.challenge)
        // A nonce follows from nothing, so nobody can really foresee it.
        let nonce = try #require(Base64URL.decode(shown.nonce))
        #expect(try await cast.rig.shown(asked.challenge, to: cast.first.credential).nonce != shown.nonce)
        try cast.rig.execute("UPDATE challenge SET nonce = x'\(Hex.encode(nonce))' WHERE id = x'\(asked.challenge)'")
        #expect(try await cast.told(asked).result == .wait)
        #expect(try await cast.rig.post(answer, asked.challenge, by: cast.first) == .success)
    }

    @Test(arguments: StoreKind.all) func lateDecisionIsRefused(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        await cast.rig.settled()
        let signed = try await cast.rig.signed(.approve, asked.challenge, number: "47", by: cast.first)
        cast.rig.time.advance(by: .seconds(300))
        // Whoever looks first writes the expiry down.
        #expect(try await cast.told(asked).reason == .expired)
        let untouched = try await cast.state(asked)
        for _ in 0..<2 {
            await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
                try await cast.rig.post(
                    PhoneAnswer(approves: true, signed: signed), asked.challenge, by: cast.first)
            }
        }
        #expect(try cast.refusals(.late, by: cast.first, about: asked.challenge) == 1)
        #expect(cast.counted(.late) == 2)
        #expect(try await cast.state(asked) == untouched)
    }

    @Test(arguments: StoreKind.all) func replayedDecisionIsRefused(kind: StoreKind) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        await cast.rig.settled()
        let signed = try await cast.rig.signed(.approve, asked.challenge, number: "47", by: cast.first)
        let answer = PhoneAnswer(approves: true, signed: signed)
        #expect(try await cast.rig.post(answer, asked.challenge, by: cast.first) == .success)
        let decided = try await cast.state(asked)
        for _ in 0..<3 {
            await #expect(throws: Refusal.alreadyDecided(result: "success")) {
                try await cast.rig.post(answer, asked.challenge, by: cast.first)
            }
        }
        #expect(try cast.refusals(.decided, by: cast.first, about: asked.challenge) == 1)
        #expect(try await cast.state(asked) == decided)
        // And not for the next challenge either.
        let next = try await cast.ask()
        await #expect(throws: Refusal.self) { try await cast.rig.post(answer, next.challenge, by: cast.first) }
        #expect(try cast.refusals(.challenge, by: cast.first, about: next.challenge) == 1)
        #expect(try await cast.told(next).result == .wait)
    }

    /// The relay's clock and the nonce decide about lateness: `iat` is the phone's own, and kept for the record.
    @Test(arguments: StoreKind.all, [-86_400 * 365, 86_400 * 365])
    func phoneClockIsIgnored(kind: StoreKind, seconds: Int64) async throws {
        let cast = try await TwoWebsitesFixture(kind)
        let asked = try await cast.ask()
        let shown = try await cast.rig.shown(asked.challenge, to: cast.first.credential)
        let said = cast.rig.time.now().seconds + seconds
        let signed = try cast.first.phone.decision(
            "approve", about: shown, device: cast.first.credential.id.text, origin: RelayRig.origin, number: "47",
            at: Timestamp(seconds: said))
        let answer = PhoneAnswer(approves: true, signed: signed)
        #expect(try await cast.rig.post(answer, asked.challenge, by: cast.first) == .success)
        let receipt = try #require(try await cast.told(asked).receipt)
        #expect(Forgery.payload(of: receipt).contains(#""iat":\#(said)"#))
    }
}
