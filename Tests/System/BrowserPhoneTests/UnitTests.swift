import TestSupport
import Testing

/// The modules of the phone's web app that need no browser, by the test runner of Node. The tests are
/// in `Unit`.
@Suite("The modules of the phone's web app", .timeLimit(.minutes(5)), .mayBlock) struct UnitTests {
    private static let directory = #filePath.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/Unit"

    @Test func nodePassesThem() async throws {
        let ended = try await Child("node", ["--test", "--test-reporter=tap", Self.directory]).ended()
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
        // A run that finds no test passes, too.
        let passed = ended.output.split(separator: "\n").last { $0.hasPrefix("# pass ") }.flatMap {
            Int($0.dropFirst(7))
        }
        #expect((passed ?? 0) > 20, "\(ended.output)")
    }
}
