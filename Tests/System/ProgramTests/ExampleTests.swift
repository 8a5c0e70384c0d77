import Commands
import Daemon
import TestSupport
import Testing

@testable import twoefay

/// The examples in the help of each command, read as the tool reads its arguments.
@Suite struct ExampleTests {
    @Test func eachCommandHasAnExample() {
        let commands = Tool.reader.commands
        #expect(commands.count > 60)
        for command in commands { #expect(!command.examples.isEmpty, "\(command.name)") }
    }

    @Test func examplesAreValid() throws {
        for command in Tool.reader.commands {
            for example in command.examples {
                let words = Self.words(example)
                try #require(words.first == "twoefay", "\(example)")
                guard case .run(let invocation) = try Tool.reader.read(Array(words.dropFirst())) else {
                    Issue.record("\(example) asks for help")
                    continue
                }
                #expect(invocation.command.name == command.name, "\(example)")
            }
        }
    }

    /// Splits a line as a shell does, with single quotes.
    private static func words(_ line: String) -> [String] {
        line.split(separator: "'", omittingEmptySubsequences: false).enumerated().flatMap { index, part in
            index % 2 == 1 ? [String(part)] : part.split(separator: " ").map(String.init)
        }
    }
}
