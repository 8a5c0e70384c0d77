import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let suspendDevice = change(
        "suspend", to: .suspended, "Lets a phone answer no more until an operator resumes it, as one that is mislaid.")
    static let resumeDevice = change(
        "resume", to: .active, "Lets a suspended phone answer again.",
        notes: """
            A phone whose key is unbound never comes back. One without a key, which its website keeps, stays unbound too, but its
            website may bind it again.

            """)
    static let revokeDevice = change(
        "revoke", to: .revoked, "Unbinds a phone for good, as one that is lost or stolen.",
        notes: """
            A phone without a key, which its website keeps, may have been unbound by its website before: then too the website
            binds it no more, until 'twoefay device resume' lets it.

            """)

    private static func change(_ verb: String, to state: DeviceState, _ about: String, notes: String = "") -> Subcommand
    {
        Subcommand(
            command: Command(
                "device \(verb)", about,
                operands: [.init("DEVICE", "The 32 digits of its id, as in log, audit and 'device list'.")],
                notes: notes + "A relay that runs sees the change at the phone's next request.")
        ) { invocation throws(Failure) in
            let desk = try OperatorStore(try Settings.load(invocation))
            defer { desk.close() }
            let device = try desk.device(invocation)
            guard
                let change = DeviceChange.byOperator(
                    state, device.view, of: device.user, stoppedBy: device.stoppedBy, at: desk.now)
            else { throw device.refused(state) }
            guard try desk.run({ Phones.change(change, as: $0) }) != nil else {
                throw try desk.device(invocation).refused(state)
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
            let what = view.publicKey == nil ? "" : "neither its key nor its certificate counts, and "
            return ("is suspended: \(what)it is asked nothing", undo)
        case .revoked where view.publicKey == nil:
            return ("is unbound, and its website binds it no more", undo)
        case .revoked:
            return (
                "is unbound for good: neither its key nor its certificate counts any more",
                "Its certificate needs no revocation list. \(see)"
            )
        case _ where change.isOfUnbound: return ("stays unbound until its website binds it again, as it may now", see)
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
                "Its website may bind it again by itself. To prevent that: twoefay device revoke \(view.id.text)"
            case wanted: "Nothing was changed."
            case .revoked where view.publicKey == nil:
                "To let its website bind it again: twoefay device resume \(view.id.text)"
            case .revoked:
                "A phone that is unbound stays so; to bind it anew: "
                    + "twoefay user activate \(username.asShellWord) --website \(website)"
            case .waiting:
                "It waits for its user's approval. To send it away: twoefay device revoke \(view.id.text)"
            case .active, .suspended: "Nothing was changed; somebody else changed it at the same moment. Try again."
            }
        let already = view.state == wanted ? " already" : ""
        return Failure(
            .conflict, "the phone \(view.id.text) of \(owner) is \(view.state.rawValue)\(already)", next: next)
    }
}
