import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let lockUser = Subcommand(
        command: Command(
            "user lock", "Locks a user until an operator unlocks it; open logins fail.",
            operands: [.init("USER", "The user name, as given to /register.")], options: [OperatorStore.usersWebsite])
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        guard try store.run({ Locks.lock(user.id, at: store.now, as: $0) }) else {
            let state = try store.user(invocation).state
            throw Failure(
                .conflict, "\(user.fullName) is \(state.rawValue) already, by an operator",
                next: "Nothing was changed. 'twoefay user unlock' lifts a lock and a freeze.")
        }
        let obstacle = try store.told(user).obstacle.map { "The user is not told of it: \($0.text)." }
        // A user who reported fraud stays frozen, and one who left the directory stays disabled.
        let state: UserState = [.frozen, .disabled].contains(user.state) ? user.state : .locked
        guard state != .disabled else {
            return Report(
                "\(user.fullName) is still disabled, and is locked by an operator on return.",
                json: user.changed(to: state))
        }
        return Report(
            """
            \(user.fullName) is \(state.rawValue). Every login fails with the reason \(state.rawValue), and no phone gets a challenge.
            Only an operator can lift this: twoefay user unlock \(user.username.asShellWord) --website \(user.website)
            """ + (obstacle.map { "\n\($0)" } ?? ""), json: user.changed(to: state))
    }

    static let unlockUser = Subcommand(
        command: Command(
            "user unlock", "Lifts a lock or freeze of a user, or a lock of the user's codes.",
            operands: [.init("USER", "The user name, as given to /register.")], options: [OperatorStore.usersWebsite],
            notes: """
                A user who reports a fraudulent login is frozen: somebody else knows the password. Let the user change it first,
                and check the phones with 'twoefay user show'.
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let user = try store.user(invocation)
        try user.requireEnabled()
        let isUnlocked = try store.run {
            Locks.unlock(
                user.id, from: [.locked, .frozen], lifting: user.lifted, by: .operator, at: store.now, as: $0)
        }
        guard isUnlocked else {
            throw Failure(
                .conflict, "\(user.fullName) is neither locked nor frozen, and has no wrong codes",
                next: "Nothing was changed. 'twoefay user show' shows how the newest login ended.")
        }
        return Report(
            "\(user.fullName) \(user.stateBefore), and can log in again. The failure counts are reset.",
            json: user.changed(to: .active))
    }
}

extension Accounts.User {
    /// Throws if the user has left the directory. Then the user gets no factor, and no unlock
    /// helps.
    func requireEnabled() throws(Failure) {
        guard state == .disabled else { return }
        throw Failure(
            .conflict, "\(fullName) is disabled: the user has left the directory \(directory ?? "")",
            next: "Nothing was changed. A sync enables the user on return; 'twoefay user enable' does it now.")
    }

    /// The state before unlocking, such as `was locked`.
    fileprivate var stateBefore: String {
        if state != .active { return "was \(state.rawValue)" }
        return codes.isLocked ? "had locked codes" : "had \(codes.failures) wrong codes"
    }

    /// The values before and after an unlock.
    fileprivate var lifted: ChangedValues {
        var values = ChangedValues(unlocking: state)
        values.note("codes", codes.isLocked ? "locked" : "open", "open")
        values.note("code_failures", .integer(Int64(codes.failures)), .integer(0))
        return values
    }

    fileprivate func changed(to state: UserState) -> JSONValue {
        .object([
            "user": .string(username), "website": .string(website), "before": .string(self.state.rawValue),
            "state": .string(state.rawValue), "codes_before": .string(codes.isLocked ? "locked" : "open"),
        ])
    }
}
