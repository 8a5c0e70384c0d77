import Bytes
import CLinux
import Glibc

/// Files of an installation: read whole, and written so that they are there completely and forever, or not at all.
public enum Files {
    public struct Problem: Error, Sendable, Equatable {
        public let path: String
        public let reason: String
        public let exists: Bool

        init(_ path: String, errno number: Int32 = errno) {
            self.path = path
            reason = String(cString: strerror(number))
            exists = number == EEXIST
        }

        public init(_ path: String, _ reason: String) {
            self.path = path
            self.reason = reason
            exists = false
        }

        public var text: String { "\(path): \(reason)" }
    }

    /// Nothing that belongs to an installation is larger.
    public static let largest = 4 << 20

    public static func read(_ path: String, atMost largest: Int = largest) throws(Problem) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Problem(path) }
        defer { close(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Glibc.read(file, &chunk, chunk.count)
            if count == 0 { return bytes }
            if count > 0 {
                bytes += chunk[..<count]
                guard bytes.count <= largest else { throw Problem(path, "is larger than \(largest >> 20) MiB") }
            } else if errno != EINTR {
                throw Problem(path)
            }
        }
    }

    /// Reads a file that only its owner may read; one that others can read is refused, it is no secret any more.
    public static func readPrivate(_ path: String) throws(Problem) -> [UInt8] {
        try requirePrivate(path)
        return try read(path)
    }

    /// The same for a key or a password that the process keeps: its bytes lie in locked pages, and nowhere else.
    public static func readSecret(_ path: String) throws(Problem) -> Secret {
        try requirePrivate(path)
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Problem(path) }
        defer { close(file) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: largestSecret + 1, alignment: 1)
        defer {
            Wiping.wipe(buffer)
            buffer.deallocate()
        }
        var filled = 0
        while filled < buffer.count {
            let count = Glibc.read(file, buffer.baseAddress.map { $0 + filled }, buffer.count - filled)
            if count == 0 { return Secret(locking: UnsafeRawBufferPointer(rebasing: buffer[..<filled])) }
            if count > 0 {
                filled += count
            } else if errno != EINTR {
                throw Problem(path)
            }
        }
        throw Problem(path, "is larger than \(largestSecret >> 10) KiB")
    }

    /// No key and no password is larger.
    private static let largestSecret = 64 << 10

    private static func requirePrivate(_ path: String) throws(Problem) {
        var state = stat()
        guard stat(path, &state) == 0 else { throw Problem(path) }
        guard state.st_mode & 0o077 == 0 else {
            throw Problem(
                path, "can be read by others than its owner; chmod 600 it, and replace it if others have had access")
        }
    }

    /// Whether others than its owner can read it.
    public static func isReadableByOthers(_ path: String) -> Bool {
        var state = stat()
        return stat(path, &state) == 0 && state.st_mode & 0o044 != 0
    }

    /// Writes a file that must not be there yet. It is on the disk when this returns; after an error it is gone.
    public static func create(_ path: String, _ bytes: [UInt8], mode: mode_t) throws(Problem) {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard file >= 0 else { throw Problem(path) }
        defer { close(file) }
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
            if count >= 0 {
                written += count
            } else if errno != EINTR {
                let problem = Problem(path)
                unlink(path)
                throw problem
            }
        }
        // The mask of the process must not take away what was asked for.
        guard fchmod(file, mode) == 0, fsync(file) == 0 else {
            let problem = Problem(path)
            unlink(path)
            throw problem
        }
    }

    /// Writes a file in place of the one that may be there: whoever reads sees the old one or the new one, whole.
    public static func replace(_ path: String, _ bytes: [UInt8], mode: mode_t) throws(Problem) {
        try put(path, bytes, mode: mode) { _ in true }
    }

    /// The same with one that is there, whose owner and permissions the new one has. Behind a symbolic link, the file that it
    /// leads to is replaced.
    public static func rewrite(_ path: String, _ bytes: [UInt8]) throws(Problem) {
        guard let resolved = realpath(path, nil) else { throw Problem(path) }
        defer { free(resolved) }
        let target = String(cString: resolved)
        var state = stat()
        guard stat(target, &state) == 0 else { throw Problem(path) }
        try put(target, bytes, mode: state.st_mode & 0o7777) { fresh in
            // What is ours anyway nobody needs to give us: only root may.
            (state.st_uid == geteuid() && state.st_gid == getegid()) || chown(fresh, state.st_uid, state.st_gid) == 0
        }
    }

    private static func put(
        _ path: String, _ bytes: [UInt8], mode: mode_t, prepare: (String) -> Bool
    ) throws(Problem) {
        // One process at a time has this name; what a crash left behind under it is in nobody's way.
        let fresh = "\(path).\(getpid())"
        unlink(fresh)
        try create(fresh, bytes, mode: mode)
        guard prepare(fresh), rename(fresh, path) == 0 else {
            let problem = Problem(path)
            unlink(fresh)
            throw problem
        }
        try sync(directory: directory(of: path))
    }

    /// What lies in a directory, in order.
    public static func names(in path: String) throws(Problem) -> [String] {
        guard let directory = opendir(path) else { throw Problem(path) }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { tuple in
                tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// Makes the names in a directory last.
    public static func sync(directory: String) throws(Problem) {
        let file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { throw Problem(directory) }
        defer { close(file) }
        guard fsync(file) == 0 else { throw Problem(directory) }
    }

    /// True if the directory was made now, false if it was there.
    public static func makeDirectory(_ path: String, mode: mode_t) throws(Problem) -> Bool {
        if mkdir(path, mode) == 0 { return true }
        let number = errno
        var state = stat()
        if number == EEXIST, stat(path, &state) == 0, state.st_mode & S_IFMT == S_IFDIR { return false }
        throw Problem(path, errno: number)
    }

    /// The same with all those above it that are missing.
    public static func makeDirectories(_ path: String, mode: mode_t) throws(Problem) {
        let above = directory(of: path)
        if above != path, !exists(above) { try makeDirectories(above, mode: mode) }
        _ = try makeDirectory(path, mode: mode)
    }

    /// Whether this process may read the file.
    static func isReadable(_ path: String) -> Bool { access(path, R_OK) == 0 }

    public static func exists(_ path: String) -> Bool {
        var state = stat()
        return lstat(path, &state) == 0
    }

    public static func remove(_ path: String) { unlink(path) }
    public static func removeDirectory(_ path: String) { rmdir(path) }

    /// `path` itself if it is absolute, or else what it means inside `directory`.
    public static func resolve(_ path: String, in directory: String) -> String {
        path.hasPrefix("/") || directory.isEmpty
            ? path : directory.hasSuffix("/") ? directory + path : "\(directory)/\(path)"
    }

    /// The directory that a file lies in.
    public static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
