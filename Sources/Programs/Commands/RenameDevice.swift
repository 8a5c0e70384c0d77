import Daemon
import Domain
import JSON
import Relay
import Storage

extension Tool {
    static let renameDevice = Subcommand(
        command: Command(
            "device rename", "Gives a phone another name.",
            operands: [
                .init("DEVICE", "The phone's id of 32 digits, as in 'device list'."),
                .init("NAME", "The new name, with at most 64 characters."),
            ],
            notes: "The website sees the new name; the phone itself does not.")
    ) { invocation throws(Failure) in
        let name = invocation.operand(1)
        if let complaint = FieldRule.line(name, limit: 64) {
            throw Failure(
                .usage, "NAME \(complaint)", next: "Run 'twoefay device rename --help' for usage.")
        }
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let device = try store.device(invocation)
        var change = DeviceChange(device.view.id, of: device.user, by: .operator, at: store.now)
        change.name = name
        change.formerName = device.view.name
        let renaming = change
        guard try store.run({ Phones.change(renaming, as: $0) }) != nil else {
            let state = try store.device(invocation).view.state
            throw Failure(
                .conflict, "the phone \(device.view.id.text) of \(device.owner) is \(state.rawValue)",
                next: state == .waiting
                    ? "It can be renamed after its user has approved it."
                    : "Nothing was changed. 'twoefay device list' shows the phones that are bound.")
        }
        return Report(
            "The phone \(device.view.id.text) of \(device.owner) is now called \(name).",
            json: .object([
                "device": .string(device.view.id.text), "user": .string(device.username),
                "website": .string(device.website), "before": .text(device.view.name), "name": .string(name),
            ]))
    }
}
