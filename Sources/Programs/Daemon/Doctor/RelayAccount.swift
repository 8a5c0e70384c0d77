import CLinux
import Glibc

/// The account of the operating system that runs the relay, with its groups.
///
/// `twoefay doctor` often runs as root or as an administrator. It judges by this account what only the
/// relay uses.
struct RelayAccount: Sendable, Equatable {
    let name: String
    let user: uid_t
    let groups: Set<gid_t>
    /// The source of the account's name, for the report.
    let origin: String

    /// Finds the account: that of the unit of systemd, or else the owner of the server's key, which only
    /// the relay may read. Nil if neither can be told.
    static func find(_ settings: Settings, unit: [String: String]?) -> RelayAccount? {
        if unit?["LoadState"] == "loaded", let name = unit?["User"], !name.isEmpty, let entry = getpwnam(name) {
            return RelayAccount(entry.pointee, origin: "User= of twoefayd.service")
        }
        let key = settings.path(of: settings.tls.key)
        var state = stat()
        guard !Credentials.contains(key), stat(key, &state) == 0 else { return nil }
        guard let entry = getpwuid(state.st_uid) else { return nil }
        return RelayAccount(entry.pointee, origin: "the owner of \(key)")
    }

    init(name: String, user: uid_t, groups: Set<gid_t>, origin: String) {
        self.name = name
        self.user = user
        self.groups = groups
        self.origin = origin
    }

    private init(_ entry: passwd, origin: String) {
        let name = String(cString: entry.pw_name)
        var list = [gid_t](repeating: 0, count: 256)
        var count = Int32(list.count)
        let isWhole = getgrouplist(name, entry.pw_gid, &list, &count) >= 0
        let groups = isWhole ? Set(list.prefix(Int(count))) : [entry.pw_gid]
        self.init(name: name, user: entry.pw_uid, groups: groups, origin: origin)
    }

    /// The rights of a file's mode for this account: 4 to read, 2 to write, 1 to search a directory. Root
    /// has all.
    func rights(of state: stat) -> mode_t {
        if user == 0 { return 7 }
        if state.st_uid == user { return state.st_mode >> 6 & 7 }
        return groups.contains(state.st_gid) ? state.st_mode >> 3 & 7 : state.st_mode & 7
    }
}
