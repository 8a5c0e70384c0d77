import Bytes
import Crypto
import Domain
import JSON
import Log
import Metrics
import Relay
import TestSupport
import Testing
import World

/// Every way in which a decision can be wrong. It is refused; log, metrics and audit name the fault; no failure is
/// counted, and nothing changes. Then the right decision is accepted as usual.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RefusedDecisionTests {
    /// A wrong decision about Ada's open challenge.
    private struct Wrong {
        let name: String
        let fault: DecisionFault
        var sender: RelayRig.BoundPhone
        var challenge: ChallengeID
        var answer: PhoneAnswer
        /// Whether the audit names the challenge: it names only challenges of the sender.
        var isKnown = true
    }

    @Test(arguments: StoreKind.all) func everyWrongDecisionChangesNothing(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let rig = fixture.rig
        let before = try await fixture.ask(request: nil)
        let asked = try await fixture.ask()
        await rig.settled()
        let untouched = try await fixture.state(asked)
        _ = rig.sink.drain()
        var counts: [DecisionFault: Int] = [:]

        for wrong in try await wrongs(fixture, asked, superseded: before) {
            let counted = try #require(fixture.counted(wrong.fault))
            for _ in 0..<2 {
                do {
                    let result = try await rig.post(wrong.answer, wrong.challenge, by: wrong.sender)
                    Issue.record("\(wrong.name) came to \(result)")
                } catch let refusal as Refusal {
                    let isRight =
                        switch refusal {
                        case .invalid(let faults): wrong.isKnown && !faults.isEmpty
                        case .notFound: !wrong.isKnown
                        default: false
                        }
                    #expect(isRight, "\(wrong.name) was refused with \(refusal)")
                }
            }
            let about = wrong.isKnown ? wrong.challenge : nil
            // Refused twice, and audited once.
            #expect(fixture.counted(wrong.fault) == counted + 2, "\(wrong.name)")
            #expect(try fixture.refusals(wrong.fault, by: wrong.sender, about: about) == 1, "\(wrong.name)")
            let lines = rig.sink.drain().filter { $0.contains("event=decision.refused") }
            #expect(lines.count == 2, "\(wrong.name)")
            #expect(lines.allSatisfy { $0.contains("reason=\(wrong.fault.rawValue) ") }, "\(wrong.name): \(lines)")
            counts[wrong.fault, default: 0] += 2
            for fault in DecisionFault.allCases {
                let series = "twoefay_decisions_refused_total{reason=\"\(fault.rawValue)\"}"
                #expect(rig.registry.number(series) == Double(counts[fault] ?? 0), "\(wrong.name): \(fault)")
            }
            #expect(try await fixture.state(asked) == untouched, "\(wrong.name)")
        }
        #expect(counts.count > 10)
        #expect(try await rig.decide(.approve, asked.challenge, number: "47", by: fixture.first) == .success)
    }

    private func wrongs(_ fixture: TwoWebsitesFixture, _ asked: OpenedChallenge, superseded: OpenedChallenge)
        async throws
        -> [Wrong]
    {
        try await strangers(fixture, asked, superseded) + claims(fixture, asked, superseded) + forgeries(fixture, asked)
    }

    // MARK: Other users' challenges

    private func strangers(_ fixture: TwoWebsitesFixture, _ asked: OpenedChallenge, _ superseded: OpenedChallenge)
        async throws -> [Wrong]
    {
        let (rig, first) = (fixture.rig, fixture.first)
        let good = try await rig.signed(.approve, asked.challenge, number: "47", by: first)
        let shown = try await rig.shown(asked.challenge, to: first.credential)
        let device = first.credential.id.text
        func answer(_ phone: TestPhone) throws -> String {
            try phone.decision(
                "approve", about: shown, device: device, origin: RelayRig.origin, number: "47", at: rig.time.now())
        }
        let seconds = try await rig.signed(.approve, asked.challenge, number: "47", by: fixture.second)
        let nobody = try #require(ChallengeID([UInt8](repeating: 9, count: 16)))
        func wrong(
            _ name: String, _ fault: DecisionFault, _ signed: String, by sender: RelayRig.BoundPhone,
            about challenge: ChallengeID? = nil, isKnown: Bool = true
        ) -> Wrong {
            Wrong(
                name: name, fault: fault, sender: sender, challenge: challenge ?? asked.challenge,
                answer: PhoneAnswer(approves: true, signed: signed), isKnown: isKnown)
        }
        return [
            wrong("another key", .signature, try answer(try TestPhone(pushToken: "x")), by: first),
            wrong("the user's other phone's key", .signature, try answer(fixture.second.phone), by: first),
            wrong("another user's key", .signature, try answer(fixture.bob.phone), by: first),
            wrong("the user's other phone's answer", .key, seconds, by: first),
            wrong("the answer of this phone, sent by the other", .key, good, by: fixture.second),
            wrong("another user's phone", .unknown, good, by: fixture.bob, isKnown: false),
            wrong("another website's user's phone", .unknown, good, by: fixture.carl, isKnown: false),
            wrong("a challenge that is none", .unknown, good, by: first, about: nobody, isKnown: false),
        ]
    }

    // MARK: Signed by the right phone, about something else

    private func claims(_ fixture: TwoWebsitesFixture, _ asked: OpenedChallenge, _ superseded: OpenedChallenge)
        async throws -> [Wrong]
    {
        let (rig, first) = (fixture.rig, fixture.first)
        let shown = try await rig.shown(asked.challenge, to: first.credential)
        let old = try await rig.shown(superseded.challenge, to: first.credential)
        let shownText = String(decoding: shown.context, as: UTF8.self)
        let changed = Array(shownText.replacing("12.50 EUR", with: "92.50 EUR").utf8)
        #expect(changed != shown.context)
        func digest(_ bytes: [UInt8]) -> JSONValue { .string(Base64URL.encode(SHA256.hash(bytes))) }
        func wrong(
            _ name: String, _ fault: DecisionFault, approves: Bool = true, _ word: String = "approve",
            number: String? = "47", uv: String = "none", _ change: (inout JSONObject) -> Void = { _ in },
            header: (inout JSONObject) -> Void = { _ in }
        ) throws -> Wrong {
            let signed = try first.phone.decision(
                word, about: shown, device: first.credential.id.text, origin: RelayRig.origin, number: number, uv: uv,
                at: rig.time.now(), change: change, header: header)
            return Wrong(
                name: name, fault: fault, sender: first, challenge: asked.challenge,
                answer: PhoneAnswer(approves: approves, signed: signed))
        }
        var wrongs = [
            try wrong("another website", .audience) { $0["aud"] = .string("\(RelayRig.origin)#bank") },
            try wrong("another relay", .audience) { $0["aud"] = "https://other.example.com:8080#shop" },
            try wrong("an aud that is a list", .audience) { $0["aud"] = [.string("\(RelayRig.origin)#shop")] },
            try wrong("another challenge", .challenge) { $0["challenge"] = .string(old.challenge) },
            try wrong("its id in capitals", .challenge) { $0["challenge"] = .string(shown.challenge.uppercased()) },
            try wrong("an old nonce", .nonce) { $0["nonce"] = .string(old.nonce) },
            try wrong("an empty nonce", .nonce) { $0["nonce"] = "" },
            try wrong("signed before this was asked: of the last one all but the id", .nonce) { claims in
                claims["nonce"] = .string(old.nonce)
                claims["context"] = digest(old.context)
                claims["request"] = nil
                claims["iat"] = .integer(rig.time.now().seconds - 60)
            },
            try wrong("another request", .request) { $0["request"] = "r-2" },
            try wrong("no request", .request) { $0["request"] = nil },
            try wrong("a changed context", .context) { $0["context"] = digest(changed) },
            try wrong("an old context", .context) { $0["context"] = digest(old.context) },
            try wrong("a context in hexadecimal", .context) {
                $0["context"] = .string(Hex.encode(SHA256.hash(shown.context)))
            },
            try wrong("no number", .number, number: nil),
            try wrong("a number that is one", .malformed) { $0["number"] = 47 },
            try wrong("approve at /failure", .decision, approves: false),
            try wrong("deny at /success", .decision, "deny"),
            try wrong("fraud at /success", .decision, "fraud"),
            try wrong("an unknown decision", .malformed, "maybe"),
            try wrong("an unknown uv", .malformed, uv: "dna"),
            try wrong("iat as text", .malformed) { $0["iat"] = "1800000000" },
            try wrong("iat with a fraction", .malformed) { $0["iat"] = .number(1_800_000_000.5) },
            try wrong("v 2", .malformed) { $0["v"] = 2 },
            try wrong("v as text", .malformed) { $0["v"] = "1" },
            try wrong("a further claim", .malformed) { $0["exp"] = 1_900_000_000 },
            try wrong("another kid", .key, header: { $0["kid"] = .string(fixture.second.credential.id.text) }),
            try wrong("no kid", .malformed, header: { $0["kid"] = nil }),
            try wrong("a further header", .malformed, header: { $0["jku"] = "https://example.com/keys" }),
            try wrong(
                "a key in the header", .malformed, header: { $0["jwk"] = .object(first.phone.key.publicKey.jwk) }),
            try wrong("crit", .malformed, header: { $0["crit"] = ["b64"] }),
        ]
        for name in ["v", "aud", "challenge", "decision", "context", "nonce", "uv", "iat"] {
            wrongs.append(try wrong("without \(name)", .malformed) { $0[name] = nil })
        }
        let types = ["twoefay-enrol+jwt", "twoefay-token+jwt", "JWT", "TWOEFAY-DECISION+JWT", ""]
        for type in types {
            wrongs.append(try wrong("typ \(type)", .type, header: { $0["typ"] = .string(type) }))
        }
        wrongs.append(try wrong("no typ", .type, header: { $0["typ"] = nil }))
        return wrongs
    }

    // MARK: Not a JWS of this kind at all

    private func forgeries(_ fixture: TwoWebsitesFixture, _ asked: OpenedChallenge) async throws -> [Wrong] {
        let (rig, first) = (fixture.rig, fixture.first)
        let key = first.phone.key
        let good = try await rig.signed(.approve, asked.challenge, number: "47", by: first)
        let (parts, payload) = (Forgery.parts(good), Forgery.payload(of: good))
        let header = Forgery.header(device: first.credential.id)
        func alg(_ name: String) -> String { Forgery.header(device: first.credential.id, alg: name) }
        let symmetric = JWS.sign(
            header: ["typ": "twoefay-decision+jwt", "kid": .string(first.credential.id.text)],
            payload: Array(payload.utf8), secret: Secret(key.publicKey.x963))
        let twice = payload.replacing(#""decision":"approve""#, with: #""decision":"deny","decision":"approve""#)
        #expect(twice != payload)
        let flipped = Forgery.encode(payload.replacing("47", with: "48"))
        func wrong(_ name: String, _ fault: DecisionFault, _ signed: String?, number: String? = nil) -> Wrong {
            Wrong(
                name: name, fault: fault, sender: first, challenge: asked.challenge,
                answer: PhoneAnswer(approves: true, signed: signed, number: number))
        }
        return [
            wrong("alg none", .algorithm, Forgery.encode(alg("none")) + ".\(parts[1])."),
            wrong("alg none, signed", .algorithm, try Forgery.signed(header: alg("none"), payload: payload, key: key)),
            wrong("RS256", .algorithm, try Forgery.signed(header: alg("RS256"), payload: payload, key: key)),
            wrong("ES384", .algorithm, try Forgery.signed(header: alg("ES384"), payload: payload, key: key)),
            wrong("es256", .algorithm, try Forgery.signed(header: alg("es256"), payload: payload, key: key)),
            wrong("HS256 under the public key", .algorithm, symmetric),
            wrong("DER", .signature, Forgery.inDER(good)),
            wrong("another number under the same signature", .signature, "\(parts[0]).\(flipped).\(parts[2])"),
            wrong(
                "the signature of nothing", .signature, "\(parts[0]).\(parts[1]).\(String(repeating: "A", count: 86))"),
            wrong("half a signature", .signature, String(good.dropLast(42))),
            wrong("no signature", .signature, "\(parts[0]).\(parts[1])."),
            wrong("no third part", .malformed, "\(parts[0]).\(parts[1])"),
            wrong("half of it", .malformed, String(good.prefix(good.count / 2))),
            wrong("one character less", .malformed, String(good.dropLast())),
            wrong("a fourth part", .malformed, good + ".AAAA"),
            wrong("padding", .malformed, good + "=="),
            wrong("a line feed behind it", .malformed, good + "\n"),
            wrong("a word", .malformed, "yes"),
            wrong("JSON", .malformed, #"{"payload":"\#(parts[1])","signature":"\#(parts[2])"}"#),
            wrong("a claim twice", .malformed, try Forgery.signed(header: header, payload: twice, key: key)),
            wrong("a list of claims", .malformed, try Forgery.signed(header: header, payload: "[1]", key: key)),
            wrong("no claims", .malformed, try Forgery.signed(header: header, payload: "", key: key)),
            wrong(
                "a header that is no object", .malformed, try Forgery.signed(header: "1", payload: payload, key: key)),
            wrong("a byte too many", .size, String(repeating: "A", count: SignedDecision.maxBytes + 1)),
            wrong("60 000 bytes", .size, String(repeating: good, count: 60_000 / good.utf8.count)),
            wrong("the plain form", .policy, nil, number: "47"),
            wrong("a number beside the answer", .policy, good, number: "47"),
        ]
    }

    // MARK: Two forms, and the wrong form

    /// Both forms of a signature (RFC 7518) are the same answer, because the signature does not identify it.
    @Test func bothSignatureFormsAreAccepted() async throws {
        let fixture = try await TwoWebsitesFixture(.memory)
        for turn in [true, false] {
            let asked = try await fixture.ask()
            var signed = try await fixture.rig.signed(.approve, asked.challenge, number: "47", by: fixture.first)
            if turn { signed = Forgery.withOtherS(signed) }
            let answer = PhoneAnswer(approves: true, signed: signed)
            #expect(try await fixture.rig.post(answer, asked.challenge, by: fixture.first) == .success)
            #expect(try await fixture.reported(asked).receipt == signed)
        }
    }

    /// An answer in the form that another policy requires.
    @Test(arguments: [Answers.certificate, .website]) func challengePolicyDecides(answers: Answers) async throws {
        let fixture = try await TwoWebsitesFixture(.memory, policies: ["answers": answers.rawValue])
        let asked = try await fixture.rig.on { relay in
            try await relay.login(
                LoginRequest(subject: .token(fixture.ada)), by: fixture.shop, as: relay.operations.new())
        }
        await fixture.rig.settled()
        let untouched = try await fixture.state(asked)
        let signed = try await fixture.rig.signed(.approve, asked.challenge, number: asked.number, by: fixture.first)
        let refused = Refusal.forbidden(
            LocalizedText(
                "This challenge's policy is answers: \(answers.rawValue)",
                de: "Die Richtlinie dieser Challenge ist answers: \(answers.rawValue)"))
        await #expect(throws: refused) {
            try await fixture.rig.post(PhoneAnswer(approves: true, signed: signed), asked.challenge, by: fixture.first)
        }
        if answers == .website {
            await #expect(throws: refused) {
                try await fixture.rig.post(PhoneAnswer(approves: false), asked.challenge, by: fixture.first)
            }
        }
        #expect(try fixture.refusals(.policy, by: fixture.first, about: asked.challenge) == 1)
        #expect(try await fixture.state(asked) == untouched)
    }
}
