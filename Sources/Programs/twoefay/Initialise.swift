import Commands
import Daemon
import JSON
import Log

extension Tool {
    static let initialise = Subcommand(
        command: Command(
            "init", "Creates an installation: settings, keys, certificates and an empty store.",
            operands: [.init("DIR", "The directory of the installation; created if it does not exist.")],
            options: [
                .init(
                    "storage", .one("URL"),
                    "sqlite:FILE or mariadb://USER@HOST/DATABASE (default: sqlite:twoefay.db)."),
                .init("listen", .one("HOST:PORT"), "The address of the relay (default: 127.0.0.1:8080)."),
                .init(
                    "host", .many("NAME"),
                    "Names and addresses for the certificate; the first becomes the origin (default: localhost)."
                ),
                .init(
                    "owner", .one("USER"),
                    "The user who runs the relay, and gets the files that it needs; only root can give them away."),
            ],
            notes: """
                It overwrites no existing file, and leaves nothing behind after a failure. --owner leaves ca.key and
                website-ca.key to you: the relay does not need them. If DIR does not exist, it belongs to USER, too, who
                cannot read these keys, but could delete or replace them: move them away, or make DIR before.
                """)
    ) { invocation throws(Failure) in
        var storage = StorageText(path: "twoefay.db")
        var listen = HostPort(host: "127.0.0.1", port: 8080)
        do throws(SettingsFault) {
            if let text = invocation.value("storage") { storage = try StorageText(settingsText: text) }
        } catch {
            throw Failure(.usage, "--storage: \(error.message)", next: "Run 'twoefay init --help' for usage.")
        }
        do throws(SettingsFault) {
            if let text = invocation.value("listen") { listen = try HostPort(settingsText: text) }
        } catch {
            throw Failure(.usage, "--listen \(error.message)", next: "Run 'twoefay init --help' for usage.")
        }
        let installation = try NewInstallation(
            directory: invocation.operand(0), storage: storage, listen: listen, hosts: invocation.values("host"),
            owner: invocation.value("owner"), reason: try Settings.reason(invocation))
        try installation.create(log: Log(minimum: .warning))

        let path = installation.settingsPath
        let origin = installation.settings.origin.settingsText
        return Report(
            """
            The installation is created in \(invocation.operand(0)). Its settings are \(path), its origin is \(origin).
            Keep copies of master.key and of the *.key files elsewhere: without them, the sealed secrets are lost, and no
            certificate can be issued.

            Next, add a website, and start the relay:
              twoefay --config \(path) website add NAME
              twoefayd --config \(path)
            """,
            json: .object([
                "directory": .string(invocation.operand(0)), "settings": .string(path), "origin": .string(origin),
                "storage": .string(storage.written),
            ]))
    }
}
