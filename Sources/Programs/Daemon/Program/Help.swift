/// The help of a program and of each of its commands, printed from their declarations.
extension CommandLineReader {
    func help(for command: Command?, words: [String]) -> String {
        guard let command else { return overview(words) }
        var parts = [program] + command.words + command.operands.map(\.shape)
        if !command.options.isEmpty || !shared.isEmpty { parts.append("[OPTION]…") }
        var text = "Usage: \(parts.joined(separator: " "))\n\n\(command.about)\n"
        text += Self.table("Arguments", command.operands.map { ($0.shape, $0.about) })
        text += Self.table("Options", (command.options + shared + [Self.helpOption]).map { ($0.shape, $0.about) })
        if !command.notes.isEmpty { text += "\n\(command.notes)\n" }
        if !command.examples.isEmpty {
            text += "\nExample\(command.examples.count == 1 ? "" : "s"):\n"
            for example in command.examples { text += "  \(example)\n" }
        }
        return text
    }

    private func overview(_ words: [String]) -> String {
        let named = commands.filter { $0.words.starts(with: words) }
        let rows = named.map { command in
            (([command.name] + command.operands.map(\.shape)).joined(separator: " "), command.about)
        }
        let usage = ([program] + words + ["COMMAND", "[OPTION]…"]).joined(separator: " ")
        return "Usage: \(usage)\n\n\(about)\n" + Self.table("Commands", rows)
            + Self.table("Options of every command", (shared + [Self.helpOption]).map { ($0.shape, $0.about) })
            + "\nFor help on a command: \(program) COMMAND --help\n"
    }

    static let helpOption = Command.Option("help", .nothing, "Print this help.")

    private static func table(_ title: String, _ rows: [(String, String)]) -> String {
        guard !rows.isEmpty else { return "" }
        let width = rows.map(\.0.count).max() ?? 0
        let lines = rows.map { name, about in
            "  \(name)\(String(repeating: " ", count: width - name.count))  \(about)\n"
        }
        return "\n\(title):\n\(lines.joined())"
    }
}
