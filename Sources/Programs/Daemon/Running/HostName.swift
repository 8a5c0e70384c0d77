import Glibc

/// The account of the operating system that runs this program, for the audit.
enum Account {
    /// The name of the account, and the one that called `sudo`; the number if it has no name.
    static var current: String {
        let name = name(of: getuid())
        // The environment can be set to anything, so this name never stands alone.
        guard getuid() == 0, let caller = getenv("SUDO_USER").map({ String(cString: $0) }), !caller.isEmpty,
            caller.utf8.count <= 32, caller.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f })
        else { return name }
        return "\(name) (sudo by \(caller))"
    }

    static func name(of id: uid_t) -> String { entry(of: id) ?? String(id) }

    /// Whether the machine's list of accounts has this one.
    static func isListed(_ id: uid_t) -> Bool { entry(of: id) != nil }

    private static func entry(of id: uid_t) -> String? {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 4096)
        guard getpwuid_r(id, &entry, &buffer, buffer.count, &found) == 0, let found else { return nil }
        return String(cString: found.pointee.pw_name)
    }
}

/// The name of this machine, by which an operator tells relays apart.
enum HostName {
    /// The name that the kernel has; `unknown` if it cannot be read.
    static var current: String {
        var name = [CChar](repeating: 0, count: Int(HOST_NAME_MAX) + 1)
        guard gethostname(&name, name.count) == 0 else { return "unknown" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
