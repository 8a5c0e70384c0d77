import Daemon
import Domain
import JSON
import Relay
import Storage
import World

extension Tool {
    static let verifyDevice = Subcommand(
        command: Command(
            "device verify", "Notes that a user still has a phone that is in doubt after a restore.",
            operands: [.init("DEVICE", "The phone's id of 32 digits, as in 'device list'.")],
            notes: """
                After 'twoefay restore' without an export of the audit, nobody knows which phones were unbound since the copy was
                made. Ask the user before. Websites can do the same (docs/websites/api.md).
                """)
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        let device = try store.device(invocation)
        guard let since = device.view.verifySince else {
            throw Failure(
                .conflict, "the phone \(device.view.id.text) of \(device.owner) is in no doubt",
                next: "Nothing was changed, as no check is due: the phone can be used as it is.")
        }
        var change = DeviceChange(device.view.id, of: device.user, by: .operator, at: store.now)
        change.isVerified = true
        let verifying = change
        guard try store.run({ Phones.change(verifying, as: $0) }) != nil else {
            throw Failure(
                .conflict,
                "the phone \(device.view.id.text) of \(device.owner) is \(try store.device(invocation).view.state.rawValue)",
                next: "Only a phone that is active or suspended can be verified. Nothing was changed.")
        }
        return Report(
            "The phone \(device.view.id.text) of \(device.owner) is in no doubt any more.",
            json: .object([
                "device": .string(device.view.id.text), "user": .string(device.username),
                "website": .string(device.website), "verify_since": .string(since.rfc3339),
            ]))
    }
}
