import CLinux
import Glibc

/// The account at the other end of the control socket, as the kernel recorded it when the
/// connection was made.
struct ControlCaller: Sendable {
    let user: uid_t
    let roles: Set<ControlRole>

    /// The numbers of groups for which there is room, the second one if the first does not suffice.
    /// Linux allows no more.
    private static let room = [64, 65_536]

    /// Returns nil if the kernel does not say who it is.
    init?(_ fd: Int32, _ groups: ControlGroups) {
        var (user, group) = (uid_t(), gid_t())
        for room in Self.room {
            var all = [gid_t](repeating: 0, count: room)
            let count = clinux_peer_groups(fd, &user, &group, &all, UInt32(room))
            if count < 0, errno == ERANGE { continue }
            guard count >= 0 else { return nil }
            self.user = user
            roles = groups.roles(of: user, in: [group] + all.prefix(Int(count)))
            return
        }
        return nil
    }

    /// Returns the weakest of the caller's roles that may run the command; nil if none may.
    func role(for command: ControlCommand) -> ControlRole? {
        ControlRole.allCases.first { roles.contains($0) && command.roles.contains($0) }
    }
}
