import Commands
import Daemon
import EventLoop
import JSON
import Phone

extension Tool {
    static let watchPhone = Subcommand(
        command: Command(
            "phone watch", "Shows each challenge, prompts you, signs your answer and sends it.",
            options: [
                Keyring.option, Keyring.choice, PhoneOptions.dpop, PhoneOptions.uv, PhoneOptions.uvAge,
                PhoneOptions.place,
                PhoneOptions.posture, PhoneOptions.pin,
                .init(
                    "auto", .one("WHAT"),
                    "Approve, deny, fraud or ignore every challenge without a prompt; for tests."),
                .init(
                    "number", .one("DIGITS"),
                    "With --auto approve: the number that the website shows (default: read from standard input)."),
                .init("once", .nothing, "End after the first answer, with status 1 if it did not count as meant."),
            ],
            notes: """
                It needs no push service: the relay holds the request until a challenge is pending. Ctrl-C ends it.
                With --json, it prints one line for each event: watching, request, answered, over, refused, renewed, notices,
                trouble, ended. It renews a certificate that has fewer than 30 days left.
                """)
    ) { invocation throws(Failure) in
        let options = try PhoneSession.Options(invocation)
        let keyring = try Keyring(invocation)
        let entries = try keyring.bound(invocation)
        let signals: Signals
        do throws(SystemFailure) {
            signals = try Signals()
        } catch {
            throw Failure(.failed, error.description, next: "The machine is out of threads.")
        }
        return try onLoop { loop throws(Failure) in
            let session = try PhoneSession(options, keyring: keyring, loop: loop, output: PhoneOutput(invocation))
            return try await session.run(entries, until: signals)
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
        uvAge = try PhoneOptions.uvAge(invocation)
        place = try PhoneOptions.place(invocation)
        posture = try PhoneOptions.posture(invocation)
        pin = try PhoneOptions.pin(invocation)
        number = invocation.value("number")
        isOnce = invocation.has("once")
        let help = "Run 'twoefay phone watch --help' for usage."
        if let text = invocation.value("auto") {
            guard let word = PhoneSession.Auto(rawValue: text) else {
                throw Failure(.usage, "--auto must be one of approve, deny, fraud, ignore, not \(text)", next: help)
            }
            auto = word
        } else {
            auto = nil
            guard Keyboard.isTerminal, !invocation.has("json") else {
                throw Failure(
                    .usage, "--auto is missing: without a terminal, or with --json, there is no prompt",
                    next: "Choose the answer, as in --auto deny; --auto ignore only shows the challenges.")
            }
        }
        guard number == nil || auto == .approve else {
            throw Failure(.usage, "--number needs --auto approve", next: help)
        }
    }
}
