import Daemon
import Demo

extension Tool {
    static let demo = Verb(
        command: Command(
            "demo", "Plays three logins on this machine: one approved, one denied, one left alone.",
            options: [
                .init(
                    "storage", .one("URL"),
                    "sqlite:FILE or mariadb://USER@HOST/DATABASE; sqlite:twoefay.db, in the demo's own directory, if left out."
                ),
                .init("keep", .nothing, "Keep the demo's directory, to look at settings, certificates, store and log."),
            ],
            notes: """
                It takes a minute, the shortest life that a question can have. It needs no account, no phone and no other
                machine, and leaves nothing behind but a store outside of its directory, where --storage names one.
                With --json, one value at the end: how each login ended, and every step with its time.
                Exit status 0: all three ended as they should.
                """)
    ) { invocation throws(Failure) in
        var wish = Demo.Wish(keeps: invocation.has("keep"), tells: !invocation.has("json"))
        do throws(SettingsFault) {
            if let text = invocation.value("storage") { wish.storage = try StorageText(settingsText: text) }
        } catch {
            throw Failure(.usage, "--storage: \(error.message)", next: "Run 'twoefay demo --help' for what it takes.")
        }
        return try Demo.run(wish)
    }
}
