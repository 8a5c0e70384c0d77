import CLinux
import Glibc

/// The check that the relay can write the heads of the audit to the file of `audit.heads`.
///
/// The rights of the relay's account count, and not those of the account that runs the check: root may
/// write everywhere, and an administrator often cannot. The system itself is asked if both are the same.
/// Otherwise the modes of the file and of all directories above it are compared, which do not show access
/// lists.
struct HeadsCheck: Sendable {
    let settings: Settings
    let facts: HostFacts

    private enum Verdict { case writable, refused(String), unknown(String) }

    var all: [Check] { [Check("audit.heads") { place() }] }

    private func place() -> [Finding] {
        guard case .file(let heads) = settings.auditHeads else { return [] }
        let path = settings.path(of: heads)
        let own = Account.current
        guard let relay = facts.relayAccount(settings) else {
            return [
                Finding(
                    "audit.heads", .warning,
                    "\(path): nothing tells the account of the relay, and \(own) runs this command",
                    remedy: "Run the command as the account that runs twoefayd.")
            ]
        }
        let isSelf = relay.user == geteuid()
        let account = "\(relay.name) (\(relay.origin))"
        switch isSelf ? asked(path) : compared(path, relay) {
        case .writable:
            return [Finding("audit.heads", .ok, "\(path) can be written by \(account)")]
        case .refused(let reason):
            return [
                Finding(
                    "audit.heads", .failure, "\(path) cannot be written by \(account): \(reason)",
                    remedy: "Create its directory, and let that account write to it; the package makes "
                        + "/var/log/twoefay."
                        + (isSelf ? "" : " If an access list allows it, run the command as \(relay.name) to be sure."))
            ]
        case .unknown(let reason):
            return [
                Finding(
                    "audit.heads", .warning, "\(path) cannot be judged for \(account) by \(own): \(reason)",
                    remedy: "Run the command as \(relay.name), for example with 'sudo -u \(relay.name)'.")
            ]
        }
    }

    /// The file, or its directory if the relay shall make the file.
    private func target(_ path: String) -> String { Files.exists(path) ? path : Files.directory(of: path) }

    private func asked(_ path: String) -> Verdict {
        let target = target(path)
        guard access(target, W_OK) != 0 else { return .writable }
        return .refused("\(target): \(String(cString: strerror(errno)))")
    }

    private func compared(_ path: String, _ relay: RelayAccount) -> Verdict {
        let target = target(path)
        guard let resolved = realpath(target, nil) else {
            let number = errno
            let reason = "\(target): \(String(cString: strerror(number)))"
            return number == EACCES ? .unknown(reason) : .refused(reason)
        }
        defer { free(resolved) }
        var place = String(cString: resolved)
        var needed: mode_t = 2
        while true {
            var state = stat()
            guard stat(place, &state) == 0 else {
                return .unknown("\(place): \(String(cString: strerror(errno)))")
            }
            // A file is made in a directory with the right to search it, too.
            if state.st_mode & S_IFMT == S_IFDIR { needed |= 1 }
            guard relay.rights(of: state) & needed == needed else {
                let mode = String(state.st_mode & 0o7777, radix: 8)
                return .refused("\(place) has the owner \(Account.name(of: state.st_uid)) and the mode \(mode)")
            }
            guard place != "/" else { return .writable }
            place = Files.directory(of: place)
            needed = 1
        }
    }
}
