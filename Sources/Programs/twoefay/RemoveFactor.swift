import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let removeFactor = Subcommand(
        command: Command(
            "user remove-factor", "Drops a factor of a user that is answered by codes.",
            operands: [
                .init("USER", "The name that the website gave."),
                .init("KIND", "totp, hotp, sms, mail or recovery, as 'twoefay user show' lists them."),
            ], options: [OperatorStore.usersWebsite],
            notes: """
                For a lost app or token, and for one that somebody else has. It cannot be undone: the user gets a new one through
                their website. Recovery codes are all dropped at once. What was approved and not used yet is void.
                """)
    ) { invocation throws(Failure) in
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let user = try desk.user(invocation)
        let word = invocation.operand(1)
        guard let kind = Factor(rawValue: word), kind.isCode else {
            let kinds = Factor.codes.map(\.rawValue).joined(separator: ", ")
            throw Failure(
                .usage, "KIND must be one of \(kinds)", next: "Phones are unbound by 'twoefay device revoke'.")
        }
        guard
            try desk.run({ Factors.drop(kind, of: user.id, by: .operator, at: desk.now, as: $0) })
        else {
            throw Failure(
                .conflict, "\(user.called) has no \(kind.rawValue)",
                next: "Nothing was changed. 'twoefay user show' lists what there is.")
        }
        return Report(
            """
            \(user.called) has no \(kind.rawValue) any more. This cannot be undone: a new one comes through their website.
            """,
            json: .object([
                "user": .string(user.username), "website": .string(user.website), "kind": .string(kind.rawValue),
                "state": "dropped",
            ]))
    }
}
