import Daemon
import Demo

extension Tool {
    static let demo = Subcommand(
        command: Command(
            "demo", "Shows all of it in a browser on this machine: a website, phones, and what they say to each other.",
            options: [
                .init(
                    "terminal", .nothing,
                    "Play three logins in the terminal instead: one approved, one denied, one left alone."),
                .init(
                    "port", .one("PORT"),
                    "The first of three ports for the pages, which follow one another; any that are free, if left out."),
                .init(
                    "storage", .one("URL"),
                    "sqlite:FILE or mariadb://USER@HOST/DATABASE; sqlite:twoefay.db, in the demo's own directory, if left out."
                ),
                .init("keep", .nothing, "Keep the demo's directory, to look at settings, certificates, store and log."),
            ],
            notes: """
                It needs no account, no phone and no other machine, opens nothing by itself, and leaves nothing behind but a
                store outside of its directory, where --storage names one. It ends by Ctrl-C. With --json, one value when it
                is ready, with its addresses, and one when it has ended.
                With --terminal it takes a minute, the shortest life that a question can have; with --json, one value at the
                end: how each login ended, and every step with its time. Exit status 0: all three ended as they should.
                """)
    ) { invocation throws(Failure) in
        let help = "Run 'twoefay demo --help' for what it takes."
        var wish = Demo.Options(keeps: invocation.has("keep"), tells: !invocation.has("json"))
        do throws(SettingsFault) {
            if let text = invocation.value("storage") { wish.storage = try StorageText(settingsText: text) }
        } catch {
            throw Failure(.usage, "--storage: \(error.message)", next: help)
        }
        if let text = invocation.value("port") {
            guard let port = UInt16(text), (1...65_533).contains(port) else {
                throw Failure(.usage, "--port \(text) is no number from 1 to 65533", next: help)
            }
            guard !invocation.has("terminal") else {
                throw Failure(.usage, "--port is for pages, and --terminal has none", next: help)
            }
            wish.port = port
        }
        return invocation.has("terminal") ? try Demo.runWalkthrough(wish) : try Demo.runDashboard(wish)
    }
}
