import Daemon
import Glibc

extension Invocation {
    /// The option of the commands that destroy something.
    public static let yes = Command.Option("yes", .nothing, "Do not ask for confirmation, for scripts.")

    /// Whether the output is shown on a terminal.
    var isOnTerminal: Bool { host?.isColored ?? (isatty(STDOUT_FILENO) == 1) }

    /// Prints a part of the output at once.
    func say(_ text: String) { if let host { host.say(text) } else { Program.say(text) } }

    /// Asks the person at the terminal before something is destroyed. Without a terminal, `--yes` is
    /// required: a script whose input ends must not destroy anything.
    ///
    /// - Parameter consequence: what is destroyed, as a sentence.
    public func confirm(_ consequence: String) throws(Failure) {
        guard !has("yes") else { return }
        // The person is at the terminal of the caller.
        if let host { throw host.confirm(consequence) }
        guard isatty(STDIN_FILENO) == 1, !has("json") else {
            throw Failure(
                .usage, "\(command.name) needs a confirmation",
                next: "\(consequence) Nothing was changed. To do it without a question: --yes")
        }
        // The question goes to standard error, so that the output has nothing but the result.
        Program.printProgress("\(consequence)\nType yes to go on:")
        tcflush(STDIN_FILENO, TCIFLUSH)
        guard readLine()?.lowercased() == "yes" else {
            throw Failure(
                .conflict, "not confirmed", next: "Nothing was changed. To go on, type the word yes, or give --yes.")
        }
    }
}
