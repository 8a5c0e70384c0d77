import Crypto
import HTTP
import JSON
import Metrics
import TestSupport
import Testing
import World

@testable import API
@testable import Relay

/// The cost of proofs under unknown keys: store statements and verified signatures.
struct ProofCostTests {
    private func present(_ proof: String, from remote: String, _ rig: APIRig) async -> Response {
        var request = rig.stranger.request("POST", "/pending", fields: [("dpop", proof)])
        request.remote = remote
        return await rig.send(request)
    }

    @Test func unknownKeyCostsOneLookupAndNoSignature() async throws {
        let statements = Statements()
        let rig = try await APIRig(noting: statements)
        let stranger = try TestPhone(pushToken: "unknown")
        let replayed = try rig.proof(stranger)
        _ = statements.take()
        var answers: [Response] = []
        for _ in 0..<20 {
            answers.append(await rig.present(replayed).withoutID)
            answers.append(await rig.present(try rig.proof(stranger)).withoutID)
        }
        #expect(statements.take().count == 1)
        #expect(answers[0].status == 401 && answers.allSatisfy { $0 == answers[0] })
        let proofs = rig.api.relay.metrics.proofs
        #expect(proofs[.lookup] == 1 && proofs[.unknown] == 39 && proofs[.signature] == 0)
        // After two seconds the key is looked up again.
        rig.relay.time.advance(by: .seconds(2))
        #expect(await rig.present(try rig.proof(stranger)).status == 401)
        #expect(statements.take().count == 1)
    }

    @Test func onlyTheSenderOfUnknownKeysIsLimited() async throws {
        let statements = Statements()
        let rig = try await APIRig(noting: statements)
        let phone = try await rig.bound("bob", at: "shop")
        let late = try await rig.bound("ann", at: "bank")
        #expect(await present(try rig.proof(phone), from: "192.0.2.1", rig).status == 200)
        _ = statements.take()
        func flood(_ count: Int) async throws -> [Int: Int] {
            var answers: [Int: Int] = [:]
            for _ in 0..<count {
                let proof = try rig.proof(try TestPhone(pushToken: "unknown"))
                answers[await present(proof, from: "192.0.2.1", rig).status, default: 0] += 1
            }
            return answers
        }
        #expect(try await flood(120) == [401: 100, 429: 20])
        #expect(statements.take().count == 100)
        // A phone that is known here continues. An unknown one must wait, or use another address.
        #expect(await present(try rig.proof(phone), from: "192.0.2.1", rig).status == 200)
        let limited = await present(try rig.proof(late), from: "192.0.2.1", rig)
        #expect(limited.status == 429 && limited.fields["retry-after"] == "1")
        #expect(await present(try rig.proof(late), from: "192.0.2.2", rig).status == 200)
        #expect(await present(try rig.proof(late), from: "192.0.2.1", rig).status == 200)
        rig.relay.time.advance(by: .seconds(1))
        #expect(try await flood(15) == [401: 10, 429: 5])
    }

    /// Proofs with other people's public keys do not reveal which phones are bound.
    @Test func wrongSignatureAndUnknownKeyGetTheSameAnswer() async throws {
        let rig = try await APIRig()
        let known = try await rig.bound("bob", at: "shop")
        let unseen = try await rig.bound("ann", at: "bank")
        #expect(await rig.present(try rig.proof(known)).status == 200)
        let attacker = try TestPhone(pushToken: "attacker")
        var answers: [Response] = []
        for victim in [known, unseen, try TestPhone(pushToken: "unknown")] {
            let proof = try rig.proof(attacker, header: { $0["jwk"] = .object(victim.key.publicKey.jwk) })
            answers.append(await rig.present(proof).withoutID)
        }
        #expect(answers[0].status == 401 && answers.allSatisfy { $0 == answers[0] })
        #expect(rig.api.relay.metrics.proofs[.signature] == 3)
    }

    /// An earlier refusal does not hide that the key was bound meanwhile.
    @Test func newlyBoundKeyIsKnownAtOnce() async throws {
        let rig = try await APIRig(.file)
        let neighbour = try await APIRig(beside: rig)
        // Until then the relay accepts no nonces of other relays.
        rig.relay.time.advance(by: .seconds(60))
        let shop = try await rig.site("shop")
        let (token, code) = try await shop.register("bob")
        let phone = try TestPhone(pushToken: "push")
        #expect(await rig.present(try rig.proof(phone)).status == 401)
        #expect(await neighbour.present(try rig.proof(phone)).status == 401)
        #expect(try await shop.verify(phone, token: token, code: code).status == 200)
        #expect(await rig.present(try rig.proof(phone)).status == 200)
        // The other relay has not noticed the binding yet.
        #expect(await neighbour.present(try rig.proof(phone)).status == 401)
        rig.relay.time.advance(by: .seconds(2))
        #expect(await neighbour.present(try rig.proof(phone)).status == 200)
    }

    @Test func memoryOfKeysAndSendersIsBounded() {
        let keys = PhoneKeyCache(most: 64)
        let now = Instant(nanoseconds: 1)
        for number in 0..<10_000 {
            keys.remember([UInt8(number & 255), UInt8(number >> 8)], isKnown: number.isMultiple(of: 2), at: now)
        }
        #expect(keys.count <= 128)
        #expect(keys.answer(to: [0x0f, 0x27], at: now) == .unknown)
        #expect(keys.answer(to: [0x0e, 0x27], at: now) == .known)
        #expect(keys.answer(to: [0x0f, 0x27], at: now + PhoneKeyCache.unknownLife) == .unsure)
    }
}
