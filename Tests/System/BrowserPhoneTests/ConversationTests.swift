import TestSupport
import Testing

/// A person who uses the phone's web app in Chromium. `Script/conversation.py` plays the website and a
/// relay that verifies every proof without code of the product.
@Suite("The phone's web app in a browser", .timeLimit(.minutes(20)), .mayBlock) struct ConversationTests {
    private static let script =
        #filePath.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/Script/conversation.py"

    @Test(.enabled(if: ChromiumScript.canRun, "Chromium, its driver or selenium is not installed"))
    func everyStepWorks() async throws {
        let ended = try await ChromiumScript.run(Self.script, [])
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
        #expect(ended.output.contains("\n0 steps failed, 0 faults, "), "\(ended.output)")
    }
}
