import HTTP
import JSON
import Relay
import TestSupport
import Testing

@testable import API

/// The answer to somebody who asks for a link tells nothing about the user.
@Suite(.timeLimit(.minutes(5))) struct RecoveryAnswerTests {
    @Test(arguments: [StoreKind.file, .mariadb]) func everyAnswerIsTheSameToTheByte(kind: StoreKind) async throws {
        let rig = try await APIRig(kind)
        let shop = try await rig.site(
            "shop", ["answers": "website", "recovery-url": "https://shop.example/recover"])
        let seed: JSONObject = ["secret": "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"]
        for about: JSONObject in [["username": "carol", "email": "carol@example.com"], ["username": "dave"]] {
            let name = try #require(about["username"]?.string)
            try #require(await shop.send("POST", "/register", about).status == 201)
            try #require(await shop.send("POST", "/user/\(name)/hotp", seed).status == 201)
        }
        await rig.relay.settled()
        let before = rig.relay.mails.sent.count
        var answers: [Response] = []
        // A known user, one who lacks the factor, one without an address, an unknown one; and the
        // known one beyond the limit.
        for (name, factor) in [("carol", "hotp"), ("carol", "totp"), ("dave", "hotp"), ("nobody", "hotp")]
            + Array(repeating: ("carol", "hotp"), count: NewRecovery.most)
        {
            answers.append(
                await shop.send("POST", "/user/\(name)/recovery", ["factor": .string(factor)]).withoutID)
            await rig.relay.settled()
        }
        #expect(rig.relay.mails.sent.count == before + NewRecovery.most)
        #expect(answers[0].status == 202)
        for answer in answers { #expect(answer == answers[0]) }
    }
}
