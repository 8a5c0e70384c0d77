import Daemon
import JSON
import Log

extension Tool {
    static let initialise = Subcommand(
        command: Command(
            "init", "Makes a new installation: settings, keys, certificates and an empty store.",
            operands: [.init("DIR", "Where it will live; made if it is not there.")],
            options: [
                .init(
                    "storage", .one("URL"),
                    "sqlite:FILE or mariadb://USER@HOST/DATABASE; sqlite:twoefay.db if left out."),
                .init("listen", .one("HOST:PORT"), "Where the relay listens; 127.0.0.1:8080 if left out."),
                .init(
                    "host", .many("NAME"),
                    "Names and addresses for the certificate, the first one for the origin; this machine's own if left out."
                ),
            ],
            notes: """
                Nothing that is there is overwritten, and after a failure nothing is left behind.
                  twoefay init /etc/twoefay --listen 0.0.0.0:8080 --host login.example.com
                """)
    ) { invocation throws(Failure) in
        var storage = StorageText(path: "twoefay.db")
        var listen = HostPort(host: "127.0.0.1", port: 8080)
        do throws(SettingsFault) {
            if let text = invocation.value("storage") { storage = try StorageText(settingsText: text) }
        } catch {
            throw Failure(.usage, "--storage: \(error.message)", next: "Run 'twoefay init --help' for what it takes.")
        }
        do throws(SettingsFault) {
            if let text = invocation.value("listen") { listen = try HostPort(settingsText: text) }
        } catch {
            throw Failure(.usage, "--listen \(error.message)", next: "Run 'twoefay init --help' for what it takes.")
        }
        let installation = try NewInstallation(
            directory: invocation.operand(0), storage: storage, listen: listen, hosts: invocation.values("host"))
        try installation.create(log: Log(minimum: .warning))

        let path = installation.settingsPath
        let origin = installation.settings.origin.settingsText
        return Report(
            """
            A new installation is in \(invocation.operand(0)). Its settings are \(path), its origin is \(origin).
            Keep copies of master.key and of the *.key files elsewhere: without them what is sealed or signed is lost.

            Next, make a website known, and start the relay:
              twoefay --config \(path) website add NAME
              twoefayd --config \(path)
            """,
            json: .object([
                "directory": .string(invocation.operand(0)), "settings": .string(path), "origin": .string(origin),
                "storage": .string(storage.written),
            ]))
    }
}
