import HTTP
import JSON
import Relay
import TestSupport
import Testing

/// Malformed answers of a phone, which still reach the verb that judges them, and thus the audit.
struct WrongAnswerTests {
    @Test(
        arguments: ["/success", "/failure"],
        [
            ("size", "A", 8_193), ("size", "A", 60_000), ("size", "ü", 20_000), ("malformed", "", 1),
            ("malformed", "a b", 1), ("malformed", "a\nb", 1), ("malformed", "ü.ü.ü", 1), ("malformed", "\u{202e}", 1),
        ] as [(String, String, Int)])
    func everyInvalidSignedAnswerIsRefused(path: String, wrong: (fault: String, part: String, times: Int)) async throws
    {
        let answer = String(repeating: wrong.part, count: wrong.times)
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "signed"])
        let (_, phone) = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let refused = await phone.send(
            "POST", path, ["challenge": .string(challenge), "answer": .string(answer)])
        #expect(refused.status == 400 && refused.faults == ["answer mismatch"])
        let audited = try rig.relay.count(
            """
            SELECT count(*) FROM audit WHERE event = 'decision.refused' AND outcome = '\(wrong.fault)'
            AND challenge_id = x'\(challenge)'
            """)
        #expect(audited == 1)
        #expect(await shop.send("POST", "/auth", ["challenge": .string(challenge)])["login"] == "wait")
    }
}
