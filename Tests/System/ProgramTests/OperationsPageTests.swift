import Daemon
import TestSupport
import Testing

/// The page docs/operators/commands.md, compared with the help of the programs.
@Suite(.timeLimit(.minutes(15)), .mayBlock) struct OperationsPageTests {
    private let page: String

    init() throws {
        let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()
        page = try text("\(root)/docs/operators/commands.md")
    }

    @Test func operationsPageNamesEveryCommand() async throws {
        let help = try await BuiltProgram.twoefay("--help").output
        let commands = help.split(separator: "\n").drop { $0 != "Commands:" }.dropFirst()
            .prefix { $0.hasPrefix("  ") }.map { line in
                line.split(separator: " ").prefix { $0.first?.isUppercase != true || $0.allSatisfy(\.isUppercase) }
                    .joined(separator: " ")
            }
        #expect(commands.count >= 5)
        for command in commands { #expect(page.contains("\(command)`"), "\(command)") }
    }

    @Test func operationsPageNamesEveryExitStatus() {
        for code in ExitCode.allCases { #expect(page.contains("| \(code.rawValue) | \(code.word) |")) }
    }
}
