import Daemon
import EventLoop
import JSON
import Phone

extension Tool {
    static let watchPhone = Subcommand(
        command: Command(
            "phone watch", "Shows what is asked, asks you, signs your answer and sends it.",
            options: [
                Keyring.option, Keyring.choice, PhoneOptions.dpop, PhoneOptions.uv,
                .init(
                    "auto", .one("WHAT"),
                    "approve, deny, fraud or ignore everything that is asked, without asking you; for tests."),
                .init(
                    "number", .one("DIGITS"),
                    "With --auto approve: the number that the website shows; else each is read from standard input."),
                .init("once", .nothing, "End after the first answer, with 1 where it did not count as it was meant."),
            ],
            notes: """
                It needs no push service: the relay holds its requests until something is asked. Ctrl-C ends it.
                With --json it prints a line for everything that happens: watching, request, answered, over, refused,
                renewed, trouble. A certificate that has fewer than 30 days left is renewed.
                """)
    ) { invocation throws(Failure) in
        let wish = try PhoneSession.Options(invocation)
        let keyring = try Keyring(invocation)
        let entries = try keyring.bound(invocation)
        let signals: Signals
        do throws(SystemFailure) {
            signals = try Signals()
        } catch {
            throw Failure(.failed, error.description, next: "The machine is out of threads.")
        }
        return try onLoop { loop throws(Failure) in
            let watching = try PhoneSession(wish, keyring: keyring, loop: loop, telling: PhoneOutput(invocation))
            return try await watching.run(entries, until: signals)
        }
    }
}

extension PhoneSession {
    /// The automatic decision about every challenge.
    enum Auto: String, CaseIterable {
        case approve, deny, fraud, ignore
    }
}

extension PhoneSession.Options {
    init(_ invocation: Invocation) throws(Failure) {
        identity = PhoneOptions.identity(invocation)
        uv = try PhoneOptions.presence(invocation)
        number = invocation.value("number")
        isOnce = invocation.has("once")
        let help = "Run 'twoefay phone watch --help' for what it takes."
        if let text = invocation.value("auto") {
            guard let word = PhoneSession.Auto(rawValue: text) else {
                throw Failure(.usage, "--auto \(text) is none of approve, deny, fraud, ignore", next: help)
            }
            auto = word
        } else {
            auto = nil
            guard Keyboard.isTerminal, !invocation.has("json") else {
                throw Failure(
                    .usage, "there is nobody to ask: standard input is no terminal, or --json is given",
                    next: "Say what to do with requests, as in --auto deny; --auto ignore only shows them.")
            }
        }
        guard number == nil || auto == .approve else {
            throw Failure(.usage, "--number is for --auto approve", next: help)
        }
    }
}
