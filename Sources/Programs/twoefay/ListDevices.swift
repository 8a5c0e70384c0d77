import Daemon
import JSON
import Storage
import World

extension Tool {
    static let listDevices = Subcommand(
        command: Command(
            "device list", "Lists the phones of a user.",
            operands: [.init("USER", "The name that the website gave.")], options: [OperatorStore.usersWebsite])
    ) { invocation throws(Failure) in
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let user = try desk.user(invocation)
        let none =
            "\(user.called) has no phone. "
            + "The website binds one, or: twoefay user activate \(user.username.asShellWord) --website \(user.website)"
        return Report(
            user.devices.isEmpty ? none : Table(Accounts.Device.headings, user.devices.map(\.row)).text,
            json: .object([
                "user": .string(user.username), "website": .string(user.website),
                "devices": .array(user.devices.map(\.json)),
            ]))
    }

    static let showDevice = Subcommand(
        command: Command(
            "device show", "Shows a phone, and whose it is.",
            operands: [.init("DEVICE", "The 32 digits of its id, as in log, audit and 'device list'.")])
    ) { invocation throws(Failure) in
        let desk = try OperatorStore(try Settings.load(invocation))
        defer { desk.close() }
        let device = try desk.device(invocation)
        let key = device.thumbprint.map { "its key has the thumbprint \($0)" } ?? "it has no key: its website keeps it"
        return Report(
            """
            A phone of \(device.owner); \(key).

            \(Table(Accounts.Device.headings, [device.row]).text)
            """, json: device.json)
    }
}
