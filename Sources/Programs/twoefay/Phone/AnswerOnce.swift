import Daemon
import EventLoop
import JSON
import Phone

/// The commands that answer one challenge: they show it, sign the decision and send it.
extension Tool {
    static let approveOnce = Subcommand(
        command: Command(
            "phone approve", "Says yes to what is asked now.",
            options: [
                Keyring.option, Keyring.choice, challenge, PhoneOptions.number, PhoneOptions.uv, PhoneOptions.dpop,
            ],
            notes: """
                At a terminal it shows the request, and asks before it signs. Elsewhere, and with --json, nobody would
                see it: there --challenge has to name it, as 'phone watch --auto ignore' shows it.
                Exit status 0: it counts. 1: the relay says failure, as for a wrong number, or you did not agree.
                3: nothing is asked. 4: decided already.
                """)
    ) { invocation throws(Failure) in
        let person = ConsentPrompt(invocation)
        let number = invocation.value("number")
        guard person.isThere || invocation.value(challenge.name) != nil else {
            throw Failure(
                .usage, "nobody would see what is approved: standard input is no terminal, or --json is given",
                next: "Say which request was looked at: --challenge ID. 'twoefay phone watch --auto ignore' shows them."
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
            .usage, "\"\(ScreenText.visible(number))\" is none: \(fault)", next: "Look at the website again.")
    }

    static let denyOnce = Subcommand(
        command: Command("phone deny", "Says no to what is asked now.", options: refusing)
    ) { invocation throws(Failure) in try answerOnce(invocation, .deny) }

    static let reportFraud = Subcommand(
        command: Command(
            "phone fraud", "Says no to what is asked now: somebody else is at it.", options: refusing,
            notes: "All factors of the user are frozen until an operator or a recovery code lifts that.")
    ) { invocation throws(Failure) in try answerOnce(invocation, .fraud) }

    private static let challenge = Command.Option(
        "challenge", .one("ID"), "The request; needed where there are several.")
    private static let refusing = [
        Keyring.option, Keyring.choice, challenge, PhoneOptions.uv, PhoneOptions.dpop,
    ]

    private static func answerOnce(
        _ invocation: Invocation, _ decision: SignedStatement.Decision
    ) throws(Failure) -> Report {
        let person = ConsentPrompt(invocation)
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
                    .failed, "a request is there that cannot be answered here: \(refused.reason)",
                    next: "Is this 'twoefay' older than the relay?")
            }
            let (phone, question) = try only(of: found, wanted: wanted)
            let decision = try decide(question)
            do throws(CallFailure) {
                let login = try await phone.answer(decision, to: question, uv: uv)
                phone.close()
                return report(decision, login, phone.device, question)
            } catch {
                throw Failure(error)
            }
        }
    }

    private static func only(
        of found: [(phone: Responder, question: ChallengePrompt)], wanted: String?
    ) throws(Failure) -> (phone: Responder, question: ChallengePrompt) {
        guard let first = found.first else {
            throw Failure(
                .notFound, wanted.map { "\($0) is not asked, or not any more" } ?? "nothing is asked now",
                next: "'twoefay phone watch' waits until something is.")
        }
        // Two phones of one user get the same challenge, and either may answer.
        guard found.allSatisfy({ $0.question.challenge == first.question.challenge }) else {
            let challenges = found.map { "\($0.question.challenge) (\($0.question.asker))" }
            throw Failure(
                .usage, "several things are asked: \(challenges.joined(separator: ", "))",
                next: "Say which one: --challenge ID")
        }
        return first
    }

    private static func report(
        _ decision: SignedStatement.Decision, _ login: String, _ device: String, _ question: ChallengePrompt
    ) -> Report {
        Report(
            "\(decision.told): the relay says \(login).",
            json: .object([
                "device": .string(device), "challenge": .string(question.challenge),
                "decision": .string(decision.word), "login": .string(login),
            ]), code: decision.isMeant(by: login) ? .ok : .failed)
    }

    /// Returns a phone that can send requests. If its certificate ends soon, it is renewed first.
    static func fresh(
        _ entry: Keyring.Entry, _ identity: Responder.Identity, _ keyring: Keyring, _ loop: EventLoop
    ) async throws(CallFailure) -> Responder {
        let phone = try Responder(entry.enrolment, by: identity, loop: loop)
        guard phone.isToRenew else { return phone }
        let renewed = try await phone.change(renews: true)
        phone.close()
        do throws(Failure) {
            try keyring.update(entry, renewed)
        } catch {
            throw .unable(error.text)
        }
        return try Responder(renewed, by: identity, loop: loop)
    }
}
