import Testing

@testable import Daemon

/// The examples in the help of the programs that run for long.
@Suite struct DaemonExampleTests {
    @Test(arguments: [DaemonProgram.reader, KeysProgram.reader])
    func helpHasExamplesThatAreValid(_ reader: CommandLineReader) throws {
        let examples = reader.commands.flatMap(\.examples)
        #expect(!examples.isEmpty)
        guard case .help(let help) = try reader.read(["--help"]) else {
            Issue.record("no help")
            return
        }
        for example in examples {
            let words = example.split(separator: " ").map(String.init)
            #expect(words.first == reader.program && help.contains("  \(example)\n"), "\(help)")
            guard case .run = try reader.read(Array(words.dropFirst())) else {
                Issue.record("\(example) asks for help")
                continue
            }
        }
    }
}
