import Daemon
import Domain
import Glibc
import JSON
import QR
import Relay
import Storage
import World

extension Tool {
    static let activateUser = Subcommand(
        command: Command(
            "user activate", "Makes a code with which a user binds one further phone, on your word.",
            operands: [.init("USER", "The name that the website gave.")], options: [OperatorStore.usersWebsite],
            notes: """
                For people who have no phone left to approve with. Make sure who they are: whoever scans the code can answer for
                them. It is shown this once, can be used once, and is void after ten minutes.
                """)
    ) { invocation throws(Failure) in
        let settings = try Settings.load(invocation)
        let pin = try settings.loadPin()
        let desk = try OperatorStore(settings)
        defer { desk.close() }
        let user = try desk.user(invocation)
        let made = try desk.activate(user)
        let activation = Activation(
            made.code, token: made.token, website: user.website, origin: settings.origin.settingsText, pin: pin,
            expiresAt: made.expiresAt)
        let code: QRCode
        do throws(QRCode.Failure) {
            code = try QRCode(activation.uri)
        } catch {
            throw Failure(
                .failed, "the activation does not fit into a QR code",
                next: "Is the origin in the settings longer than it has to be?")
        }
        return Report(
            """
            A code for one further phone of \(user.called), until \(activation.expiresAt.rfc3339):

            \(code.terminal(colored: isatty(STDOUT_FILENO) == 1))
            \(activation.uri)

            Show it to nobody else: whoever scans it can answer for \(user.username). It works once.\(warning(user))
            """,
            json: .object([
                "user": .string(user.username), "website": .string(user.website), "code": .string(activation.code),
                "uri": .string(activation.uri), "qr": .string(code.svg()),
                "expires_at": .string(activation.expiresAt.rfc3339),
            ]))
    }

    private static func warning(_ user: Accounts.User) -> String {
        guard user.state != .active else { return "" }
        return "\n\(user.username) is \(user.state.rawValue), and cannot log in before: "
            + "twoefay user unlock \(user.username.asShellWord) --website \(user.website)"
    }
}

extension OperatorStore {
    fileprivate func activate(
        _ user: Accounts.User
    ) throws(Failure) -> (code: ActivationCode, token: UserToken, expiresAt: Timestamp) {
        let gone = Failure(
            .notFound, "\(user.called) was forgotten at this moment", next: "The website has to register them again.")
        guard let subject = try read(Activations.subject(user.username, of: user.website)) else { throw gone }
        let operation = try newOperation()
        let code = ActivationCode(OperationSecret(drawnFrom: SystemRandomness()))
        let activation = NewActivation(code, for: subject.user, approval: .operator, at: now)
        guard let activated = try read(Activations.byOperator(activation, as: operation)) else { throw gone }
        return (code, subject.token, activated.expiresAt)
    }
}
