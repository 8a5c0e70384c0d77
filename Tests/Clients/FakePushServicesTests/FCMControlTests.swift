import Testing

@testable import FakePushServices

/// Control files for FCM: its codes, its registration tokens, and the answers to requests for access tokens.
@Suite struct FCMControlTests {
    private func read(_ text: String) throws -> Control {
        try ControlReader.read(Array(text.utf8), file: "control", for: .fcm)
    }

    private func faults(_ text: String) -> [String] {
        do {
            _ = try read(text)
            return []
        } catch let problems as ControlReader.Problems {
            return problems.all
        } catch {
            return ["\(error)"]
        }
    }

    @Test func everyFCMReasonIsAccepted() throws {
        for reason in RefusalReason.fcm {
            let control = try read("tokens: {'c1:x_-': \(reason.rawValue)}")
            #expect(control.scripts.first?.prefix == "c1:x_-")
            guard case .refuse(reason, nil, nil) = control.scripts.first?.answers.first else {
                Issue.record("\(reason)")
                continue
            }
        }
    }

    @Test func exampleIsValid() throws {
        let control = try read(Control.fcmExample)
        #expect(control.scripts.count == 8)
        #expect(control.faults.streams?.steps.map(\.limit) == [100] && control.faults.streams?.unproved == nil)
    }

    @Test func accessTokensAreParsed() throws {
        let control = try read("access-tokens: [unavailable, {life: 90s}, refuse, issue]")
        #expect(
            control.tokenAnswers == [
                .unavailable, .issue(life: .seconds(90)), .refuse, .issue(life: .seconds(3600)),
            ])
        #expect(try read("access-tokens: refuse").tokenAnswers == [.refuse])
    }

    @Test(arguments: [
        ("tokens: {aa: Unregistered}", "control:1:14: Unregistered is unknown"),
        ("tokens: {aa: UNREGISTRED}", "control:1:14: UNREGISTRED is unknown; did you mean UNREGISTERED?"),
        ("access-tokens: [isue]", "control:1:17: isue is unknown; did you mean issue?"),
        ("access-tokens: [{life: 0s}]", "control:1:17: an access token must be a word, or have its life"),
        ("access-tokens: [{lief: 3s}]", "control:1:18: lief is not a key of an access token"),
    ]) func faultHasItsPosition(text: String, message: String) {
        #expect(faults(text).first?.hasPrefix(message) == true, "\(faults(text))")
    }

    /// Apple issues no access tokens, and has other reasons.
    @Test func wordsOfOneServiceAreUnknownToTheOther() {
        for text in ["access-tokens: issue", "tokens: {aa: UNREGISTERED}"] {
            #expect(throws: ControlReader.Problems.self) {
                try ControlReader.read(Array(text.utf8), file: "control", for: .apns)
            }
        }
    }
}
