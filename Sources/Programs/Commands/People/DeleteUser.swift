import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let deleteUser = Subcommand(
        command: Command(
            "user delete", "Deletes a user with all personal data.",
            operands: [.init("USER", "The user name, as given to /register.")],
            options: [OperatorStore.usersWebsite, Invocation.yes],
            notes: """
                This cannot be undone. Open logins end, and phones, factors, logins, notices and pending messages are deleted. The
                audit stays for retention.audit, with ids only, and so do the marks of used keys. The website is not told: it
                may register the name again, as another user. See docs/operators/people.md.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        let website = try store.website(named: user.website)
        let returns = user.directory.map {
            " The user is in the directory \($0): its next sync adds the user again, without phones, unless the entry is gone."
        }
        try invocation.confirm(
            "\(user.fullName) is deleted for good, with \(counted(user.devices.count, "phone")) and "
                + "\(counted(user.factors.count, "factor"))."
                + (returns ?? ""))
        let deleted = try store.run { operation in
            UserDeletion.delete(user.id, of: website.id, by: .operator, at: store.now, as: operation)
        }
        guard let ended = deleted else {
            throw Failure(
                .notFound, "\(user.fullName) was deleted in the meantime",
                next: "Nothing was changed. 'twoefay audit search --user \(user.id.text)' shows who deleted the user.")
        }
        return Report(
            "\(user.fullName) is deleted."
                + (ended.isEmpty ? "" : " Open logins that ended: \(ended.count).") + (returns ?? "")
                + "\nThe id in the audit is \(user.id.text). Tell the website, which still has its own data.",
            json: .object([
                "user": .string(user.username), "website": .string(user.website), "id": .string(user.id.text),
                "state": "deleted", "ended": .array(ended.map { .string($0.text) }),
                "directory": .text(user.directory),
            ]))
    }
}
