import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let removeFactor = Subcommand(
        command: Command(
            "user remove-factor", "Removes a code factor of a user.",
            operands: [
                .init("USER", "The user name, as given to /register."),
                .init("KIND", "One of totp, hotp, sms, mail and recovery, as in 'twoefay user show'."),
            ], options: [OperatorStore.usersWebsite],
            notes: """
                For an app or token that is lost or stolen. This cannot be undone: the user adds a new factor through the website.
                Removing recovery removes all recovery codes. Approvals that were not used yet become invalid.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(try Settings.load(invocation))
        defer { store.close() }
        let user = try store.user(invocation)
        let text = invocation.operand(1)
        guard let kind = Factor(rawValue: text), kind.isCode else {
            let kinds = Factor.codes.map(\.rawValue).joined(separator: ", ")
            throw Failure(
                .usage, "KIND must be one of \(kinds)", next: "To unbind a phone: twoefay device revoke DEVICE")
        }
        guard
            try store.run({ Factors.drop(kind, of: user.id, by: .operator, at: store.now, as: $0) })
        else {
            throw Failure(
                .conflict, "\(user.fullName) has no \(kind.rawValue)",
                next: "Nothing was changed. 'twoefay user show' lists the factors.")
        }
        return Report(
            """
            \(user.fullName) has no \(kind.rawValue) any more. To add a new one, the user goes to the website.
            """,
            json: .object([
                "user": .string(user.username), "website": .string(user.website), "kind": .string(kind.rawValue),
                "state": "dropped",
            ]))
    }
}
