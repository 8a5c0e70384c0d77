import Crypto
import EventLoop
import HTTP
import JSON
import TestSupport
import Testing
import World

@testable import Phone

/// A relay that tries to control the person's terminal, or the shell into which the person copies a
/// command.
struct HostileRelayTests {
    private static let texts = [
        "\u{1b}[2J", "a\nb", "$(id)", "a;b", "\u{202e}x", "a\u{200b}", "é", " ", String(repeating: "a", count: 129),
    ]

    private func enrol(_ answer: JSONObject, revocationCode: JSONValue? = nil) async throws -> CallFailure? {
        let relay = try FakeRelay()
        return await #expect(throws: CallFailure.self) {
            try await relay.run { loop, address in
                let begun = try Enrolment(try relay.activation(address), at: loop.time.now())
                var answer = answer
                if let revocationCode {
                    answer.set("certificate", try relay.certificate("d1", begun.key.publicKey))
                    answer.set("revocation_code", revocationCode)
                }
                relay.answer(200, answer)
                let enroller = try Enroller(begun, loop: loop)
                defer { enroller.close() }
                _ = try await enroller.attempt()
            }
        }
    }

    @Test(arguments: texts) func unprintableNamesAreRefused(text: String) async throws {
        let text = JSONValue.string(text)
        let waiting = try await enrol(["login": "wait", "device": text])
        #expect(waiting?.description == "the relay answered 200, with an invalid device")
        let numbered = try await enrol(["login": "wait", "device": "d1", "number": text])
        #expect(numbered?.description == "the relay answered 200, with an invalid number")
        let bound = try await enrol(["login": "verified", "device": text], revocationCode: "r-c")
        #expect(bound?.description == "the relay answered 200, with an invalid device")
        let coded = try await enrol(["login": "verified", "device": "d1"], revocationCode: text)
        #expect(coded?.description == "the relay answered 200, with an invalid revocation_code")
    }

    @Test(arguments: texts) func challengeWithAnUnprintableNameIsRefused(text: String) async throws {
        var listed = Listed()
        listed.challenge = text
        let relay = try FakeRelay((200, Listed.answer([listed])))
        let pending = try await relay.run { loop, address in
            let phone = try Responder(try relay.bound(address), loop: loop)
            defer { phone.close() }
            return try await phone.pending()
        }
        #expect(pending.questions.isEmpty)
        #expect(pending.refused == [.init(challenge: nil, reason: "it has no challenge")])
    }

    @Test func hostileTextIsNotPrinted() async throws {
        let relay = try FakeRelay((200, ["login": "wait\u{1b}[2J"]), (200, ["login": "\u{1b}]0;hello\u{7}"]))
        let refused: [(Int, JSONObject)] = [
            (403, ["code": "forbidden\u{202e}", "detail": "a\u{200b}b\r\nc\u{2066}"]),
            // The phone sends its decision three times.
            (500, ["title": "\u{1b}c"]), (500, ["title": "\u{1b}c"]), (500, ["title": "\u{1b}c"]),
        ]
        for answer in refused { relay.answer(answer.0, answer.1) }
        let failures = try await relay.run { loop, address in
            let enroller = try Enroller(
                try Enrolment(try relay.activation(address), at: loop.time.now()), loop: loop)
            let phone = try Responder(try relay.bound(address), loop: loop)
            defer {
                enroller.close()
                phone.close()
            }
            let question = try Listed().question()
            var failures: [String] = []
            do { _ = try await enroller.attempt() } catch { failures.append("\(error)") }
            for _ in 0..<3 {
                do { _ = try await phone.answer(.deny, to: question) } catch { failures.append("\(error)") }
            }
            return failures
        }
        #expect(
            failures == [
                #"the relay answered 200, with login "wait\u{1b}[2J""#,
                #"the relay answered 200, with login "\u{1b}]0;hello\u{7}""#,
                #"the relay answered 403, forbidden\u{202e}: a\u{200b}b\u{d}\u{a}c\u{2066}"#,
                #"the relay answered 500, \u{1b}c"#,
            ])
    }

    @Test func activationCannotSendControlCodes() {
        for text in ["twoefay://enrol?a\u{1b}[2J", "twoefay://enrol?a\u{202e}=1&a\u{202e}=1"] {
            do throws(ActivationURI.Malformed) {
                _ = try ActivationURI(text)
                Issue.record("\(text)")
            } catch {
                let isVisible = !error.description.contains("\u{1b}") && !error.description.contains("\u{202e}")
                #expect(isVisible && error.description.contains("\\u{"))
            }
        }
    }
}
