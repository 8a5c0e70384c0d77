import Commands
import Daemon
import EventLoop
import JSON
import Phone

/// The commands for the PIN of a phone.
extension Tool {
    private static let newPIN = Command.Option(
        "new-pin", .one("PIN"), "The new PIN, 4 to 12 digits; - reads it from standard input.")
    private static let puk = Command.Option(
        "puk", .one("PUK"), "The PUK that was shown when the PIN was set; - reads it from standard input.")
    private static let common = [Keyring.option, Keyring.choice, PhoneOptions.dpop]
    private static let notes = """
        At a terminal, what is not given is prompted for; a new PIN twice. The phone stores no PIN, and only the relay
        notices a wrong one: three lock the PIN, five lock the PUK.
        """

    static let showPIN = Subcommand(
        command: Command(
            "phone pin show", "Shows whether the phone has a PIN, and how many tries are left.", options: common)
    ) { invocation throws(Failure) in
        let entry = try Keyring(invocation).chosen(invocation)
        return report(try withPhone(entry, invocation) { phone throws(CallFailure) in try await phone.pinStatus() })
    }

    static let setPIN = Subcommand(
        command: Command(
            "phone pin set", "Sets the first PIN of the phone, and shows its PUK once.", options: common + [newPIN],
            notes: notes)
    ) { invocation throws(Failure) in
        let pin = try chosenPIN(invocation)
        let puk = PINSecret.newPUK()
        return try change(NewPIN(pin, .set(puk: puk)), shows: puk, invocation)
    }

    static let changePIN = Subcommand(
        command: Command(
            "phone pin change", "Changes the PIN of the phone. The PUK stays the same.",
            options: common + [
                .init("pin", .one("PIN"), "The present PIN; - reads it from standard input."), newPIN,
            ], notes: notes)
    ) { invocation throws(Failure) in
        let old = try value("pin", "Your present PIN: ", invocation)
        return try change(
            NewPIN(try chosenPIN(invocation), .change(old: try PhoneOptions.checked(pin: old, invocation))), shows: nil,
            invocation)
    }

    static let resetPIN = Subcommand(
        command: Command(
            "phone pin reset", "Sets a new PIN with the PUK, and shows a new PUK once.",
            options: common + [puk, newPIN], notes: notes)
    ) { invocation throws(Failure) in
        let former = try value("puk", "Your PUK: ", invocation).filter { $0 != " " && $0 != "-" }
        guard PINSecret.isPUK(former) else {
            throw Failure(
                .usage, "a PUK has \(PINSecret.pukDigits) digits",
                next: "It was shown when the PIN was set. The relay has counted no try.")
        }
        let puk = PINSecret.newPUK()
        return try change(
            NewPIN(try chosenPIN(invocation), .reset(formerPUK: former, puk: puk)), shows: puk, invocation)
    }

    static let unlockPIN = Subcommand(
        command: Command(
            "phone pin unlock", "Sets a new PIN with a code of the help desk, and shows a new PUK once.",
            options: common + [
                .init("code", .one("CODE"), "The 8 digits that the help desk has read out; - reads them."), newPIN,
            ],
            notes: """
                For a forgotten or locked PIN without its PUK. The code is valid once, for ten minutes; five wrong ones make it
                void. \(notes)
                """)
    ) { invocation throws(Failure) in
        let code = try value("code", "The code of the help desk: ", invocation).filter { $0 != " " && $0 != "-" }
        guard PINSecret.isUnlockCode(code) else {
            throw Failure(
                .usage, "an unlock code has 8 digits", next: "The help desk reads it out. The relay has counted no try."
            )
        }
        let puk = PINSecret.newPUK()
        return try change(NewPIN(try chosenPIN(invocation), .unlock(code: code, puk: puk)), shows: puk, invocation)
    }

    /// Sends a change. The secret is stored before, because the answer may be lost.
    private static func change(
        _ new: NewPIN, shows puk: String?, _ invocation: Invocation
    ) throws(Failure) -> Report {
        let keyring = try Keyring(invocation)
        var entry = try keyring.chosen(invocation)
        if entry.enrolment.pinSecret == nil {
            var enrolment = entry.enrolment
            enrolment.pinSecret = PINSecret()
            entry = try keyring.update(entry, enrolment)
        }
        do throws(Failure) {
            let status = try withPhone(entry, invocation) { phone throws(CallFailure) in
                try await phone.change(new, from: try await phone.pinStatus())
            }
            return report(status, puk: puk)
        } catch {
            guard error.code == .unavailable, let puk else { throw error }
            throw Failure(
                error.code, error.message,
                next: "Run 'twoefay phone pin show'. If the PIN was set nevertheless, its PUK is \(spaced(puk)).")
        }
    }

    private static func withPhone<Value: Sendable>(
        _ entry: Keyring.Entry, _ invocation: Invocation,
        _ work: @escaping @Sendable (Responder) async throws(CallFailure) -> Value
    ) throws(Failure) -> Value {
        let identity = PhoneOptions.identity(invocation)
        return try onLoop { loop throws(Failure) in
            do throws(CallFailure) {
                let phone = try Responder(entry.enrolment, by: identity, language: PhoneOptions.language, loop: loop)
                defer { phone.close() }
                return try await work(phone)
            } catch {
                throw Failure(error)
            }
        }
    }

    /// Returns the value of an option, or what the person types.
    private static func value(
        _ name: String, _ question: String, _ invocation: Invocation
    ) throws(Failure) -> String {
        if let text = invocation.value(name) { return text == "-" ? readLine() ?? "" : text }
        guard Keyboard.isTerminal, !invocation.has("json"), let line = Keyboard.askHidden(question) else {
            throw Failure(
                .usage, "--\(name) is missing, and cannot be prompted for without a terminal",
                next: "Run 'twoefay \(invocation.command.name) --help' for usage.")
        }
        return line
    }

    /// Returns the new PIN. A typing error would lock the person out, so it is prompted for twice.
    private static func chosenPIN(_ invocation: Invocation) throws(Failure) -> String {
        let isPrompted = invocation.value(newPIN.name) == nil
        let pin = try PhoneOptions.checked(pin: try value(newPIN.name, "The new PIN: ", invocation), invocation)
        guard isPrompted else { return pin }
        guard try value(newPIN.name, "The new PIN again: ", invocation) == pin else {
            throw Failure(.failed, "the two PINs differ", next: "Nothing was changed. Try again.")
        }
        return pin
    }

    private static func report(_ status: PINStatus, puk: String? = nil) -> Report {
        var lines =
            switch status.state {
            case "none": ["The phone has no PIN."]
            case "set":
                ["The phone has a PIN. \(status.triesLeft) tries are left, and \(status.pukTriesLeft) of the PUK."]
            case "locked":
                ["The PIN is locked. \(status.pukTriesLeft) tries of the PUK are left: twoefay phone pin reset"]
            default: ["The PIN is \(status.state)."]
            }
        if let puk {
            lines.append("Its PUK is \(spaced(puk)). Write it down: it resets the PIN, and is not shown again.")
        }
        return Report(
            lines.joined(separator: "\n"),
            json: .object([
                "state": .string(status.state), "version": .integer(status.version),
                "tries_left": .integer(status.triesLeft), "puk_tries_left": .integer(status.pukTriesLeft),
                "puk": .text(puk),
            ]))
    }

    /// The PUK in groups of four digits.
    private static func spaced(_ puk: String) -> String {
        stride(from: 0, to: puk.count, by: 4).map { puk.dropFirst($0).prefix(4) }.joined(separator: " ")
    }
}
