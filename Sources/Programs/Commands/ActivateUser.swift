import Daemon
import Domain
import JSON
import QR
import Relay
import Storage
import World

extension Tool {
    static let activateUser = Subcommand(
        command: Command(
            "user activate", "Creates an activation code, with which a user binds one more phone.",
            operands: [.init("USER", "The user name, as given to /register.")], options: [OperatorStore.usersWebsite],
            notes: """
                For users who have no phone left with which they could approve a new one. Verify their identity first: whoever
                scans the code can answer for them. The code is shown only now, works once, and expires after ten minutes.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let pin = try settings.loadActivationPin(at: SystemTime().now())
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        try user.requireEnabled()
        let website = try store.website(named: user.website)
        let policy = try WebsitePolicy(website.traits, settings: settings).policy
        guard policy.enrolment != .confirmed || user.identity != nil else {
            throw Failure(
                .conflict, "the identity of \(user.fullName) is not confirmed, which the website's policy demands",
                next: "After you checked it: twoefay user confirm-identity \(user.username.asShellWord) "
                    + "--website \(user.website) --by NAME --document TEXT")
        }
        let made = try store.activate(user)
        let activation = Activation(
            made.code, token: made.token, website: user.website, origin: settings.origin.settingsText,
            browsers: settings.browsers, pin: pin, expiresAt: made.expiresAt)
        let code: QRCode
        do throws(QRCode.Failure) {
            code = try QRCode(activation.scanned)
        } catch {
            throw Failure(
                .failed, "the activation is too long for a QR code",
                next: "Set a shorter origin in the settings.")
        }
        return Report(
            """
            An activation code for one more phone of \(user.fullName), valid until \(activation.expiresAt.rfc3339):

            \(code.terminal(colored: invocation.isOnTerminal))
            \(activation.scanned)

            Show it only to \(user.username): whoever scans it can answer for this user. It works once.\(warning(user))
            """,
            json: .object([
                "user": .string(user.username), "website": .string(user.website), "code": .string(activation.code),
                "uri": .string(activation.uri), "link": activation.link.map { .string($0) } ?? .null,
                "qr": .string(code.svg()), "expires_at": .string(activation.expiresAt.rfc3339),
            ]))
    }

    private static func warning(_ user: Accounts.User) -> String {
        guard user.state != .active else { return "" }
        return "\n\(user.username) is \(user.state.rawValue), and can log in only after: "
            + "twoefay user unlock \(user.username.asShellWord) --website \(user.website)"
    }
}

extension OperatorStore {
    fileprivate func activate(
        _ user: Accounts.User
    ) throws(Failure) -> (code: ActivationCode, token: UserToken, expiresAt: Timestamp) {
        let deleted = Failure(
            .notFound, "\(user.fullName) was deleted or disabled in the meantime",
            next: "'twoefay user show' shows the user, unless the website has deleted the user.")
        guard let subject = try read(Activations.subject(user.username, of: user.website)) else { throw deleted }
        let operation = try newOperation()
        let code = ActivationCode(OperationSecret(drawnFrom: SystemRandomness()))
        let activation = NewActivation(code, for: subject.user, approval: .operator, at: now)
        guard let activated = try read(Activations.byOperator(activation, as: operation)) else { throw deleted }
        return (code, subject.token, activated.expiresAt)
    }
}
