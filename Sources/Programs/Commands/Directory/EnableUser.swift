import Daemon
import Domain
import JSON
import Storage

extension Tool {
    static let enableUser = Subcommand(
        command: Command(
            "user enable", "Enables a user who was disabled on leaving the directory.",
            operands: [.init("USER", "The user name, as given to /register.")], options: [OperatorStore.usersWebsite],
            notes: """
                The user then belongs to the website: later syncs neither change nor disable the user. A lock or freeze from
                before returns. A sync does the same by itself if the user is in the directory again, and keeps the user there.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        guard try store.run({ Locks.enable(user.id, at: store.now, as: $0) }) else {
            throw Failure(
                .conflict, "\(user.fullName) is not disabled, but \(user.state.rawValue)",
                next: "Nothing was changed. 'twoefay user unlock' lifts a lock or a freeze.")
        }
        let state = user.priorState ?? .locked
        return Report(
            "\(user.fullName) is \(state.rawValue), and belongs to the website from now on.",
            json: .object([
                "user": .string(user.username), "website": .string(user.website),
                "before": .string(user.state.rawValue), "state": .string(state.rawValue),
                "directory_before": .text(user.directory),
            ]))
    }
}
