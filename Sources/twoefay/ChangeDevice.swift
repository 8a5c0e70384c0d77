import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let suspendDevice = change(
        "suspend", to: .suspended, "Lets a phone answer no more until an operator resumes it, as one that is mislaid.",
        done: "is suspended: neither its key nor its certificate counts, and it is asked nothing",
        next: "To undo it: twoefay device resume")
    static let resumeDevice = change(
        "resume", to: .active, "Lets a suspended phone answer again.", done: "is active again",
        next: "To see it: twoefay device show")
    static let revokeDevice = change(
        "revoke", to: .revoked, "Unbinds a phone for good, as one that is lost or stolen.",
        done: "is unbound for good: neither its key nor its certificate counts any more",
        next: "Its certificate needs no revocation list. To see it: twoefay device show")

    private static func change(
        _ verb: String, to state: DeviceState, _ about: String, done: String, next: String
    ) -> Verb {
        Verb(
            command: Command(
                "device \(verb)", about,
                operands: [.init("DEVICE", "The 32 digits of its id, as in log, audit and 'device list'.")],
                notes: "A relay that runs sees the change at the phone's next request.")
        ) { invocation throws(Failure) in
            let desk = try OperatorsDesk(try Settings.load(invocation))
            defer { desk.close() }
            let device = try desk.device(invocation)
            // What its website has suspended becomes the operator's to resume.
            let isTaken = state == .suspended && device.stoppedBy != .operator
            guard device.view.state != state || isTaken else { throw device.refused(state) }
            var change = DeviceChange(device.view.id, of: device.user, by: .operator, at: desk.now)
            change.state = state
            if state == .revoked { change.pushToken = "" }
            let wanted = change
            guard try desk.run({ Phones.change(wanted, as: $0) }) != nil else {
                throw try desk.device(invocation).refused(state)
            }
            return Report(
                "The phone \(device.view.id.text) of \(device.owner) \(done).\n\(next) \(device.view.id.text)",
                json: .object([
                    "device": .string(device.view.id.text), "user": .string(device.username),
                    "website": .string(device.website), "before": .string(device.view.state.rawValue),
                    "state": .string(state.rawValue),
                ]))
        }
    }
}

extension Accounts.Device {
    /// Why it cannot be brought into that state.
    fileprivate func refused(_ wanted: DeviceState) -> Failure {
        let next =
            switch view.state {
            case wanted: "Nothing was changed."
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
