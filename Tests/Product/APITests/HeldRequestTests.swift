import EventLoop
import HTTP
import JSON
import Relay
import TestSupport
import Testing
import World

/// Held requests (`Prefer: wait=N`), and concurrent answers.
struct HeldRequestTests {
    private let wait = [("prefer", "wait=30")]

    private func hold(_ rig: APIRig, _ request: Request) async throws -> Hold {
        guard case .held(let hold) = await rig.start(request) else { throw RigFailure("not held") }
        return hold
    }

    @Test(arguments: ["certificate", "website"]) func phoneAnswerEndsTheHeldRequest(answers: String) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": answers, "number": "0"])
        let (token, phone) = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let about: JSONObject =
            answers == "website" ? ["token": .string(token)] : ["challenge": .string(challenge)]
        let held = try await hold(rig, shop.request("POST", "/auth", about, fields: wait))
        #expect(held.duration == .seconds(30))
        #expect(rig.relay.relay.heldRequests.count == 1)
        async let result = rig.end(held)
        if answers == "website" {
            #expect(await shop.send("POST", "/success", about).status == 200)
        } else {
            #expect(await phone.send("POST", "/success", about).status == 200)
        }
        let response = await result
        #expect(response["login"] == "success")
        #expect(response.fields["preference-applied"] == "wait=30")
        #expect(rig.relay.relay.heldRequests.count == 0)
    }

    /// Header fields, body and caller are most of the memory of a request. Nobody reads them while
    /// it waits.
    @Test(arguments: ["website", "phone"]) func heldRequestKeepsNothingOfItsRequest(caller: String) async throws {
        final class Identification: CallerIdentification {
            func isPhone(_ key: [UInt8]) {}
        }
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["number": "0"])
        let (_, phone) = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        weak var kept: Identification?
        let held: Hold
        do {
            let identification = Identification()
            kept = identification
            var request =
                caller == "website"
                ? shop.request("POST", "/auth", ["challenge": .string(challenge)], fields: wait)
                : phone.request("POST", "/pending", ["known": .array([.string(challenge)])], fields: wait)
            request.identification = identification
            held = try await hold(rig, request)
        }
        // The work of the request has returned when the loop does other work.
        await rig.relay.loop.perform {}
        #expect(kept == nil)
        #expect(await phone.send("POST", "/success", ["challenge": .string(challenge)]).status == 200)
        #expect(await rig.end(held).status == 200)
    }

    @Test(arguments: [StoreKind.file, .mariadb], [true, false])
    func phoneAnswerAtAnotherRelayEndsTheHeldRequest(kind: StoreKind, goesAway: Bool) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let about: JSONObject = ["challenge": .string(challenge)]
        let elsewhere = try await APIRig(beside: rig)
        let held = try await hold(elsewhere, shop.request("POST", "/auth", about, fields: wait))
        if goesAway { held.wait.cancel() }
        try await elsewhere.relay.on { relay in await relay.watch() }
        #expect(await phone.send("POST", "/failure", about).status == 200)
        try await elsewhere.relay.on { relay in await relay.watch() }
        #expect(elsewhere.relay.relay.heldRequests.isEmpty)
        guard !goesAway else { return }
        let result = await elsewhere.end(held)
        #expect(result["login"] == "failure" && result["reason"] == "denied")
        #expect(result.fields["preference-applied"] == "wait=30")
    }

    @Test func answerBetweenReadAndHoldIsNotMissed() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        let (_, phone) = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let about: JSONObject = ["challenge": .string(challenge)]
        let held = try await hold(rig, shop.request("POST", "/auth", about, fields: wait))
        #expect(await phone.send("POST", "/failure", about).status == 200)
        let result = await rig.end(held)
        #expect(result["login"] == "failure")
        #expect(result["reason"] == "denied")
    }

    @Test func heldRequestEndsAtItsTimeout() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let about: JSONObject = ["challenge": .string(challenge)]
        let first = await rig.giveUp(try await hold(rig, shop.request("POST", "/auth", about, fields: wait)))
        #expect(first["login"] == "wait")
        #expect(first.fields["preference-applied"] == "wait=30")
        // Never longer than the challenge lives; then it has expired.
        rig.relay.time.advance(by: .seconds(290))
        let last = try await hold(rig, shop.request("POST", "/auth", about, fields: wait))
        #expect(last.duration == .seconds(10))
        rig.relay.time.advance(by: .seconds(10))
        let result = await rig.giveUp(last)
        #expect(result["login"] == "failure")
        #expect(result["reason"] == "expired")
        #expect(rig.relay.relay.heldRequests.count == 0)
        // An ended challenge is reported at once.
        #expect(await shop.send("POST", "/auth", about, fields: wait)["reason"] == "expired")
    }

    @Test func supersededAndDeletedChallengesEndTheHeldRequest() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        let (first, _) = try await shop.login("bob")
        let one = try await hold(rig, shop.request("POST", "/auth", ["challenge": .string(first)], fields: wait))
        let (second, _) = try await shop.login("bob")
        #expect(await rig.end(one)["reason"] == "superseded")
        let two = try await hold(rig, shop.request("POST", "/auth", ["challenge": .string(second)], fields: wait))
        #expect(await shop.send("DELETE", "/user/bob").status == 204)
        #expect(await rig.end(two).status == 404)
    }

    /// `/auth` changes nothing, so each request is answered by itself.
    @Test func keyOfAHeldRequestHasNoEffect() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["number": "0"])
        let (_, phone) = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let about: JSONObject = ["challenge": .string(challenge)]
        let fields = wait + [("idempotency-key", "k")]
        // The first client went away. The second request is held as well, and need not wait for the first.
        let gone = try await hold(rig, shop.request("POST", "/auth", about, fields: fields))
        gone.wait.cancel()
        let held = try await hold(rig, shop.request("POST", "/auth", about, fields: fields))
        #expect(await phone.send("POST", "/success", about).status == 200)
        let result = await rig.end(held)
        #expect(result["login"] == "success")
        let again = await shop.send("POST", "/auth", about, fields: fields)
        #expect(again.body == result.body)
        #expect(again.fields["idempotency-replayed"] == nil)
    }

    @Test(
        arguments: [
            ("wait=5", "5"), ("wait=600", "60"), ("respond-async, wait=\"7\"", "7"), ("WAIT = 8; x=y", "8"),
            ("wait=0", "0"),
        ] as [(String, String)])
    func validPreferWaitIsApplied(preference: String, seconds: String) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let outcome = await rig.start(
            shop.request("POST", "/auth", ["challenge": .string(challenge)], fields: [("prefer", preference)]))
        switch outcome {
        case .held(let hold):
            #expect(hold.duration == .seconds(Int(seconds) ?? -1))
            #expect(await rig.giveUp(hold).fields["preference-applied"] == "wait=\(seconds)")
        case .response(let response):
            #expect(seconds == "0")
            #expect(response.fields["preference-applied"] == "wait=0")
        }
        #expect(rig.relay.relay.heldRequests.count == 0)
    }

    @Test(arguments: ["wait", "wait=", "wait=x", "wait=-1", "wait=99999999999999999999", "waiting=5", ""])
    func invalidPreferIsIgnored(preference: String) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop")
        _ = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let response = await shop.send(
            "POST", "/auth", ["challenge": .string(challenge)], fields: [("prefer", preference)])
        #expect(response["login"] == "wait")
        #expect(response.fields["preference-applied"] == nil)
    }

    @Test func concurrentApproveAndDenyYieldOneResult() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["number": "0", "login-limit": "1000"])
        let (_, phone) = try await shop.enrol("bob")
        var approved = 0
        for round in 0..<1000 {
            let (challenge, _) = try await shop.login("bob")
            let about: JSONObject = ["challenge": .string(challenge)]
            let paths = round.isMultiple(of: 2) ? ["/success", "/failure"] : ["/failure", "/success"]
            async let first = phone.send("POST", paths[0], about)
            async let second = phone.send("POST", paths[1], about)
            let answers = await [first, second]
            let won = answers.filter { $0.status == 200 }
            let lost = answers.filter { $0.status == 409 }
            #expect(won.count == 1)
            #expect(lost.first?.code == "already_decided")
            #expect(won.first?["login"] == lost.first?["login"])
            let result = await shop.send("POST", "/auth", about)
            #expect(result["login"] == won.first?["login"])
            if result["login"] == "success" { approved += 1 }
        }
        // Both orders occurred, so the answers did race.
        #expect(approved > 0 && approved < 1000)
    }

    @Test(arguments: ["/success", "/failure"]) func secondAnswerIsRefusedAsAlreadyDecided(path: String) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["number": "0"])
        let (_, phone) = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let about: JSONObject = ["challenge": .string(challenge)]
        #expect(await phone.send("POST", path, about).status == 200)
        for again in ["/success", "/failure"] {
            let answer = await phone.send("POST", again, about)
            #expect(answer.status == 409)
            #expect(answer.code == "already_decided")
            #expect(answer["login"]?.string == String(path.dropFirst()))
        }
    }
}
