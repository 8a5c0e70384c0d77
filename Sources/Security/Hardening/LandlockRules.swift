import CLinux
import Glibc

/// The directories in which the process may open files. The kernel enforces them with Landlock,
/// independently of file permissions.
///
/// Purpose: code of an attacker in this process cannot open other files, even if the process's user
/// may read them.
///
/// Invariant: rules name directories, not files. Certificates, keys and `resolv.conf` are renewed
/// by renaming, and a rule for a file would apply only to the old file. For a symbolic link the
/// rules name its own directory and those of its targets. So a link may later lead to another file
/// in the same directory, as certbot and Kubernetes do it.
///
/// Failure modes: a reload may name a file in a directory without a rule. The rules cannot be
/// extended, so the reload is refused (`Hardening.requireReach`). Sockets, pipes and files that are
/// open already are not restricted.
///
/// `LandlockTests.swift` tests the rules, `FaultsTests/HardeningTests.swift` the reload.
public struct LandlockRules: Sendable, Equatable {
    public enum Access: Int, Sendable, Comparable {
        /// Reading files and directories.
        case reading
        /// Reading and writing, but no new files: for devices.
        case writing
        /// Reading, writing, creating and removing files: for a database with its log.
        case changing

        public static func < (a: Access, b: Access) -> Bool { a.rawValue < b.rawValue }
    }

    struct Rule: Sendable, Equatable {
        /// The path, without symbolic links.
        let path: String
        let access: Access
    }

    private(set) var rules: [Rule] = []

    public init() {}

    /// Allows a file and all others in its directory, or a directory. A path whose directory does
    /// not exist is ignored.
    public mutating func allow(_ path: String, _ access: Access) {
        for place in Self.places(of: path) where !covers(place, access) {
            rules.append(Rule(path: place, access: access))
        }
    }

    /// Allows only this file or directory.
    mutating func allowExactly(_ path: String, _ access: Access) {
        if let real = Self.real(path) { rules.append(Rule(path: real, access: access)) }
    }

    /// Whether the rules allow everything that `allow` would add for this path. False if its
    /// directory does not exist.
    public func allows(_ path: String, _ access: Access) -> Bool {
        let places = Self.places(of: path)
        return !places.isEmpty && places.allSatisfy { covers($0, access) }
    }

    private func covers(_ place: String, _ access: Access) -> Bool {
        rules.contains { $0.access >= access && (place == $0.path || place.hasPrefix($0.path + "/")) }
    }

    /// Returns the directories that a path needs. For a directory this is the directory itself. For
    /// a file it is the directory that contains it and, if the file is a link, also the directories
    /// of its targets.
    private static func places(of path: String) -> [String] {
        if isDirectory(path) { return real(path).map { [$0] } ?? [] }
        var places: [String] = []
        var path = path
        // The kernel follows at most 40 links, too.
        for _ in 0..<40 {
            let (directory, name) = split(path)
            guard let place = real(directory) else { break }
            let file = place == "/" ? "/\(name)" : "\(place)/\(name)"
            // A rule for `/` would allow the whole file system, so a file in `/` gets a rule for
            // the file alone.
            places.append(place == "/" ? file : place)
            guard let target = target(of: file) else { break }
            path = target.hasPrefix("/") ? target : "\(place)/\(target)"
        }
        return places
    }

    private static func split(_ path: String) -> (directory: String, name: String) {
        guard let slash = path.lastIndex(of: "/") else { return (".", path) }
        let directory = slash == path.startIndex ? "/" : String(path[..<slash])
        return (directory, String(path[path.index(after: slash)...]))
    }

    private static func real(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    private static func isDirectory(_ path: String) -> Bool {
        var state = stat()
        return stat(path, &state) == 0 && state.st_mode & S_IFMT == S_IFDIR
    }

    private static func target(of link: String) -> String? {
        var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(link, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }
}

extension LandlockRules {
    /// The rules for system files that glibc, OpenSSL, libcurl and libmariadb open while the
    /// process runs. These are the resolver with its modules, the trusted authorities, and the
    /// kernel's information about the machine.
    public static var system: LandlockRules {
        var rules = LandlockRules()
        let directories = [
            "/etc", "/usr/lib", "/usr/lib32", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/share",
            "/usr/local/share", "/run/systemd/resolve", "/run/NetworkManager", "/run/resolvconf", "/run/nscd",
            "/var/lib/sss", "/sys/devices/system/cpu", "/proc/sys", "/proc/self",
        ]
        for path in directories { rules.allowExactly(path, .reading) }
        rules.allow("/etc/resolv.conf", .reading)
        for name in ["SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF", "OPENSSL_MODULES"] {
            if let path = getenv(name) { rules.allow(String(cString: path), .reading) }
        }
        for path in ["/proc/stat", "/proc/meminfo", "/proc/cpuinfo", "/dev/urandom", "/dev/random", "/dev/zero"] {
            rules.allowExactly(path, .reading)
        }
        rules.allowExactly("/dev/null", .writing)
        return rules
    }
}
