/// The man pages, made from the declarations of the commands and the settings.
///
/// Tested in `ManPageTests.swift` with mandoc and groff, if they are installed.
public enum ManPage: String, Sendable, CaseIterable {
    case twoefay
    case twoefayd
    case keys = "twoefay-keys"
    case settings = "twoefay.yaml"

    /// The section of the manual.
    public var section: Int {
        switch self {
        case .twoefay: 1
        case .twoefayd, .keys: 8
        case .settings: 5
        }
    }

    /// Returns the page in the language of `man`.
    ///
    /// - Parameters:
    ///   - tool: the commands of `twoefay`.
    ///   - date: a year, month and day.
    public func text(tool: CommandLineReader, date: String) -> String {
        var roff = Roff()
        let name = Roff.escaped(rawValue.uppercased())
        roff.line(".TH \(name) \(section) \(date) \"Twoefay \(Program.version)\" Twoefay")
        // No hyphens within words: names of options must stay whole.
        roff.line(".nh")
        switch self {
        case .twoefay: tool.write(to: &roff)
        case .twoefayd: DaemonProgram.reader.write(to: &roff)
        case .keys: KeysProgram.reader.write(to: &roff)
        case .settings: Self.writeSettings(to: &roff)
        }
        roff.section("FILES")
        roff.item(Settings.standardPath, "The settings of an installation by the Debian package.")
        if self != .settings {
            roff.section("ENVIRONMENT")
            roff.item(
                Settings.pathVariable,
                "The settings file, if --config is not given. Without both, it is \(Settings.standardPath).")
        }
        roff.section("SEE ALSO")
        let others = Self.allCases.filter { $0 != self }
        roff.line(
            others.enumerated().map { index, page in
                ".BR \(Roff.escaped(page.rawValue)) (\(page.section))\(index == others.count - 1 ? "" : " ,")"
            }.joined(separator: "\n"))
        return roff.text
    }

    private static func writeSettings(to roff: inout Roff) {
        roff.section("NAME")
        roff.paragraph("twoefay.yaml - the settings of Twoefay", opens: false)
        roff.section("DESCRIPTION")
        roff.paragraph(
            "The file is YAML. A dot in a name below stands for a level: mail.from is from under mail. Relative paths "
                + "start in the directory of the file. Instead of a path, credential:NAME names a file that systemd hands "
                + "over (LoadCredential=). twoefayd --check reports all faults of the file.", opens: false)
        roff.section("KEYS")
        for key in SettingsKeys.all {
            let value =
                key.required
                ? "Required; for example \(key.example)."
                : key.standardText.map { $0.isEmpty ? "" : "Default: \($0)." } ?? "For example: \(key.example)."
            let isLong = key.example.contains("\n")
            roff.item(key.name, key.about + (isLong || value.isEmpty ? "" : " \(value)"))
        }
    }
}

extension CommandLineReader {
    fileprivate func write(to roff: inout Roff) {
        roff.section("NAME")
        roff.paragraph("\(program) - \(Self.lowercasedFirst(about))", opens: false)
        roff.section("SYNOPSIS")
        let single = commands.first { $0.words.isEmpty }
        roff.line(
            ".B \(Roff.escaped(program))\n"
                + (single == nil ? ".I COMMAND\n" : "") + "[\\fIOPTION\\fR].\\|.\\|.")
        roff.section("DESCRIPTION")
        roff.paragraph(single?.about ?? about, opens: false)
        if let single { Self.write(notes: single.notes, to: &roff) }
        roff.section("OPTIONS")
        for option in (single?.options ?? []) + shared + [Self.helpOption] { roff.item(option.shape, option.about) }
        if single == nil {
            roff.section("COMMANDS")
            for command in commands { write(command, to: &roff) }
        }
        roff.section("EXIT STATUS")
        for code in ExitCode.allCases { roff.item("\(code.rawValue)", code.meaning) }
        if let single, !single.examples.isEmpty {
            roff.section("EXAMPLES")
            roff.verbatim(single.examples.map { "  \($0)" }, opens: false)
        }
    }

    private func write(_ command: Command, to roff: inout Roff) {
        roff.subsection(([program] + command.words + command.operands.map(\.shape)).joined(separator: " "))
        roff.paragraph(command.about, opens: false)
        for operand in command.operands { roff.item(operand.shape, operand.about) }
        for option in command.options { roff.item(option.shape, option.about) }
        Self.write(notes: command.notes, to: &roff)
        if !command.examples.isEmpty { roff.verbatim(command.examples.map { "  \($0)" }) }
    }

    /// Writes the notes of the help. Indented lines and tables stay as they are.
    private static func write(notes: String, to roff: inout Roff) {
        guard !notes.isEmpty else { return }
        let lines = notes.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        if lines.contains(where: { $0.contains("  ") }) {
            roff.verbatim(lines)
        } else {
            roff.paragraph(lines.joined(separator: " "), opens: true)
        }
    }

    private static func lowercasedFirst(_ text: String) -> String {
        text.prefix(1).lowercased() + text.dropFirst().prefix { $0 != "." }
    }
}

extension ExitCode {
    fileprivate var meaning: String {
        switch self {
        case .ok: "Done."
        case .failed: "It could not be done: a file, a setting or a permission is wrong."
        case .usage: "The command line was wrong; nothing was tried."
        case .notFound: "The named object was not found."
        case .conflict: "The object exists already, or another relay uses the store; nothing was changed."
        case .unavailable: "The store or the relay does not answer, or refuses this program; the message says which."
        }
    }
}

/// A text in the language of `man` pages (man(7)).
private struct Roff {
    private(set) var text = ""

    mutating func line(_ line: String) { text += line + "\n" }

    mutating func section(_ name: String) { line(".SH \(name)") }

    mutating func subsection(_ name: String) { line(".SS \(Self.escaped(name))") }

    /// - Parameter opens: whether the paragraph stands below another one.
    mutating func paragraph(_ text: String, opens: Bool) {
        if opens { line(".PP") }
        line(Self.escaped(text))
    }

    mutating func item(_ name: String, _ about: String) {
        line(".TP")
        line(".B \(Self.escaped(name))")
        line(Self.escaped(about))
    }

    /// Lets a word that may be longer than a line, such as a digest, break after each 30 characters.
    private static func breakable(_ word: Substring) -> String {
        guard word.count >= 50 else { return String(word) }
        return word.enumerated().map { index, character in
            index > 0 && index % 30 == 0 ? "\u{200b}\(character)" : String(character)
        }.joined()
    }

    /// Lines that stay as they are.
    mutating func verbatim(_ lines: [String], opens: Bool = true) {
        if opens { line(".PP") }
        line(".nf")
        for one in lines { line(one.isEmpty ? ".sp" : Self.escaped(one)) }
        line(".fi")
    }

    static func escaped(_ text: String) -> String {
        let text = text.split(separator: " ", omittingEmptySubsequences: false).map(breakable).joined(separator: " ")
        let escaped = text.replacing("\\", with: "\\e").replacing("-", with: "\\-")
            .replacing("~", with: "\\(ti").replacing("^", with: "\\(ha").replacing("`", with: "\\(ga")
            .replacing("\"", with: "\\(dq").replacing("'", with: "\\(aq").replacing("…", with: "\\&.\\|.\\|.")
            .replacing("\u{200b}", with: "\\:")
        // A dot at the beginning of a line would be a request.
        return escaped.hasPrefix(".") ? "\\&\(escaped)" : escaped
    }
}
