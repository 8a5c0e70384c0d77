import Daemon
import Phone

/// Whoever runs a command that answers once: sees what is asked before anything is signed, and is asked where there is
/// somebody to ask.
struct ConsentPrompt: Sendable {
    /// With `--json`, a program reads what would be shown.
    private let isProgram: Bool
    let isThere: Bool

    init(_ invocation: Invocation) {
        isProgram = invocation.has("json")
        isThere = Keyboard.isTerminal && !isProgram
    }

    func sees(_ question: ChallengePrompt) {
        if !isProgram { Program.say(question.shown + "\n") }
    }

    /// Nobody is asked where nobody is: the request was named then.
    func agrees() throws(Failure) {
        guard isThere else { return }
        while true {
            guard let line = Keyboard.ask("Approve this? [y]es, [n]o: ") else { throw Self.no }
            switch line.lowercased() {
            case "y", "yes": return
            case "n", "no": throw Self.no
            default: continue
            }
        }
    }

    func number(_ question: ChallengePrompt) throws(Failure) -> String {
        guard isThere else {
            throw Failure(
                .usage, "a number is asked for, and there is nobody to ask: standard input is no terminal",
                next: "Say the number that the website shows: --number DIGITS")
        }
        guard let line = Keyboard.ask("The number that \(question.asker) shows: ") else { throw Self.no }
        return line
    }

    private static let no = Failure(
        .failed, "nothing was answered",
        next: "'twoefay phone deny' says no to the website, and 'twoefay phone fraud' that it was not you.")
}
