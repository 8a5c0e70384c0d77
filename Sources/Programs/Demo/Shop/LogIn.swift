import Bytes
import HTTP
import TwoefayClient
import World

/// The first half of a login: name and password. The second half is the phone's answer, on the
/// waiting page (`Waiting.swift`).
extension Shop {
    func logInPage(_ visit: PageRequest, status: Int = 200, _ fault: ShopText? = nil, fields: [Fields.Field] = [])
        -> Response
    {
        let focus: HTML = fault == nil ? "" : " autofocus"
        let inputs: [HTML] = [
            field(
                visit, "name", .userName, value: visit.field("name"),
                attributes: """
                    autocomplete="username" maxlength="\(Customers.longestName)" required autocapitalize="none" \
                    spellcheck="false"
                    """
            ),
            field(
                visit, "password", .password,
                attributes: #"type="password" autocomplete="current-password" maxlength="1000" required\#(focus)"#),
        ]
        let wrong = fault.map { words -> HTML in #"<p class="notice bad" role="alert">\#(visit(words))</p>"# }
        return page(
            visit, .logIn,
            """
            \(wrong)
            <div class="card">
            \(form(visit, "/login", "\(inputs)", Button(.logIn)))
            <p class="small muted">\(visit(.noAccount)) <a href="/signup">\(visit(.signUp))</a></p>
            </div>
            """, status: status, fields: fields)
    }

    func logIn(_ visit: PageRequest) async throws(CallFault) -> Response {
        let name = visit.field("name")
        // No customer has a name that long, and the throttle must not store it.
        guard name.unicodeScalars.count <= Customers.longestName else {
            return logInPage(visit, status: 422, .wrongPassword)
        }
        if let pause = throttle.attempt(name, at: time.instant()) {
            let seconds = max(1, pause.components.seconds)
            return logInPage(visit, status: 429, .tooManyGuesses, fields: [.init("retry-after", String(seconds))])
        }
        let password = Secret(utf8: visit.form["password"] ?? "")
        let known = customers.find(name)
        guard await passwords.matches(password, known?.password), let customer = known else {
            return logInPage(visit, status: 422, .wrongPassword)
        }
        throttle.succeeded(name)
        let question = try await ask(
            LoginRequest(
                username: customer.name, ip: visit.request.remote, userAgent: visit.browser,
                service: visit(.membersArea), languages: visit.language.rawValue,
                chosenLanguage: visit.session.language?.rawValue,
                isKnown: isKnown(visit, as: customer.name)), for: .login)
        // The session gets a new id before the challenge is stored in it. Otherwise an attacker who
        // knows the old id would share the challenge and its result.
        let renewed = sessions.renew(visit.id) { $0.question = question }
        return go(visit, to: "/wait", renewed: renewed)
    }

    func logOut(_ visit: PageRequest) -> Response {
        let renewed = sessions.renew(visit.id) { _ in }
        return go(visit, to: "/", .init(kind: .good, text: .loggedOut), renewed: renewed)
    }

    /// Logs the browser in after the customer approved or entered a correct code. The session gets
    /// a new id at this moment and not earlier.
    func letIn(_ visit: PageRequest, _ question: PendingConfirmation, _ verdict: Website.Verdict) -> Response {
        let renewed = sessions.renew(visit.id) { session in
            session.account = question.account
            session.entrance = verdict.hasCode ? .code(verdict.outcome.factor) : .phone
        }
        let value = browsers.value(for: question.account, at: time.now())
        return go(visit, to: "/members", renewed: renewed, fields: [.lasting(knownCookie, value, KnownBrowsers.life)])
    }

    /// Whether this customer has logged in before in this browser. Logins from other browsers then
    /// cannot end this customer's login.
    func isKnown(_ visit: PageRequest, as account: String) -> Bool {
        browsers.knows(visit.request.cookie(knownCookie), as: account, at: time.now())
    }
}
