import Daemon
import Domain
import JSON
import Storage
import World

extension Tool {
    static let lockUser = Subcommand(
        command: Command(
            "user lock", "Lets nobody in as this user until an operator unlocks it; a login that waits fails.",
            operands: [.init("USER", "The name that the website gave.")], options: [OperatorStore.usersWebsite])
    ) { invocation throws(Failure) in
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let user = try desk.user(invocation)
        guard try desk.run({ Locks.lock(user.id, at: desk.now, as: $0) }) else {
            let state = try desk.user(invocation).state
            throw Failure(
                .conflict, "\(user.called) is \(state.rawValue) already, by an operator",
                next: "Nothing was changed. 'twoefay user unlock' lifts a lock as well as a freeze.")
        }
        // A user who reported fraud stays frozen.
        let state: UserState = user.state == .frozen ? .frozen : .locked
        return Report(
            """
            \(user.called) is \(state.rawValue). Every login of theirs fails with the reason \(state.rawValue), and no phone is asked.
            Only an operator lifts it: twoefay user unlock \(user.username.asShellWord) --website \(user.website)
            """, json: user.changed(to: state))
    }

    static let unlockUser = Subcommand(
        command: Command(
            "user unlock", "Lifts a lock of the user or of their codes, or the freeze of a user who reported a fraud.",
            operands: [.init("USER", "The name that the website gave.")], options: [OperatorStore.usersWebsite],
            notes: """
                A user is frozen who said that a login was not theirs: somebody else knows the password. Have it changed first,
                and look at the phones with 'twoefay user show'.
                """)
    ) { invocation throws(Failure) in
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let user = try desk.user(invocation)
        guard try desk.run({ Locks.unlock(user.id, from: [.locked, .frozen], by: .operator, at: desk.now, as: $0) })
        else {
            throw Failure(
                .conflict, "\(user.called) is neither locked nor frozen, and has no wrong codes",
                next: "Nothing was changed. 'twoefay user show' tells how their newest login ended.")
        }
        return Report(
            "\(user.called) \(user.trouble), and can log in again. Their wrong answers are forgotten.",
            json: user.changed(to: .active))
    }
}

extension Accounts.User {
    /// The state before unlocking, such as `was locked`.
    fileprivate var trouble: String {
        if state != .active { return "was \(state.rawValue)" }
        return codes.isLocked ? "had locked codes" : "had \(codes.failures) wrong codes"
    }

    fileprivate func changed(to state: UserState) -> JSONValue {
        .object([
            "user": .string(username), "website": .string(website), "before": .string(self.state.rawValue),
            "state": .string(state.rawValue), "codes_before": .string(codes.isLocked ? "locked" : "open"),
        ])
    }
}
