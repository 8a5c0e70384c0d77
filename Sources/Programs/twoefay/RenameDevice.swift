import Daemon
import Domain
import JSON
import Relay
import Storage

extension Tool {
    static let renameDevice = Subcommand(
        command: Command(
            "device rename", "Gives a phone another name, as when its user tells two of them apart no more.",
            operands: [
                .init("DEVICE", "The 32 digits of its id, as in log, audit and 'device list'."),
                .init("NAME", "What it is called from now on: up to 64 characters."),
            ],
            notes: "Its user's website sees the name; the phone itself is not told.")
    ) { invocation throws(Failure) in
        let name = invocation.operand(1)
        if let complaint = FieldRule.line(name, limit: 64) {
            throw Failure(
                .usage, "NAME \(complaint)", next: "Run 'twoefay device rename --help' for what it takes.")
        }
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let device = try desk.device(invocation)
        var change = DeviceChange(device.view.id, of: device.user, by: .operator, at: desk.now)
        change.name = name
        let wanted = change
        guard try desk.run({ Phones.change(wanted, as: $0) }) != nil else {
            let state = try desk.device(invocation).view.state
            throw Failure(
                .conflict, "the phone \(device.view.id.text) of \(device.owner) is \(state.rawValue)",
                next: state == .waiting
                    ? "It gets a name once its user has approved of it." : "Nothing was changed.")
        }
        return Report(
            "The phone \(device.view.id.text) of \(device.owner) is called \(name) now.",
            json: .object([
                "device": .string(device.view.id.text), "user": .string(device.username),
                "website": .string(device.website), "before": .text(device.view.name), "name": .string(name),
            ]))
    }
}
