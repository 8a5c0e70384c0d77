import HTTP
import JSON
import Relay
import TestSupport
import Testing

/// Answers by the website for its users. The website can name the challenge, because anyone who logs in with the
/// user's name makes another challenge the newest.
struct OriginalFormTests {
    @Test(arguments: ["/success", "/failure"]) func namedChallengeIsAnswered(path: String) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "website"])
        let (token, _) = try await shop.enrol("bob")
        let (first, _) = try await shop.login("bob")
        let (second, _) = try await shop.login("bob")
        let late = await shop.send("POST", path, ["challenge": .string(first), "token": .string(token)])
        #expect(late.code == "already_decided")
        #expect(await shop.send("POST", "/auth", ["challenge": .string(second)])["login"] == "wait")
        let answered = await shop.send("POST", path, ["challenge": .string(second)])
        #expect(answered.status == 200 && answered["login"]?.string == String(path.dropFirst()))
    }

    @Test func foreignChallengeIsRefused() async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "website"])
        _ = try await shop.enrol("bob")
        let (eve, _) = try await shop.register("eve")
        let (challenge, _) = try await shop.login("bob")
        let unlike = await shop.send("POST", "/success", ["challenge": .string(challenge), "token": .string(eve)])
        #expect(unlike.status == 409 && unlike.faults == ["token mismatch"])
        let bank = try await rig.site("bank", ["answers": "website"])
        #expect(await bank.send("POST", "/success", ["challenge": .string(challenge)]).status == 404)
        let neither = await shop.send("POST", "/success")
        #expect(neither.status == 400)
        #expect(await shop.send("POST", "/auth", ["challenge": .string(challenge)])["login"] == "wait")
    }

    /// The first answer was lost on the way, and meanwhile another person has logged in.
    @Test(arguments: ["/success", "/failure"]) func repeatedAnswerReturnsTheSameResult(path: String) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "website"])
        let (token, _) = try await shop.enrol("bob")
        let (first, _) = try await shop.login("bob")
        let answer: JSONObject = ["token": .string(token)]
        let key = [("idempotency-key", "k")]
        #expect(await shop.send("POST", path, answer, fields: key).status == 200)
        try rig.relay.execute("UPDATE idempotency SET state = 'running', holder = NULL")
        rig.relay.time.advance(by: .seconds(1))
        let (second, _) = try await shop.login("bob")
        let again = await shop.send("POST", path, answer, fields: key)
        #expect(again.status == 200 && again["login"]?.string == String(path.dropFirst()))
        #expect(await shop.send("POST", "/auth", ["challenge": .string(second)])["login"] == "wait")
        #expect(
            await shop.send("POST", "/auth", ["challenge": .string(first)])["login"]?.string
                == String(path.dropFirst()))
    }

    /// The same, but the first attempt did not reach the store.
    @Test(arguments: ["/success", "/failure", "/backup"]) func repeatedRequestDoesNotAnswerALaterChallenge(path: String)
        async throws
    {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "website"])
        let (token, _) = try await shop.enrol("bob")
        _ = try await shop.login("bob")
        var answer: JSONObject = ["token": .string(token)]
        if path == "/backup" { answer.set("otp", "123456") }
        let key = [("idempotency-key", "k")]
        #expect(await shop.send("POST", path, answer, fields: key).status == 200)
        try rig.relay.execute("DELETE FROM audit WHERE operation = (SELECT operation FROM idempotency)")
        try rig.relay.execute(
            """
            UPDATE challenge SET state = 'asked', decision = NULL, reason = NULL, decided_at = NULL,
            operation = id
            """)
        try rig.relay.execute("UPDATE idempotency SET state = 'running', holder = NULL")
        rig.relay.time.advance(by: .seconds(1))
        let (second, _) = try await shop.login("bob")
        #expect(await shop.send("POST", path, answer, fields: key).code == "already_decided")
        #expect(await shop.send("POST", "/auth", ["challenge": .string(second)])["login"] == "wait")
    }
}
