import Bytes
import Crypto
import Domain
import EventLoop
import HTTP
import JSON
import Log
import Relay
import TestSupport
import Testing
import World

@testable import API

/// Phones without a certificate, which send the `DPoP` field instead.
struct DPoPTests {
    @Test func dpopReplacesTheClientCertificate() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "certificate", "number": "0"])
        let website = try await rig.relay.website("bank", policies: ["answers": "certificate", "number": "0"])
        let phone = try await rig.relay.enrolled("bob", at: website).phone
        let bank = Site(rig: rig, certificate: .website("bank"))

        // A caller without a proof learns what a proof needs …
        let asked = await rig.stranger.send("POST", "/pending")
        #expect(asked.status == 401 && asked.asks == "use_dpop_nonce")
        let first = try #require(asked.fields["dpop-nonce"])
        let now = rig.relay.time.now()
        let (challenge, _) = try await bank.login("bob")
        let pending = await rig.present(
            try phone.possession("POST", RelayRig.origin + "/pending", nonce: first, at: now))
        #expect(pending.status == 200, "\(pending.text)")
        #expect(pending["pending"]?.array?.first?.object?["challenge"]?.string == challenge)
        // … and every answer brings the next nonce.
        let second = try #require(pending.fields["dpop-nonce"])
        let answer = await rig.present(
            try phone.possession("POST", RelayRig.origin + "/device", nonce: second, at: now), path: "/device",
            body: ["name": "Mine"])
        #expect(answer.status == 200, "\(answer.text)")

        // The proof authenticates a phone, and is not valid for routes of websites.
        let elsewhere = await rig.present(
            try phone.possession("POST", RelayRig.origin + "/login", nonce: second, at: now), path: "/login")
        #expect(elsewhere.status == 401 && elsewhere.fields["dpop-nonce"] == nil)
        // A client certificate has precedence over a proof.
        let both = await shop.send("POST", "/pending", fields: [("dpop", try rig.proof(phone))])
        #expect(both.status == 403 && both.fields["dpop-nonce"] == nil)
    }

    /// `proof: certificate` tells the website that a certificate was used. A DPoP proof covers only the head of the
    /// request.
    @Test(arguments: ["/success", "/failure"]) func plainAnswerNeedsTheCertificate(path: String) async throws {
        let rig = try await APIRig()
        let website = try await rig.relay.website("shop", policies: ["answers": "certificate", "number": "0"])
        let bound = try await rig.relay.enrolled("bob", at: website)
        let shop = Site(rig: rig, certificate: .website("shop"))
        let challenge = JSONValue.string(try await shop.login("bob").challenge)
        let refused = await rig.present(
            try rig.proof(bound.phone, path: path), path: path, body: ["challenge": challenge])
        #expect(refused.status == 403 && refused.code == "forbidden")
        #expect(refused["detail"]?.string?.contains("DPoP") == true, "\(refused.text)")
        #expect(await shop.send("POST", "/auth", ["challenge": challenge])["login"] == "wait")
        let phone = Site(rig: rig, certificate: bound.phone.certificate(device: bound.credential.id))
        #expect(await phone.send("POST", path, ["challenge": challenge]).status == 200)
        let result = await shop.send("POST", "/auth", ["challenge": challenge])
        #expect(result["proof"] == "certificate" && result["login"]?.string == String(path.dropFirst()))
    }

    /// A phone that never received the answer of `/verify` is refused there in the end, and has no certificate.
    @Test func phoneLearnsOfABindingWhoseAnswerWasLost() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (token, code) = try await shop.register("bob")
        let phone = try TestPhone(pushToken: "push")
        let lost = try await shop.verify(phone, token: token, code: code)
        #expect(lost.status == 200, "\(lost.text)")
        rig.relay.time.advance(by: .seconds(600))
        #expect(try await shop.verify(phone, token: token, code: code).status == 401)
        let found = await rig.present(
            try rig.proof(phone, path: "/device"), path: "/device", body: ["certificate": true])
        #expect(found.status == 200, "\(found.text)")
        #expect(found["device"] != nil && found["device"] == lost["device"])
        let certificate = try Certificate(pem: Array((found["certificate"]?.string ?? "").utf8))
        #expect(certificate.spkiThumbprint == phone.key.publicKey.spkiThumbprint)
        #expect(found["revocation_code"] == nil)
        // The answer to a key that was never bound reveals nothing new.
        let stranger = try TestPhone(pushToken: "push")
        let refused = await rig.present(
            try rig.proof(stranger, path: "/device"), path: "/device", body: ["certificate": true])
        #expect(refused.status == 401 && refused.asks == "invalid_dpop_proof")
    }

    @Test func equivalentSpellingsOfTheURIAreAccepted() async throws {
        let rig = try await APIRig()
        let phone = try await rig.bound("bob", at: "shop")
        let changes: [(inout JSONObject) -> Void] = [
            { $0["htu"] = "HTTPS://Login.Example.Com:8080/pending" },
            { $0["iat"] = .integer(1_800_000_000 - 86_400) }, { $0["iat"] = .integer(1_800_000_000 + 86_400) },
            { $0["ath"] = "of no meaning here" },
            { $0["jti"] = .string(String(repeating: "j", count: 128)) },
        ]
        for (number, change) in changes.enumerated() {
            #expect(await rig.present(try rig.proof(phone, change: change)).status == 200, "\(number)")
        }
    }

    @Test func proofIsSingleUseAndExpiresWithItsNonce() async throws {
        let rig = try await APIRig()
        let phone = try await rig.bound("bob", at: "shop")
        let other = try await rig.bound("ann", at: "bank")
        let used = try rig.proof(phone) { $0["jti"] = "once" }
        let nonce = rig.nonce
        let unused = try rig.proof(phone)
        #expect(await rig.present(used).status == 200)
        let again = await rig.present(used)
        #expect(again.status == 401 && again.asks == "invalid_dpop_proof")
        // The same `jti` under another nonce is refused, too. Another phone may use it.
        rig.relay.time.advance(by: .seconds(150))
        #expect(await rig.present(try rig.proof(phone) { $0["jti"] = "once" }).status == 401)
        #expect(await rig.present(try rig.proof(other) { $0["jti"] = "once" }).status == 200)
        // A nonce is valid for five minutes.
        rig.relay.time.advance(by: .seconds(149))
        let last = try rig.proof(phone) { $0["nonce"] = .string(nonce) }
        #expect(await rig.present(last).status == 200)
        rig.relay.time.advance(by: .seconds(1))
        let late = await rig.present(unused)
        #expect(late.status == 401 && late.asks == "use_dpop_nonce")
        #expect(await rig.present(used).status == 401)
    }

    /// The list of used proofs ends with the process. After a restart, proofs from before are refused.
    @Test func restartDoesNotAllowReplay() async throws {
        let rig = try await APIRig()
        let phone = try await rig.bound("bob", at: "shop")
        rig.relay.time.advance(by: .seconds(60))
        let used = try rig.proof(phone)
        #expect(await rig.present(used).status == 200)
        // At another relay whose clock is ahead by no more than allowed.
        let neighbours = (ahead: rig.neighbour(), behind: rig.neighbour())
        let ahead = neighbours.ahead.current(at: rig.relay.time.now() + .seconds(5))
        let usedAhead = try rig.proof(phone) { $0["nonce"] = .string(ahead) }
        #expect(await rig.present(usedAhead).status == 200)

        let restarted = API(
            settings: API.Settings(origin: RelayRig.origin), relay: try rig.relay.relay(over: rig.relay.store),
            dependencies: [], time: rig.relay.time, randomness: SystemRandomness(),
            log: Log(minimum: .info, time: rig.relay.time, sink: rig.relay.sink), atTurnEnd: { $0() })
        func present(_ proof: String) async throws -> Response {
            let request = rig.stranger.request("POST", "/pending", fields: [("dpop", proof)])
            let outcome = await rig.relay.loop.perform { () async -> Outcome in
                switch restarted.handle(request) {
                case .now(let response): .response(response)
                case .later(_, _, let work): await work()
                }
            }
            guard case .response(let response) = outcome else { throw RigFailure("held") }
            return response
        }
        for _ in 0..<2 {
            for proof in [used, usedAhead] {
                let refused = try await present(proof)
                #expect(refused.status == 401 && refused.asks == "use_dpop_nonce")
            }
            // The relay accepts its own new nonces at once. So do other relays, whose clocks may be behind.
            let fresh = try #require(try await present(used).fields["dpop-nonce"])
            let proof = try rig.proof(phone) { $0["nonce"] = .string(fresh) }
            #expect(try await present(proof).status == 200)
            #expect(try await present(proof).asks == "invalid_dpop_proof")
            #expect(await rig.present(try rig.proof(phone) { $0["nonce"] = .string(fresh) }).status == 200)
            let behind = rig.relay.time.now() - .seconds(5)
            #expect(neighbours.behind.step(of: fresh, at: behind) != nil)
            rig.relay.time.advance(by: .seconds(6))
        }
    }

    /// A clock that was wrong for a while does not allow a replay either.
    @Test func clockThatWasAheadDoesNotAllowReplay() async throws {
        let rig = try await APIRig()
        let phone = try await rig.bound("bob", at: "shop")
        var used: [String] = []
        for _ in 0..<30 {
            rig.relay.time.advance(by: .seconds(100))
            used.append(try rig.proof(phone))
            #expect(await rig.present(used[used.count - 1]).status == 200)
        }
        // Phones need not wait until the clock has caught up, and no proof is accepted a second time on the way.
        for back in [2700, 3, 6] {
            rig.relay.time.advance(by: .seconds(-back))
            for _ in 0..<3 {
                #expect(await rig.present(try rig.proof(phone)).status == 200)
                for proof in used { #expect(await rig.present(proof).status == 401) }
                rig.relay.time.advance(by: .seconds(100))
            }
        }
    }

    /// A phone cannot fill the relay's list of proofs, or use the share of another phone.
    @Test func proofsPerKeyAreLimited() async throws {
        let rig = try await APIRig()
        let phone = try await rig.bound("bob", at: "shop")
        let other = try await rig.bound("ann", at: "bank")
        let relay = rig.api.relay
        let now = rig.relay.time.now()
        let signed = try JWS.parse(try rig.proof(phone))
        let jwk = try #require(signed.header["jwk"])
        func possession(_ phone: TestPhone, _ id: Int) throws -> PresentedProof {
            PresentedProof(
                ProofOfPossession(
                    key: phone.key.publicKey.spkiThumbprint, id: "\(id)",
                    step: try #require(relay.nonces.step(of: relay.nonces.current(at: now), at: now))),
                signed: signed, by: jwk)
        }
        func use(_ proof: PresentedProof) async -> Refusal? {
            await rig.relay.loop.perform { () async -> Refusal? in
                do throws(Refusal) {
                    _ = try await relay.device(provedBy: proof, from: "")
                    return nil
                } catch {
                    return error
                }
            }
        }
        for id in 0..<4096 { #expect(await use(try possession(phone, id)) == nil) }
        let full = await rig.present(try rig.proof(phone))
        #expect(full.status == 429)
        #expect(full.fields["retry-after"] == "150")
        #expect(full.fields["dpop-nonce"] != nil)
        #expect(await rig.present(try rig.proof(other)).status == 200)
        rig.relay.time.advance(by: .seconds(300))
        #expect(await rig.present(try rig.proof(phone)).status == 200)
    }

    /// Unknown and revoked keys get the same answer, to the byte, with the same store statements.
    @Test func unknownKeyAndInactiveKeyGetTheSameAnswer() async throws {
        let statements = Statements()
        let rig = try await APIRig(noting: statements)
        let revoked = try await rig.bound("bob", at: "shop")
        let closed = try await rig.bound("ann", at: "bank")
        try rig.relay.execute(
            "UPDATE device SET state = 'revoked' WHERE user_id = (SELECT id FROM user WHERE username = 'bob')")
        try rig.relay.execute("UPDATE website SET state = 'disabled' WHERE name = 'bank'")
        var seen: [(response: Response, statements: [String])] = []
        for phone in [try TestPhone(pushToken: "unknown"), revoked, closed] {
            _ = statements.take()
            seen.append((await rig.present(try rig.proof(phone)).withoutID, statements.take()))
        }
        #expect(seen[0].response.status == 401 && seen[0].response.asks == "invalid_dpop_proof")
        #expect(seen[0].statements.count == 1)
        for other in seen { #expect(other == seen[0]) }
    }

    /// With a proof as with a certificate: challenges of another user, of another website and unknown ones read the
    /// same.
    @Test func foreignResourceReadsAsNotFoundUnderDPoP() async throws {
        let statements = Statements()
        let rig = try await APIRig(noting: statements)
        let shop = try await rig.site("shop", ["answers": "certificate"])
        let bank = try await rig.site("bank", ["answers": "certificate"])
        let (_, _) = try await bank.enrol("alice")
        let (_, _) = try await shop.enrol("ann")
        let website = try await rig.relay.on { relay in
            try await relay.website(named: "shop", key: SHA256.hash(Array("shop".utf8)))
        }
        let phone = try await rig.relay.enrolled("bob", at: website).phone
        let challenges = [
            try await bank.login("alice").challenge, try await shop.login("ann").challenge,
            String(repeating: "0", count: 32),
        ]
        for path in ["/success", "/failure"] {
            var seen: [(response: Response, statements: [String])] = []
            // The audit records only the first of each kind, whichever comes first.
            for challenge in [String(repeating: "f", count: 32)] + challenges {
                let proof = try rig.proof(phone, path: path)
                await rig.relay.settled()
                _ = statements.take()
                let response = await rig.present(proof, path: path, body: ["challenge": .string(challenge)])
                seen.append((response.withoutID, statements.take()))
            }
            #expect(seen[1].response.status == 404 && seen[1].statements.count >= 2)
            for other in seen.dropFirst() { #expect(other == seen[1], "\(path)") }
        }
    }

    /// A held request has proved itself once. Only the phone is looked up again.
    @Test func heldRequestNeedsNoSecondProof() async throws {
        let rig = try await APIRig()
        let phone = try await rig.bound("bob", at: "shop")
        let shop = Site(rig: rig, certificate: .website("shop"))
        func hold() async throws -> Hold {
            let outcome = await rig.start(
                rig.stranger.request(
                    "POST", "/pending", fields: [("dpop", try rig.proof(phone)), ("prefer", "wait=30")]))
            guard case .held(let hold) = outcome else { throw RigFailure("not held") }
            return hold
        }
        let first = try await hold()
        _ = try await shop.login("bob")
        let woken = await rig.end(first)
        #expect(woken.status == 200 && woken["pending"]?.array?.count == 1)
        #expect(woken.fields["dpop-nonce"] == rig.nonce)
        #expect(await shop.send("DELETE", "/user/bob").status == 204)
        #expect(await rig.present(try rig.proof(phone)).status == 401)
    }

    /// The second look-up does not turn a proof into a certificate.
    @Test func heldRequestKeepsItsProof() async throws {
        let rig = try await APIRig()
        let website = try await rig.relay.website("shop")
        let bound = try await rig.relay.enrolled("bob", at: website)
        let certified = Site(rig: rig, certificate: bound.phone.certificate(device: bound.credential.id))
        let route = try #require(API.table.routes.first { $0.path.text == "/pending" })
        for (request, isCertified) in [
            (certified.request("POST", "/pending"), true),
            (rig.stranger.request("POST", "/pending", fields: [("dpop", try rig.proof(bound.phone))]), false),
        ] {
            let claim = PresentedIdentity(request, for: route, in: rig.api)
            let callers = try await rig.relay.on { [api = rig.api] _ in
                let first = try await api.caller(claim, for: route.forms[0], from: "")
                return [
                    first, try await api.caller(first.claim(after: claim), for: route.forms[0], from: ""),
                ]
            }
            for caller in callers {
                guard case .phone(let phone) = caller else { throw RigFailure("no phone") }
                #expect(phone.id == bound.credential.id && phone.isCertified == isCertified)
            }
        }
    }
}
