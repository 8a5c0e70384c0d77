import HTTP
import JSON
import Relay
import TestSupport
import Testing

/// Whatever a phone sends as its answer comes as far as the verb that judges it, and so to the audit.
struct WrongAnswerTests {
    @Test(
        arguments: ["/success", "/failure"],
        [
            ("size", String(repeating: "A", count: 8_193)), ("size", String(repeating: "A", count: 60_000)),
            ("size", String(repeating: "ü", count: 20_000)), ("malformed", ""), ("malformed", "a b"),
            ("malformed", "a\nb"), ("malformed", "ü.ü.ü"), ("malformed", "\u{202e}"),
        ] as [(String, String)])
    func everyWrongAnswerIsSeen(path: String, wrong: (fault: String, answer: String)) async throws {
        let rig = try await APIRig()
        let shop = try await rig.site("shop", ["answers": "signed"])
        let (_, phone) = try await shop.enrol("bob")
        let (challenge, _) = try await shop.login("bob")
        let refused = await phone.send(
            "POST", path, ["challenge": .string(challenge), "answer": .string(wrong.answer)])
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
