import Daemon
import JSON
import Storage
import World

extension Tool {
    static let listDevices = Subcommand(
        command: Command(
            "device list", "Lists the phones of a user.",
            operands: [.init("USER", "The user name, as given to /register.")], options: [OperatorStore.usersWebsite])
    ) { invocation throws(Failure) in
        let store = try OperatorStore(try Settings.load(invocation))
        defer { store.close() }
        let user = try store.user(invocation)
        let none =
            "\(user.fullName) has no phone. "
            + "Bind one through the website, or: twoefay user activate \(user.username.asShellWord) --website \(user.website)"
        return Report(
            user.devices.isEmpty ? none : Table(Accounts.Device.headings, user.devices.map(\.row)).text,
            json: .object([
                "user": .string(user.username), "website": .string(user.website),
                "devices": .array(user.devices.map(\.json)),
            ]))
    }

    static let showDevice = Subcommand(
        command: Command(
            "device show", "Shows a phone and its user.",
            operands: [.init("DEVICE", "The phone's id of 32 digits, as in 'device list'.")])
    ) { invocation throws(Failure) in
        let store = try OperatorStore(try Settings.load(invocation))
        defer { store.close() }
        let device = try store.device(invocation)
        let key = device.thumbprint.map { "its key has the thumbprint \($0)" } ?? "it has no key: its website keeps it"
        return Report(
            """
            A phone of \(device.owner); \(key).

            \(Table(Accounts.Device.headings, [device.row]).text)\(device.attestationText)
            """, json: device.json)
    }
}
