import Daemon
import EventLoop
import JSON
import Phone
import World

/// Several phones of one person. Each phone polls its relay, and the person decides about one
/// challenge at a time. It is used only on its loop.
final class PhoneSession {
    struct Options: Sendable {
        let identity: Responder.Identity
        let uv: SignedStatement.UserVerification
        let uvAge: Int64
        let place: PhonePlace?
        let posture: PhonePosture?
        /// The PIN for every approval; nil if the person types it.
        var pin: String?
        /// The automatic decision; nil if a person decides.
        let auto: Auto?
        let number: String?
        let isOnce: Bool
    }

    /// A challenge, and the phone that can answer it.
    private struct Item {
        let phone: PolledPhone
        let question: ChallengePrompt
    }

    let options: Options
    let keyring: Keyring
    let loop: EventLoop
    let output: PhoneOutput
    private let keyboard: Keyboard
    private var phones: [PolledPhone] = []
    private var queue: [Item] = []
    private var current: Item?
    private var answered: Int64 = 0
    private var end: Result<Report, Failure>?
    private var waiting: CheckedContinuation<Result<Report, Failure>, Never>?

    init(_ options: Options, keyring: Keyring, loop: EventLoop, output: PhoneOutput) throws(Failure) {
        self.options = options
        self.keyring = keyring
        self.loop = loop
        self.output = output
        do throws(SystemFailure) {
            keyboard = try Keyboard(loop: loop)
        } catch {
            throw Failure(.failed, error.description, next: "The machine is out of threads.")
        }
    }

    func run(_ entries: [Keyring.Entry], until signals: Signals) async throws(Failure) -> Report {
        for entry in entries { phones.append(try PolledPhone(entry, of: self)) }
        let titles = entries.map(\.title).joined(separator: ", ")
        output(
            "Watching for challenges: \(titles). Ctrl-C ends it.", "watching",
            [
                "phones": .array(
                    phones.map {
                        ["device": .string($0.device), "website": .string($0.website), "relay": .string($0.relay)]
                    })
            ])
        let shared = LoopBound(self, on: loop)
        loop.spawn {
            _ = await signals.next()
            shared.value.finish()
        }
        for phone in phones { phone.start() }
        let result = await withCheckedContinuation { continuation in
            if let end { continuation.resume(returning: end) } else { waiting = continuation }
        }
        keyboard.giveUp()
        for phone in phones { phone.stop() }
        return try result.get()
    }

    // MARK: Events of phones

    /// Takes the open challenges of a phone. Challenges that are no longer open leave the queue.
    func offer(_ questions: [ChallengePrompt], to phone: PolledPhone) {
        let open = Set(questions.map(\.challenge))
        queue.removeAll { $0.phone === phone && !open.contains($0.question.challenge) }
        if let current, current.phone === phone, !open.contains(current.question.challenge) { keyboard.giveUp() }
        for question in questions where phone.isNew(question) { queue.append(Item(phone: phone, question: question)) }
        goOn()
    }

    /// Removes a phone that cannot continue. The others continue; without any, the session ends.
    func drop(_ phone: PolledPhone, _ failure: Failure) {
        phones.removeAll { $0 === phone }
        guard !phones.isEmpty else { return finish(.failure(failure)) }
        phone.emit(failure.text, "trouble", ["error": .string(failure.message)])
    }

    // MARK: One challenge at a time

    private func goOn() {
        guard end == nil, current == nil, !queue.isEmpty else { return }
        let item = queue.removeFirst()
        current = item
        let (shared, held) = (LoopBound(self, on: loop), LoopBound(item, on: loop))
        loop.spawn {
            await shared.value.handle(held.value)
            shared.value.current = nil
            shared.value.goOn()
        }
    }

    private func handle(_ item: Item) async {
        let (phone, question) = (item.phone, item.question)
        phone.emit(
            question.shown(reporting: options.posture), "request",
            question.json(device: phone.device, reporting: options.posture))
        let keyboard = keyboard
        let limit = loop.schedule(after: question.timeLeft) { keyboard.giveUp() }
        let choice = await choice(about: question)
        loop.cancel(limit)
        guard end == nil else { return }
        switch choice {
        case .ignore: break
        case .nothing: phone.emit("The challenge has ended.", "over", ["challenge": .string(question.challenge)])
        case .broken(let failure): finish(.failure(failure))
        case .decision(let decision): await send(decision, item)
        }
    }

    /// Sends a decision. While the challenge is open, the person may correct a wrong PIN.
    private func send(_ decision: SignedStatement.Decision, _ item: Item) async {
        let (phone, question) = (item.phone, item.question)
        var (options, asksPIN) = (options, false)
        if case .approve = decision, options.pin == nil, options.auto == nil {
            asksPIN = question.demands?.needsPIN == true
        }
        while end == nil {
            if asksPIN {
                guard let pin = await typedPIN(question) else {
                    _ = personIsGone()
                    phone.emit("No answer was sent.", "over", ["challenge": .string(question.challenge)])
                    return
                }
                options.pin = pin
            }
            do throws(CallFailure) {
                let login = try await phone.answer(decision, to: question, options)
                answered += 1
                phone.emit(
                    "\(decision.label): the relay says \(login).", "answered",
                    [
                        "challenge": .string(question.challenge), "decision": .string(decision.word),
                        "login": .string(login),
                    ])
                if options.isOnce { finish(.success(report(decision.isMeant(by: login) ? .ok : .failed))) }
                return
            } catch {
                phone.emit(
                    "The answer was not accepted: \(error.description)", "trouble",
                    ["challenge": .string(question.challenge), "error": .string(error.description)])
                if asksPIN, Failure.isWrongPIN(error) { continue }
                if options.isOnce { finish(.failure(Failure(error))) }
                return
            }
        }
    }

    /// Returns the PIN that the person types. What cannot be a PIN is not sent: each wrong one costs
    /// a try.
    private func typedPIN(_ question: ChallengePrompt) async -> String? {
        let (keyboard, output) = (keyboard, output)
        let limit = loop.schedule(after: question.timeLeft) { keyboard.giveUp() }
        defer { loop.cancel(limit) }
        while let line = await keyboard.line(isHidden: true, { output.prompt("Your PIN: ") }) {
            if Keyboard.isTerminal { output.prompt("\n") }
            if PINSecret.isPIN(line) { return line }
            output("\(PhoneOptions.pinDigits). No try was counted.", "trouble", ["error": "no_pin"])
        }
        return nil
    }

    private enum Choice {
        case decision(SignedStatement.Decision)
        case ignore
        /// The challenge has expired, or was answered elsewhere.
        case nothing
        case broken(Failure)
    }

    private func choice(about question: ChallengePrompt) async -> Choice {
        let needsNumber = question.context.numberDigits > 0
        switch options.auto {
        case .ignore: return .ignore
        case .deny: return .decision(.deny)
        case .fraud: return .decision(.fraud)
        case .approve:
            guard needsNumber else { return .decision(.approve(number: nil)) }
            if let number = options.number { return .decision(.approve(number: number)) }
            if let line = await keyboard.line() { return .decision(.approve(number: line)) }
            guard keyboard.isAtEnd else { return .nothing }
            return .broken(
                Failure(
                    .failed, "a number is required, and standard input has no more lines",
                    next: "Give it with --number, or write one line for each challenge."))
        case nil: return await personsChoice(about: question, needsNumber: needsNumber)
        }
    }

    private func personsChoice(about question: ChallengePrompt, needsNumber: Bool) async -> Choice {
        while true {
            guard let line = await typed("[a]pprove, [d]eny, [f]raud (this was not me), [i]gnore: ") else {
                return personIsGone()
            }
            switch line.lowercased() {
            case "a", "approve":
                guard needsNumber else { return .decision(.approve(number: nil)) }
                guard let number = await typed("The number that \(question.asker) shows: ") else {
                    return personIsGone()
                }
                guard let fault = question.fault(ofNumber: number) else {
                    return .decision(.approve(number: number))
                }
                output.prompt("No: \(fault).\n")
            case "d", "deny": return .decision(.deny)
            case "f", "fraud": return .decision(.fraud)
            case "i", "ignore": return .ignore
            default: continue
            }
        }
    }

    private func typed(_ prompt: String) async -> String? {
        let output = output
        return await keyboard.line { output.prompt(prompt) }
    }

    private func personIsGone() -> Choice {
        output.prompt("\n")
        if keyboard.isAtEnd { finish() }
        return .nothing
    }

    // MARK: End

    private func report(_ code: ExitCode) -> Report {
        Report("", json: .object(["event": "ended", "answered": .integer(answered)]), code: code)
    }

    private func finish() { finish(.success(report(.ok))) }

    private func finish(_ result: Result<Report, Failure>) {
        guard end == nil else { return }
        end = result
        waiting?.resume(returning: result)
    }
}

extension SignedStatement.Decision {
    var label: String {
        switch self {
        case .approve: "Approved"
        case .deny: "Denied"
        case .fraud: "Reported as fraud"
        }
    }

    /// Whether the result of the login corresponds to the decision.
    func isMeant(by login: String) -> Bool { login == (word == "approve" ? "success" : "failure") }
}
