import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let removeFactor = Subcommand(
        command: Command(
            "user remove-factor", "Removes a code factor of a user.",
            operands: [
                .init("USER", "The user name, as given to /register."),
                .init(
                    "KIND", "One of totp, hotp, sms, mail and recovery, as in 'twoefay user show'.",
                    choices: ["totp", "hotp", "sms", "mail", "recovery"]),
            ],
            options: [
                OperatorStore.usersWebsite,
                .init("last", .nothing, "Remove it also if the user cannot log in without it."), Invocation.yes,
            ],
            notes: """
                For an app or token that is lost or stolen. This cannot be undone: the user adds a new factor through the website,
                and approves it there with another one. So the only factor with which the user can log in is removed with
                --last alone; the way back is then an activation, which you give after you have checked who the person is.
                Removing recovery removes all recovery codes. Approvals that were not used yet become invalid.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        let text = invocation.operand(1)
        guard let kind = Factor(rawValue: text), Factor.enrolled.contains(kind) else {
            let kinds = Factor.enrolled.map(\.rawValue).joined(separator: ", ")
            throw Failure(
                .usage, "KIND must be one of \(kinds)",
                next: text == Factor.operator.rawValue
                    ? "To revoke a temporary code: \(user.revokingTemporaryCode)"
                    : "To unbind a phone: twoefay device revoke DEVICE")
        }
        // A stolen factor can be removed with --last even if the policies cannot be read.
        let ways = invocation.has("last") ? try? store.waysIn(user) : try store.waysIn(user)
        guard ways?.isLast(kind) != true || invocation.has("last") else { throw store.isLast(kind, of: user) }
        if user.factors.contains(where: { $0.kind == kind }) {
            try invocation.confirm("\(kind.rawValue) of \(user.fullName) is removed for good.")
        }
        guard
            try store.run({ Factors.drop(kind, of: user.id, by: .operator, at: store.now, as: $0) })
        else {
            throw Failure(
                .conflict, "\(user.fullName) has no \(kind.rawValue)",
                next: "Nothing was changed. 'twoefay user show' lists the factors.")
        }
        let left = ways?.usable.filter { $0 != kind } ?? []
        let isLockedOut = left.isEmpty && ways?.isWebsiteAnswering != true
        return Report(
            "\(user.fullName) has no \(kind.rawValue) any more. "
                + (isLockedOut
                    ? "The user cannot log in now. After you have checked who the person is: \(user.wayBack)"
                    : "To add a new one, the user goes to the website."),
            json: .object([
                "user": .string(user.username), "website": .string(user.website), "kind": .string(kind.rawValue),
                "state": "dropped", "ways_in": .array(left.map { .string($0.rawValue) }),
            ]))
    }
}

extension OperatorStore {
    /// The refusal to remove the only factor of a user, with the ways to replace it.
    fileprivate func isLast(_ kind: Factor, of user: Accounts.User) -> Failure {
        let words = "\(user.username.asShellWord) --website \(user.website)"
        var ways = [user.wayBack]
        if Relay.recoverable.contains(kind), settings.mail.url != nil {
            ways.insert("twoefay user recover \(words) --factor \(kind.rawValue)", at: 0)
        }
        return Failure(
            .conflict, "\(user.fullName) cannot log in without \(kind.rawValue), and nobody could approve a new factor",
            next: "Nothing was changed. Replace it: \(ways.joined(separator: ", or: ")). "
                + "To remove it all the same: --last")
    }
}
