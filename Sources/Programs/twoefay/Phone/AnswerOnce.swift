import Commands
import Daemon
import EventLoop
import JSON
import Phone

/// The commands that answer one challenge: they show it, sign the decision and send it.
extension Tool {
    static let approveOnce = Subcommand(
        command: Command(
            "phone approve", "Approves the pending challenge.",
            options: [
                Keyring.option, Keyring.choice, challenge, PhoneOptions.number, PhoneOptions.uv, PhoneOptions.uvAge,
                PhoneOptions.place,
                PhoneOptions.posture, PhoneOptions.pin, PhoneOptions.dpop,
            ],
            notes: """
                At a terminal, it shows the challenge and prompts before it signs. Without a terminal, and with --json,
                --challenge must name the challenge; 'phone watch --auto ignore' shows it.
                Exit status 0: approved. 1: the relay answered failure, for example after a wrong number, or you did not
                agree. 3: no challenge is pending. 4: it was decided before.
                """)
    ) { invocation throws(Failure) in
        let person = try ConsentPrompt(invocation)
        let number = invocation.value("number")
        guard person.isThere || invocation.value(challenge.name) != nil else {
            throw Failure(
                .usage, "--challenge is missing: without a terminal, or with --json, the challenge is not shown before",
                next: "Name the challenge that you have seen: --challenge ID. 'phone watch --auto ignore' shows it."
            )
        }
        return try answerOnce(invocation) { question throws(Failure) in
            let needsNumber = question.context.numberDigits > 0
            if needsNumber, let number { try check(number, question) }
            person.sees(question)
            guard needsNumber else {
                try person.agrees()
                return .approve(number: nil)
            }
            if let number {
                try person.agrees()
                return .approve(number: number)
            }
            // A person who types the number from the website agrees by that.
            let typed = try person.number(question)
            try check(typed, question)
            return .approve(number: typed)
        }
    }

    private static func check(_ number: String, _ question: ChallengePrompt) throws(Failure) {
        guard let fault = question.fault(ofNumber: number) else { return }
        throw Failure(
            .usage, "\"\(ScreenText.visible(number))\" is not valid: \(fault)",
            next: "Check the number on the website.")
    }

    static let denyOnce = Subcommand(
        command: Command("phone deny", "Denies the pending challenge.", options: refusing)
    ) { invocation throws(Failure) in try answerOnce(invocation, .deny) }

    static let reportFraud = Subcommand(
        command: Command(
            "phone fraud", "Denies the pending challenge, and reports it as fraud.", options: refusing,
            notes: "This freezes all factors of the user until an operator or a recovery code lifts the freeze.")
    ) { invocation throws(Failure) in try answerOnce(invocation, .fraud) }

    private static let challenge = Command.Option(
        "challenge", .one("ID"), "The id of the challenge; required if several are pending.")
    private static let refusing = [
        Keyring.option, Keyring.choice, challenge, PhoneOptions.uv, PhoneOptions.place, PhoneOptions.dpop,
    ]

    private static func answerOnce(
        _ invocation: Invocation, _ decision: SignedStatement.Decision
    ) throws(Failure) -> Report {
        let person = try ConsentPrompt(invocation)
        return try answerOnce(invocation) { question throws(Failure) in
            person.sees(question)
            return decision
        }
    }

    private static func answerOnce(
        _ invocation: Invocation,
        _ decide: @escaping @Sendable (ChallengePrompt) throws(Failure) -> SignedStatement.Decision
    ) throws(Failure) -> Report {
        let uv = try PhoneOptions.presence(invocation)
        let uvAge = try PhoneOptions.uvAge(invocation)
        let place = try PhoneOptions.place(invocation)
        let posture = try PhoneOptions.posture(invocation)
        let given = try PhoneOptions.pin(invocation)
        let person = try ConsentPrompt(invocation)
        let identity = PhoneOptions.identity(invocation)
        let wanted = invocation.value(challenge.name)
        let keyring = try Keyring(invocation)
        let entries = try keyring.bound(invocation)
        return try onLoop { loop throws(Failure) in
            var found: [(phone: Responder, question: ChallengePrompt)] = []
            var refused: [ChallengePrompt.Refused] = []
            for entry in entries {
                do throws(CallFailure) {
                    let phone = try await fresh(entry, identity, keyring, loop)
                    let pending = try await phone.pending()
                    if let repinned = pending.repinned { try store(repinned, entry, keyring) }
                    refused += pending.refused.filter { wanted == nil || $0.challenge == wanted }
                    for question in pending.questions where wanted == nil || question.challenge == wanted {
                        found.append((phone, question))
                    }
                } catch {
                    throw Failure(error)
                }
            }
            if let refused = refused.first, found.isEmpty {
                throw Failure(
                    .failed, "a pending challenge cannot be answered here: \(refused.reason)",
                    next: "Update 'twoefay' if it is older than the relay.")
            }
            let (phone, question) = try only(of: found, wanted: wanted)
            let decision = try decide(question)
            let isApproval = decision.word == SignedStatement.Decision.approve(number: nil).word
            let asksPIN = isApproval && given == nil && question.demands?.needsPIN == true
            while true {
                let pin = asksPIN ? try person.pin() : given
                do throws(CallFailure) {
                    let login = try await phone.answer(
                        decision, to: question, uv: uv, uvAge: uvAge, place: place, posture: posture, pin: pin)
                    phone.close()
                    return report(decision, login, phone.device, question)
                } catch {
                    guard asksPIN, Failure.isWrongPIN(error) else { throw Failure(error) }
                    Program.say("\(error.description)\n")
                }
            }
        }
    }

    /// Stores the enrolment with the pins that the relay's authority has stated.
    private static func store(_ enrolment: Enrolment, _ entry: Keyring.Entry, _ keyring: Keyring) throws(CallFailure) {
        do throws(Failure) {
            try keyring.update(entry, enrolment)
        } catch {
            throw .unable(error.text)
        }
    }

    private static func only(
        of found: [(phone: Responder, question: ChallengePrompt)], wanted: String?
    ) throws(Failure) -> (phone: Responder, question: ChallengePrompt) {
        guard let first = found.first else {
            throw Failure(
                .notFound, wanted.map { "the challenge \($0) is not pending" } ?? "no challenge is pending",
                next: "'twoefay phone watch' waits for one.")
        }
        // Two phones of one user get the same challenge, and either may answer.
        guard found.allSatisfy({ $0.question.challenge == first.question.challenge }) else {
            let challenges = found.map { "\($0.question.challenge) (\($0.question.asker))" }
            throw Failure(
                .usage, "several challenges are pending: \(challenges.joined(separator: ", "))",
                next: "Choose one: --challenge ID")
        }
        return first
    }

    private static func report(
        _ decision: SignedStatement.Decision, _ login: String, _ device: String, _ question: ChallengePrompt
    ) -> Report {
        Report(
            "\(decision.label): the relay says \(login).",
            json: .object([
                "device": .string(device), "challenge": .string(question.challenge),
                "decision": .string(decision.word), "login": .string(login),
            ]), code: decision.isMeant(by: login) ? .ok : .failed)
    }

    /// Returns a phone that can send requests. If its certificate ends soon, it is renewed first,
    /// unless the relay refuses that for now: the phone can still answer.
    static func fresh(
        _ entry: Keyring.Entry, _ identity: Responder.Identity, _ keyring: Keyring, _ loop: EventLoop
    ) async throws(CallFailure) -> Responder {
        let phone = try Responder(entry.enrolment, by: identity, language: PhoneOptions.language, loop: loop)
        guard phone.isToRenew else { return phone }
        let renewed: Enrolment
        do throws(CallFailure) {
            renewed = try await phone.change(renews: true, storing: keyring.storing(entry))
        } catch {
            guard error.postponement == nil else { return phone }
            throw error
        }
        phone.close()
        do throws(Failure) {
            try keyring.update(entry, renewed)
        } catch {
            throw .unable(error.text)
        }
        return try Responder(renewed, by: identity, language: PhoneOptions.language, loop: loop)
    }
}
