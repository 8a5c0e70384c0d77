import Bytes
import HTTP
import TwoefayClient

/// Pages for sign-up: a name, a password, and the addresses for codes when no phone answers.
extension Shop {
    func welcome(_ visit: PageRequest) -> Response {
        let ways: HTML =
            visit.session.account == nil
            ? """
            <p class="row"><a class="button primary" href="/signup">\(visit(.signUp))</a>
            <a class="button" href="/login">\(visit(.logIn))</a></p>
            """
            : #"<p><a class="button primary" href="/members">\#(visit(.members))</a></p>"#
        return page(
            visit, .welcome,
            """
            <div class="card">
            <p>\(visit(.whatThisIs))</p>
            \(ways)
            </div>
            """)
    }

    func signUpPage(_ visit: PageRequest, status: Int = 200, _ faults: [String: ShopText] = [:]) -> Response {
        let fields: [HTML] = [
            field(
                visit, "name", .userName, value: visit.field("name"),
                attributes:
                    #"autocomplete="username" maxlength="\#(Customers.longestName)" required autocapitalize="none" spellcheck="false""#,
                fault: faults["name"]),
            field(
                visit, "password", .password,
                attributes: #"type="password" autocomplete="new-password" minlength="8" maxlength="1000" required"#,
                hint: .passwordRule, fault: faults["password"]),
            field(
                visit, "email", .email, value: visit.field("email"),
                attributes: #"type="email" autocomplete="email" maxlength="254" required"#, hint: .emailUse,
                fault: faults["email"]),
            field(
                visit, "phone", .mobileNumber, value: visit.field("phone"),
                attributes: #"type="tel" autocomplete="tel" maxlength="20" placeholder="+436601234567""#,
                hint: .numberUse, fault: faults["phone"]),
        ]
        let wrong: HTML = faults.isEmpty ? "" : #"<p class="notice bad" role="alert">\#(visit(.lookAgain))</p>"#
        return page(
            visit, .signUp,
            """
            \(wrong)
            <div class="card">
            \(form(visit, "/signup", "\(fields)", Button(.signUp)))
            </div>
            """, status: status)
    }

    func signUp(_ visit: PageRequest) async throws(CallFault) -> Response {
        let (name, password) = (visit.field("name"), visit.form["password"] ?? "")
        let (email, phone) = (visit.field("email"), visit.field("phone").filter { !" -/()".contains($0) })
        var faults: [String: ShopText] = [:]
        if name.isEmpty || name.unicodeScalars.count > Customers.longestName { faults["name"] = .nameRule }
        if password.unicodeScalars.count < 8 || password.utf8.count > 1000 { faults["password"] = .passwordRule }
        if email.isEmpty { faults["email"] = .emailRule }
        guard faults.isEmpty else { return signUpPage(visit, status: 422, faults) }
        guard customers.reserve(name) else { return signUpPage(visit, status: 422, ["name": .nameIsTaken]) }
        guard let hash = await passwords.hash(Secret(utf8: password)) else {
            customers.release(name)
            return problem(visit, 503, .relayIsAway)
        }
        do throws(CallFault) {
            let uri = try await website.register(
                name, email: email, phone: phone.isEmpty ? nil : phone, language: visit.language.rawValue)
            customers.open(name, hash)
            return enterNewcomer(visit, name, uri)
        } catch {
            customers.release(name)
            guard let faults = Self.faults(error) else { throw error }
            return signUpPage(visit, status: 422, faults)
        }
    }

    /// Logs a new customer in without a second factor, since there is nothing to protect yet. The
    /// first phone is bound at once.
    private func enterNewcomer(_ visit: PageRequest, _ name: String, _ uri: String) -> Response {
        let renewed = sessions.renew(visit.id) { session in
            session.account = name
            session.entrance = .signUp
            session.activation = activation(uri, name)
        }
        return go(visit, to: "/phones/add", .init(kind: .good, text: .signedUp(name)), renewed: renewed)
    }

    /// Returns the relay's objections to the entered values; nil if the fault has another reason.
    private static func faults(_ fault: CallFault) -> [String: ShopText]? {
        guard let problem = fault.problem else { return nil }
        if problem.code == .conflict { return ["name": .nameOrAddressIsTaken] }
        var faults: [String: ShopText] = [:]
        for fault in problem.faults {
            switch fault.parameter {
            case "username": faults["name"] = .nameRule
            case "email": faults["email"] = .emailRule
            case "phone": faults["phone"] = .numberRule
            default: break
            }
        }
        return faults.isEmpty ? nil : faults
    }
}
