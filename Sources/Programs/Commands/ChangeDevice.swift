import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let suspendDevice = change(
        "suspend", to: .suspended, "Refuses a phone's answers until an operator resumes it, such as a mislaid one.")
    static let resumeDevice = change(
        "resume", to: .active, "Accepts the answers of a suspended phone again.",
        notes: """
            A revoked phone with a key cannot be resumed. A revoked phone without a key, which its website keeps, stays unbound,
            but its website may bind it again.

            """)
    static let revokeDevice = change(
        "revoke", to: .revoked, "Unbinds a phone for good, such as a lost or stolen one.",
        notes: """
            A phone without a key, which its website keeps, can be revoked even if its website has unbound it before. The
            website cannot bind it again until 'twoefay device resume'.

            """, options: [Invocation.yes])

    private static func change(
        _ verb: String, to state: DeviceState, _ about: String, notes: String = "", options: [Command.Option] = []
    ) -> Subcommand {
        Subcommand(
            command: Command(
                "device \(verb)", about,
                operands: [.init("DEVICE", "The phone's id of 32 digits, as in 'device list'.")], options: options,
                notes: notes + "Running relays apply the change at the phone's next request.")
        ) { invocation throws(Failure) in
            let store = try OperatorStore(invocation)
            defer { store.close() }
            let device = try store.device(invocation)
            guard
                let change = DeviceChange.byOperator(
                    state, device.view, of: device.user, stoppedBy: device.stoppedBy, at: store.now)
            else { throw device.refused(state) }
            // A phone without a key can be bound again.
            if change.state == .revoked, device.view.publicKey != nil {
                try invocation.confirm("The phone \(device.view.id.text) of \(device.owner) is unbound for good.")
            }
            guard try store.run({ Phones.change(change, as: $0) }) != nil else {
                throw try store.device(invocation).refused(state)
            }
            let (done, next) = device.messages(change)
            return Report(
                "The phone \(device.view.id.text) of \(device.owner) \(done).\n\(next) \(device.view.id.text)",
                json: .object([
                    "device": .string(device.view.id.text), "user": .string(device.username),
                    "website": .string(device.website), "before": .string(device.view.state.rawValue),
                    "state": .string((change.isOfUnbound ? .revoked : state).rawValue),
                ]))
        }
    }
}

extension Accounts.Device {
    /// Returns the change that was made in words, and the next command.
    fileprivate func messages(_ change: DeviceChange) -> (String, String) {
        let (undo, see) = ("To undo it: twoefay device resume", "To see it: twoefay device show")
        switch change.state {
        case .suspended:
            let key = view.publicKey == nil ? "" : "its key and certificate are refused, and "
            return ("is suspended: \(key)it gets no challenges", undo)
        case .revoked where view.publicKey == nil:
            return ("is unbound, and its website cannot bind it again", undo)
        case .revoked:
            return (
                "is unbound for good: its key and certificate are refused from now on",
                "No revocation list is needed for its certificate. \(see)"
            )
        case _ where change.isOfUnbound: return ("stays unbound, but its website may bind it again now", see)
        case .active, .waiting, nil: return ("is active again", see)
        }
    }

    /// The failure for a phone that cannot be brought into that state.
    fileprivate func refused(_ wanted: DeviceState) -> Failure {
        let next =
            switch view.state {
            // This case comes first, because the phone may have been unbound while this command
            // ran.
            case .revoked where view.publicKey == nil && stoppedBy != .operator:
                "Its website may bind it again. To prevent that: twoefay device revoke \(view.id.text)"
            case wanted: "Nothing is left to do. 'twoefay device show' shows who did it."
            case .revoked where view.publicKey == nil:
                "To let its website bind it again: twoefay device resume \(view.id.text)"
            case .revoked:
                "A revoked phone cannot be resumed. To bind it again: "
                    + "twoefay user activate \(username.asShellWord) --website \(website)"
            case .waiting:
                "It waits for its user's approval. To reject it: twoefay device revoke \(view.id.text)"
            case .active, .suspended: "Nothing was changed: another command changed it at the same time. Run it again."
            }
        let already = view.state == wanted ? " already" : ""
        return Failure(
            .conflict, "the phone \(view.id.text) of \(owner) is \(view.state.rawValue)\(already)", next: next)
    }
}
