import HTTP
import JSON
import TwoefayClient

/// The second half of a login: the page that waits for the answer on the phone.
extension Shop {
    /// The time for which the relay holds a request of the page's script.
    private static let hold = Duration.seconds(5)

    func waitingPage(_ visit: PageRequest) async throws(CallFault) -> Response {
        guard let question = visit.session.question else { return goHome(visit) }
        // A relay that is down or restarts has lost nothing, so the page stays.
        let outcome = try await standing(of: question)
        switch outcome?.login {
        case .success: return saidYesPage(visit, question)
        case .failure, .nothing:
            // The page is shown after the background task has handled the end.
            _ = await question.end.value
            return endedPage(visit, question, outcome?.reason)
        case .wait, nil: break
        }
        if question.takesCodes, Self.wantsCode(outcome) { return go(visit, to: "/code") }
        let number = question.number.map { number -> HTML in
            """
            <p>\(visit(.typeNumber))</p>
            <p class="number" id="number">\(number)</p>
            """
        }
        let other: HTML =
            question.takesCodes ? #"<a class="button" href="/code">\#(visit(.useCode))</a>"# : ""
        return page(
            visit, .lookAtPhone,
            """
            <div class="card centred">
            \(number)
            <p id="state" role="status" aria-live="polite">\(visit(Self.progress(outcome)))</p>
            </div>
            <div class="row">
            \(other)
            \(form(visit, "/wait/cancel", "", Button(.cancel, style: "quiet"), style: "inline"))
            </div>
            """, awaits: "/wait/state?at=/wait", reloads: true)
    }

    /// Tells the page's script whether the challenge has ended, which page comes next, and which
    /// text to show now.
    func waitingState(_ visit: PageRequest) async -> Response {
        guard let question = visit.session.question else { return responder.json(["over": true, "go": "/wait"]) }
        do throws(CallFault) {
            let outcome = try await standing(of: question, within: Self.hold)
            let isOver = outcome.map { $0.login != .wait } ?? false
            let mustMove = question.takesCodes && visit.query["at"] == "/wait" && Self.wantsCode(outcome)
            return responder.json([
                "over": .bool(isOver || mustMove), "go": "/wait", "say": .string(visit(Self.progress(outcome))),
            ])
        } catch {
            return responder.json(["over": true, "go": "/wait"])
        }
    }

    /// Handles the POST that the script or the button sends after the approval. A GET never logs
    /// in.
    func goOn(_ visit: PageRequest) async throws(CallFault) -> Response {
        guard let question = visit.session.question else { return goHome(visit) }
        guard try await website.relay.result(of: question.challenge).isSuccess else { return go(visit, to: "/wait") }
        return try await goOn(visit, question)
    }

    /// Continues after the relay reported a success.
    func goOn(_ visit: PageRequest, _ question: PendingConfirmation) async throws(CallFault) -> Response {
        let verdict = await question.end.value
        // Only one of two simultaneous requests continues, and none if the session has ended.
        let isMine = sessions.change(visit.id) { session in
            guard session.question == question else { return false }
            session.question = nil
            return true
        }
        guard isMine == true else { return go(visit, to: "/") }
        switch question.purpose {
        case .addition(let addition):
            do throws(CallFault) {
                return try await add(visit, addition, question.account, approval: question.challenge)
            } catch {
                // The approval is valid for ten minutes, so the customer can try again.
                sessions.change(visit.id) { $0.question = $0.question ?? question }
                throw error
            }
        case .login:
            guard let verdict, verdict.isLetIn else { return problem(visit, 403, .notProved) }
            return letIn(visit, question, verdict)
        case .payment(let article):
            guard let verdict, verdict.isLetIn else { return problem(visit, 403, .notProved) }
            return paid(visit, article)
        }
    }

    func cancel(_ visit: PageRequest) async throws(CallFault) -> Response {
        if let question = visit.session.question {
            sessions.change(visit.id) { $0.question = nil }
            // If this fails, the challenge expires by itself.
            do throws(CallFault) { try await website.relay.cancel(question.challenge) } catch {}
        }
        return goHome(visit)
    }

    /// Repeats the addition with the customer's approval, which the relay required at the first
    /// attempt.
    private func add(
        _ visit: PageRequest, _ addition: PendingConfirmation.Addition, _ account: String, approval: String
    ) async throws(CallFault) -> Response {
        switch addition {
        case .phone: return try await addPhone(visit, account, approval: approval)
        case .authenticator: return try await addAuthenticator(visit, account, approval: approval)
        case .recoveryCodes: return try await makeRecoveryCodes(visit, account, approval: approval)
        }
    }

    /// Adds a factor. If the relay requires the customer's approval first, it continues on the
    /// waiting page.
    func asking(
        _ visit: PageRequest, _ account: String, for addition: PendingConfirmation.Addition,
        _ call: () async throws(CallFault) -> Response
    ) async throws(CallFault) -> Response {
        do throws(CallFault) {
            return try await call()
        } catch {
            guard let needed = error.problem?.approval else { throw error }
            let question = asked(needed, of: account, for: addition)
            sessions.change(visit.id) { $0.question = question }
            return go(visit, to: "/wait")
        }
    }

    // MARK: The state of the challenge

    /// Returns the state of the challenge; nil if the relay cannot be reached now.
    func standing(
        of question: PendingConfirmation, within hold: Duration = .zero
    ) async throws(CallFault) -> LoginOutcome? {
        do throws(CallFault) {
            return try await website.relay.result(of: question.challenge, within: hold)
        } catch {
            switch error {
            case .unreached, .unanswered: return nil
            case .refused(let problem) where [429, 502, 503, 504].contains(problem.status): return nil
            default: throw error
            }
        }
    }

    func goHome(_ visit: PageRequest) -> Response {
        go(visit, to: visit.session.account == nil ? "/login" : "/members")
    }

    private static func wantsCode(_ outcome: LoginOutcome?) -> Bool {
        outcome.map { $0.factor != .push && $0.factor != .pull } ?? false
    }

    static func progress(_ outcome: LoginOutcome?) -> ShopText {
        guard let outcome else { return .stillTrying }
        let step = outcome.steps.last { $0.factor == outcome.factor }
        switch (outcome.factor, step?.state) {
        case (.push, "seen"), (.pull, "seen"): return .phoneShows
        case (.push, "sent"): return .phoneRang
        case (.push, _): return .askingPhone
        case (.pull, _): return .openApp
        case (.sms, "sent"): return .textSent
        case (.sms, _): return .textOnItsWay
        case (.mail, "sent"): return .mailSent
        case (.mail, _): return .mailOnItsWay
        case (.totp, _): return .typeAppCode
        case (.hotp, _): return .typeTokenCode
        default: return .typeAnyCode
        }
    }

    // MARK: Pages at the end

    private func saidYesPage(_ visit: PageRequest, _ question: PendingConfirmation) -> Response {
        page(
            visit, .saidYes,
            """
            <div class="card">
            <p>\(visit(.saidYesThen))</p>
            \(form(visit, "/wait", "", Button(.goOn), style: "at-once"))
            </div>
            """)
    }

    private func endedPage(_ visit: PageRequest, _ question: PendingConfirmation, _ reason: Reason?) -> Response {
        let next: (path: String, text: ShopText) =
            switch (reason, question.purpose) {
            case (.fraud, .login), (.frozen, .login), (.locked, .login): ("/unlock", .unlock)
            case (.fraud, _), (_, .login): ("/login", .logInAgain)
            case (_, .payment): ("/members", .back)
            case (_, .addition(.phone)): ("/phones", .back)
            case (_, .addition(.authenticator)): ("/totp", .back)
            case (_, .addition(.recoveryCodes)): ("/recovery", .back)
            }
        let title: ShopText = question.purpose == .login ? .notLoggedIn : .notDone
        return page(
            visit, title,
            """
            <div class="card">
            <p class="notice bad" role="alert">\(visit(Self.explanation(reason)))</p>
            <p><a class="button primary" href="\(next.path)">\(visit(next.text))</a></p>
            </div>
            """)
    }

    static func explanation(_ reason: Reason?) -> ShopText {
        switch reason {
        case .denied: .denied
        case .fraud: .fraud
        case .wrongNumber: .wrongNumber
        case .wrongCode: .endedByWrongCode
        case .place: .farPhone
        case .expired: .expired
        case .superseded: .superseded
        case .undeliverable: .undeliverable
        case .locked: .locked
        case .frozen: .frozen
        case .disabled: .disabled
        case .userExpired: .userExpired
        default: .cancelled
        }
    }
}
