import Commands
import Daemon

extension Tool {
    static let doctor = Subcommand(
        command: Command(
            "doctor", "Examines the installation and its surroundings, and says what to mend.",
            options: [
                .init("offline", .nothing, "Connect to no other machine but the store's, and ask the relay nothing.")
            ],
            notes: """
                It reads only: it sends no message and no password, and changes no value in the store. It works without a relay
                that runs. Run it as the user of the relay, so that it can judge the keys, too.
                Exit status 0: no failure, though perhaps warnings. 1: at least one failure.
                """)
    ) { invocation throws(Failure) in
        let doctor = try Doctor(invocation)
        return Finding.report(doctor.examine(offline: invocation.has("offline"), progress: invocation.progress()))
    }
}
