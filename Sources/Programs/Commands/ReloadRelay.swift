import Daemon
import JSON

extension Tool {
    public static let reloadRelay = Subcommand(
        command: Command(
            "reload", "Has the running relay read its files and settings again, and shows the outcome.",
            notes: """
                It needs the setting control.socket, and the role operator. The relay does the same as at SIGHUP:
                docs/operators/running.md says what takes effect. Settings and files that have changed are named, and
                settings that need a restart with their lines.
                Exit status 0: reloaded. 1: refused, and nothing was changed. 5: no relay answers.
                """)
    ) { invocation throws(Failure) in
        guard let host = invocation.host else {
            throw Failure(
                .failed, "the settings have no control.socket, so the running relay cannot be asked",
                next: "Set 'socket: unix:/run/twoefay/control' under 'control' and restart the relay, or send SIGHUP "
                    + "and read the log.")
        }
        switch try host.reload() {
        case .refused(let failure):
            throw Failure(failure.code, "nothing was changed: \(failure.message)", next: failure.next)
        case .reloaded(let changed, let restart):
            var lines = ["The relay has reloaded its files and settings."]
            lines.append(
                changed.isEmpty ? "Nothing in them has changed." : "Changed: \(changed.joined(separator: ", ")).")
            if !restart.isEmpty {
                lines.append("These settings have changed, too, but need a restart:")
                lines += restart.map { "  \($0.text)" }
            }
            return Report(
                lines.joined(separator: "\n"),
                json: .object([
                    "changed": .array(changed.map { .string($0) }), "restart": .array(restart.map(\.json)),
                ]))
        }
    }
}
