import CLinux
import Glibc

/// The directories that the process may open files in, enforced by the kernel (Landlock), whatever permissions say.
///
/// Rules name directories rather than files, because certificates, keys and `resolv.conf` are
/// renewed by renaming: a rule for a file would hold for the old one alone. For a symbolic link the
/// rules name its directory and those of its targets, so that a link that later leads to another
/// file in the same place still works (certbot, Kubernetes). Sockets, pipes and files that are open
/// already are not concerned.
public struct LandlockRules: Sendable, Equatable {
    public enum Access: Int, Sendable, Comparable {
        case reading
        /// Reading and writing, but no new files: for devices.
        case writing
        /// And making and removing files: for a database with its log.
        case changing

        public static func < (a: Access, b: Access) -> Bool { a.rawValue < b.rawValue }
    }

    struct Rule: Sendable, Equatable {
        /// Without symbolic links.
        let path: String
        let access: Access
    }

    private(set) var rules: [Rule] = []

    public init() {}

    /// Allows a file, with all others in its directory, or a directory. A path that does not exist is left out.
    public mutating func allow(_ path: String, _ access: Access) {
        for place in Self.places(of: path) where !covers(place, access) {
            rules.append(Rule(path: place, access: access))
        }
    }

    /// Allows this file or directory alone.
    mutating func allowExactly(_ path: String, _ access: Access) {
        if let real = Self.real(path) { rules.append(Rule(path: real, access: access)) }
    }

    /// Whether the rules allow a path as `allow` would. False for one whose directory does not exist.
    public func allows(_ path: String, _ access: Access) -> Bool {
        let places = Self.places(of: path)
        return !places.isEmpty && places.allSatisfy { covers($0, access) }
    }

    private func covers(_ place: String, _ access: Access) -> Bool {
        rules.contains { $0.access >= access && (place == $0.path || place.hasPrefix($0.path + "/")) }
    }

    /// A directory itself; for a file the directory that holds it and, for a link, the directories of what it leads to.
    private static func places(of path: String) -> [String] {
        if isDirectory(path) { return real(path).map { [$0] } ?? [] }
        var places: [String] = []
        var path = path
        // The kernel gives up after 40 links, too.
        for _ in 0..<40 {
            let (directory, name) = split(path)
            guard let place = real(directory) else { break }
            let file = place == "/" ? "/\(name)" : "\(place)/\(name)"
            // Nobody means the whole file system.
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
    /// Files of the system that glibc, OpenSSL, libcurl and libmariadb open while the process runs:
    /// the resolver with its modules, the trusted authorities, and what the kernel tells about the
    /// machine.
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
