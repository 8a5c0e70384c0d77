import Daemon
import Phone

/// The dialog with the person who runs a command that answers one challenge. It shows the challenge
/// before anything is signed and, at a terminal, asks for consent.
struct ConsentPrompt: Sendable {
    /// Whether `--json` is given; then a program reads the output.
    private let isProgram: Bool
    let isThere: Bool
    /// The state of the phone that the answer will report.
    private let posture: PhonePosture?

    init(_ invocation: Invocation) throws(Failure) {
        isProgram = invocation.has("json")
        isThere = Keyboard.isTerminal && !isProgram
        posture = try PhoneOptions.posture(invocation)
    }

    func sees(_ question: ChallengePrompt) {
        if !isProgram { Program.say(question.shown(reporting: posture) + "\n") }
    }

    /// Asks for consent. It asks nothing without a terminal, because the command then names the
    /// challenge.
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
                .usage, "--number is missing, and cannot be prompted for without a terminal",
                next: "Give the number that the website shows: --number DIGITS")
        }
        guard let line = Keyboard.ask("The number that \(question.asker) shows: ") else { throw Self.no }
        return line
    }

    func pin() throws(Failure) -> String {
        guard isThere else {
            throw Failure(
                .usage, "--pin is missing, and cannot be prompted for without a terminal",
                next: "Give the phone's PIN: --pin -, and a line of standard input")
        }
        while true {
            guard let line = Keyboard.askHidden("Your PIN: ") else { throw Self.no }
            if PINSecret.isPIN(line) { return line }
            Program.say("\(PhoneOptions.pinDigits). No try was counted.\n")
        }
    }

    private static let no = Failure(
        .failed, "no answer was sent",
        next: "To deny the challenge: twoefay phone deny. If it was not you: twoefay phone fraud")
}
