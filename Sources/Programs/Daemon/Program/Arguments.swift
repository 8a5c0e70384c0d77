import Bytes

/// Reads a program's command line. It is declared by the commands, and by the options that all of
/// them share.
///
/// Tested in `CommandLineReaderTests.swift`.
public struct CommandLineReader: Sendable {
    public enum Reading: Sendable {
        case run(Invocation)
        case help(String)
    }

    let program: String
    let about: String
    let shared: [Command.Option]
    public let commands: [Command]

    /// Declares a program. If it has one command without words, the program is that command, and
    /// their help is the same.
    public init(program: String, about: String, shared: [Command.Option], commands: [Command]) {
        self.program = program
        self.about = about
        self.shared = shared
        self.commands = commands
    }

    /// Reads the arguments after the program's name. `--help` anywhere prints help about the
    /// command that precedes it.
    public func read(_ arguments: [String]) throws(Failure) -> Reading {
        var rest = arguments[...]
        var words: [String] = []
        var given: [String: [String]] = [:]
        var helps = arguments.isEmpty && single == nil

        var command = single
        var operands: [String] = []
        while let argument = rest.popFirst() {
            if argument == "--help" || argument == "-h" {
                helps = true
            } else if argument == "--" {
                operands += rest
                rest = []
            } else if Self.isOption(argument) {
                try take(argument, from: &rest, for: command, into: &given)
            } else if command != nil {
                operands.append(argument)
            } else {
                words.append(argument)
                guard commands.contains(where: { $0.words.starts(with: words) }) else { throw unknown(words) }
                command = commands.first { $0.words == words }
            }
        }
        if helps { return .help(help(for: command, words: words)) }
        guard let command else {
            let group = words.joined(separator: " ")
            throw usage(words.isEmpty ? "no command was given" : "\(group) needs a subcommand", words)
        }
        let isOpen = command.operands.last?.isMany == true
        guard isOpen || operands.count <= command.operands.count else {
            throw usage("unexpected argument \(operands[command.operands.count])", command.words)
        }
        guard operands.count >= command.operands.count - (isOpen ? 1 : 0) else {
            throw usage("\(command.operands[operands.count].name) is missing", command.words)
        }
        return .run(Invocation(command: command, operands: operands, given: given))
    }

    private var single: Command? { commands.first { $0.words.isEmpty } }

    private func take(
        _ argument: String, from rest: inout ArraySlice<String>, for command: Command?,
        into given: inout [String: [String]]
    ) throws(Failure) {
        let words = command?.words ?? []
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let options = shared + (command?.options ?? [])
        guard argument.hasPrefix("--"), let option = options.first(where: { "--" + $0.name == parts[0] }) else {
            let near = Spelling.nearest(to: String(parts[0]), among: options.map { "--" + $0.name })
            throw usage("unknown option \(parts[0])" + (near.map { "; did you mean \($0)?" } ?? ""), words)
        }
        var values = parts.dropFirst().map(String.init)
        switch option.takes {
        case .nothing:
            guard values.isEmpty else { throw usage("--\(option.name) takes no value", words) }
        case .optional:
            if values.isEmpty { values += Self.isValue(rest.first) ? [rest.removeFirst()] : [] }
        case .one, .many:
            if values.isEmpty { values += Self.isValue(rest.first) ? [rest.removeFirst()] : [] }
            if case .many = option.takes, parts.count == 1 {
                while Self.isValue(rest.first) { values.append(rest.removeFirst()) }
            }
            guard let first = values.first, !first.isEmpty else {
                throw usage("--\(option.name) needs a value: \(option.shape)", words)
            }
        }
        if case .many = option.takes {
        } else if given[option.name] != nil {
            throw usage("--\(option.name) is given twice", words)
        }
        given[option.name, default: []] += values
    }

    private static func isValue(_ word: String?) -> Bool { word.map { $0 != "--" && !isOption($0) } ?? false }

    /// Whether a word is an option: lower-case letters and dashes. Other words that begin with a
    /// dash are operands, because one in 64 codes and pins in base64url begins with a dash.
    private static func isOption(_ word: String) -> Bool {
        guard word.hasPrefix("--") else { return word.hasPrefix("-") && word.utf8.count == 2 }
        let name = word.utf8.dropFirst(2).prefix { $0 != UInt8(ascii: "=") }
        return name.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || $0 == UInt8(ascii: "-") }
    }

    private func unknown(_ words: [String]) -> Failure {
        let names = commands.map(\.name)
        let near = Spelling.nearest(to: words.joined(separator: " "), among: names + commands.compactMap(\.words.first))
        let message = "unknown command \(words.joined(separator: " "))" + (near.map { "; did you mean \($0)?" } ?? "")
        return usage(message, Array(words.dropLast()))
    }

    private func usage(_ message: String, _ words: [String]) -> Failure {
        let about = ([program] + words).joined(separator: " ")
        return Failure(.usage, message, next: "Run '\(about) --help' for usage.")
    }
}
