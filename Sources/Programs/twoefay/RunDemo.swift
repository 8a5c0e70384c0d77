import Commands
import Daemon
import Demo

extension Tool {
    static let demo = Subcommand(
        command: Command(
            "demo", "Runs a demo in a browser on this machine: a website, phones and their messages.",
            options: [
                .init(
                    "terminal", .nothing,
                    "Run three logins in the terminal instead: one approved, one denied, one unanswered."),
                .init(
                    "port", .one("PORT"),
                    "The first of three consecutive ports for the pages (default: any free ports)."),
                .init(
                    "storage", .one("URL"),
                    "sqlite:FILE or mariadb://USER@HOST/DATABASE (default: sqlite:twoefay.db in the demo's directory)."
                ),
                .init("keep", .nothing, "Keep the demo's directory with its settings, certificates, store and log."),
            ],
            notes: """
                It needs no account, no phone and no other machine. It opens no browser, and leaves nothing behind except a
                store outside its directory that --storage names. Ctrl-C ends it. With --json, it prints one value with its
                addresses when it is ready, and one value at the end.
                With --terminal, it takes a minute, the shortest lifetime of a challenge. With --json, it prints one value at
                the end: the result of each login, and every step with its time. Exit status 0: all results are as expected.
                """)
    ) { invocation throws(Failure) in
        let help = "Run 'twoefay demo --help' for usage."
        var options = Demo.Options(keepsFiles: invocation.has("keep"), narrates: !invocation.has("json"))
        do throws(SettingsFault) {
            if let text = invocation.value("storage") { options.storage = try StorageText(settingsText: text) }
        } catch {
            throw Failure(.usage, "--storage: \(error.message)", next: help)
        }
        if let text = invocation.value("port") {
            guard let port = UInt16(text), (1...65_533).contains(port) else {
                throw Failure(.usage, "--port must be a number from 1 to 65533, not \(text)", next: help)
            }
            guard !invocation.has("terminal") else {
                throw Failure(.usage, "--port and --terminal exclude each other", next: help)
            }
            options.port = port
        }
        return invocation.has("terminal") ? try Demo.runWalkthrough(options) : try Demo.runDashboard(options)
    }
}
