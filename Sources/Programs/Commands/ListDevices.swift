import Daemon
import JSON
import Relay
import Storage
import World

extension Tool {
    static let listDevices = Subcommand(
        command: Command(
            "device list", "Lists the phones of a user.",
            operands: [.init("USER", "The user name, as given to /register.")], options: [OperatorStore.usersWebsite])
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        var user = try store.user(invocation)
        try store.complete(&user)
        let none =
            "\(user.fullName) has no phone. "
            + "Bind one through the website, or: twoefay user activate \(user.username.asShellWord) --website \(user.website)"
        let table = Table(Accounts.Device.headings, user.devices.map { $0.row(at: store.now) }).text
        let doubts = user.devices.compactMap(\.verifyText).map { "\n\($0)" }
        return Report(
            user.devices.isEmpty ? none : ([table] + doubts).joined(separator: "\n"),
            json: .object([
                "user": .string(user.username), "website": .string(user.website),
                "devices": .array(user.devices.map { $0.json(at: store.now) }),
            ]))
    }

    static let showDevice = Subcommand(
        command: Command(
            "device show", "Shows a phone, its user and its certificates.",
            operands: [.init("DEVICE", "The phone's id of 32 digits, as in 'device list'.")])
    ) { invocation throws(Failure) in
        let store = try OperatorStore(invocation)
        defer { store.close() }
        var device = try store.device(invocation)
        try store.addReport(to: &device)
        let certificates = try store.read(DeviceCertificates.all(of: device.view.id))
        let tagged = try store.read(TaggedCertificates.all(of: device.user)).filter { $0.device == device.view.id }
        let none = "It has no certificate that has not expired."
        let table = Table(DeviceCertificates.Certificate.headings, certificates.map(\.row))
        var json = device.json(at: store.now).object ?? [:]
        json.set("certificates", .array(certificates.map(\.json)))
        json.set("tagged_certificates", .array(tagged.map(\.operatorJSON)))
        let key = device.thumbprint.map { "its key has the thumbprint \($0)" } ?? "it has no key: its website keeps it"
        let notes = [device.verifyText, device.pinText, device.reportText(at: store.now)].compactMap(\.self).map {
            "\n\n\($0)"
        }.joined()
        return Report(
            """
            A phone of \(device.owner); \(key).

            \(Table(Accounts.Device.headings, [device.row(at: store.now)]).text)\(notes)\(device.attestationText)

            \(certificates.isEmpty ? none : table.text)\(TaggedCertificate.text(tagged))
            """, json: .object(json))
    }
}
