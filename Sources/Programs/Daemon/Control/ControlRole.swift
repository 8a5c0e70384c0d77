import Glibc

/// The rights of a caller of the control socket. Each role has commands of its own.
public enum ControlRole: String, Sendable, CaseIterable {
    /// Reads everything, and changes nothing.
    case auditor
    /// Helps users.
    case helpdesk
    /// Does all that the relay does for a caller.
    case `operator`

    /// The roles of a refusal, such as `auditor or operator`.
    static func list(_ roles: Set<ControlRole>) -> String {
        allCases.filter(roles.contains).map(\.rawValue).joined(separator: " or ")
    }
}

/// The groups of the operating system that give roles.
struct ControlGroups: Sendable {
    private var roles: [gid_t: Set<ControlRole>] = [:]

    /// Looks the groups of the settings up.
    init(_ settings: Settings.ControlSettings) throws(Failure) {
        if let (role, name) = Self.missing(settings).first {
            throw Failure(
                .failed, "control.\(role.settingsName): there is no group \(name)",
                next: "Make it with 'addgroup \(name)', or correct the name.")
        }
        for (role, name) in Self.named(settings) {
            if let group = SystemGroup.number(of: name) { roles[group, default: []].insert(role) }
        }
    }

    /// Returns the groups of the settings that do not exist.
    static func missing(_ settings: Settings.ControlSettings) -> [(ControlRole, String)] {
        named(settings).filter { SystemGroup.number(of: $0.1) == nil }
    }

    private static func named(_ settings: Settings.ControlSettings) -> [(ControlRole, String)] {
        settings.groups.flatMap { role, names in (names?.all ?? []).map { (role, $0) } }
    }

    /// Returns the roles of an account in these groups. Root and the relay's own account can read
    /// the keys, so they are operators.
    func roles(of user: uid_t, in groups: [gid_t]) -> Set<ControlRole> {
        var all = groups.reduce(into: Set()) { $0.formUnion(roles[$1] ?? []) }
        if user == 0 || user == geteuid() { all.insert(.operator) }
        return all
    }

    /// Whether somebody else than root and the relay's own account can have a role.
    var isEmpty: Bool { roles.isEmpty }

    /// The mode of the socket. A file belongs to one group only, so all accounts may connect if a group has
    /// a role; the relay refuses those without one.
    var socketMode: mode_t { isEmpty ? 0o600 : 0o666 }
}

extension ControlRole {
    /// The key of the settings that has its groups.
    var settingsName: String {
        switch self {
        case .auditor: "auditors"
        case .helpdesk: "helpdesk"
        case .operator: "operators"
        }
    }
}
