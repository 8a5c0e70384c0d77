import Bytes
import CLinux
import Glibc
import World

/// Files of an installation. They are read as a whole. They are written completely and durably, or
/// not at all.
///
/// Tested in `InstallationFileTests.swift`.
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

    /// The size limit. No file of an installation is larger.
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

    /// Returns the reason why a file cannot be read; nil if it can.
    static func obstacle(_ path: String) -> Problem? {
        // A pipe without a writer would block otherwise.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return Problem(path) }
        defer { close(file) }
        var byte: UInt8 = 0
        return Glibc.read(file, &byte, 1) < 0 ? Problem(path) : nil
    }

    /// Reads a file that only its owner may read. A file that others can read is refused, because
    /// its content is no longer secret.
    public static func readPrivate(_ path: String) throws(Problem) -> [UInt8] {
        try requirePrivate(path)
        return try read(path)
    }

    /// Reads a key or password that the process keeps, under the same condition. Its bytes are
    /// stored in locked pages only.
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

    /// Reads the only line of a file with a password, under the same condition. A line end after it
    /// is optional.
    public static func readLine(_ path: String) throws(Problem) -> Secret {
        var bytes = try readSecret(path).reveal()
        while let last = bytes.last, last == 0x0a || last == 0x0d { bytes.removeLast() }
        guard !bytes.isEmpty, bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }),
            String(validating: bytes, as: UTF8.self) != nil
        else { throw Problem(path, "must hold a password in one line, and nothing else") }
        return Secret(bytes).locked()
    }

    /// The size limit for keys and passwords.
    private static let largestSecret = 64 << 10

    private static func requirePrivate(_ path: String) throws(Problem) {
        var state = stat()
        guard stat(path, &state) == 0 else { throw Problem(path) }
        let others: mode_t = Credentials.contains(path) ? 0o037 : 0o077
        guard state.st_mode & others == 0 else {
            throw Problem(
                path, "can be read by others than its owner; chmod 600 it, and replace it if others have had access")
        }
    }

    /// The time at which the content was last changed.
    static func modified(_ path: String) throws(Problem) -> Timestamp {
        var state = stat()
        guard stat(path, &state) == 0 else { throw Problem(path) }
        return Timestamp(seconds: Int64(state.st_mtim.tv_sec))
    }

    /// Whether users other than its owner can read it.
    public static func isReadableByOthers(_ path: String) -> Bool {
        var state = stat()
        return stat(path, &state) == 0 && state.st_mode & 0o044 != 0
    }

    /// Writes a file that must not exist yet. When this returns, the file is on the disk; after an
    /// error it does not exist.
    public static func create(_ path: String, _ bytes: [UInt8], mode: mode_t) throws(Problem) {
        try create(path, bytes, mode: mode, owner: nil)
    }

    /// - Parameter owner: the owner and the group of the file; nil for those of the process. The file gets
    ///   them by its descriptor: who can write to the directory may put a link in its place meanwhile.
    private static func create(
        _ path: String, _ bytes: [UInt8], mode: mode_t, owner: (user: uid_t, group: gid_t)?
    ) throws(Problem) {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard file >= 0 else { throw Problem(path) }
        defer { close(file) }
        guard writeAll(bytes, to: file) else {
            let problem = Problem(path)
            unlink(path)
            throw problem
        }
        // The umask of the process may have removed permissions.
        guard owner.map({ fchown(file, $0.user, $0.group) == 0 }) ?? true, fchmod(file, mode) == 0, fsync(file) == 0
        else {
            let problem = Problem(path)
            unlink(path)
            throw problem
        }
    }

    /// Writes all bytes to an open file. Returns false, with `errno`, if that fails.
    private static func writeAll(_ bytes: [UInt8], to file: Int32) -> Bool {
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
            if count >= 0 {
                written += count
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }

    /// Appends to a file, and creates it, readable by its owner only, if it does not exist.
    public static func append(_ bytes: [UInt8], to path: String) throws(Problem) {
        let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Problem(path) }
        defer { close(file) }
        guard writeAll(bytes, to: file) else { throw Problem(path) }
    }

    /// Appends to a file as `append` does. When this returns, the bytes are on the disk.
    ///
    /// - Returns: whether the file did not exist.
    static func appendDurably(_ bytes: [UInt8], to path: String) throws(Problem) -> Bool {
        let isNew = !exists(path)
        try append(bytes, to: path)
        let file = open(path, O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { throw Problem(path) }
        defer { close(file) }
        guard fdatasync(file) == 0 else { throw Problem(path) }
        // The account may not read the directory. Then the name is durable a bit later.
        if isNew { try? sync(directory: directory(of: path)) }
        return isNew
    }

    /// Writes a file, or replaces it. A reader sees the old file or the new one, never a part.
    public static func replace(_ path: String, _ bytes: [UInt8], mode: mode_t) throws(Problem) {
        try put(path, bytes, mode: mode, owner: nil)
    }

    /// Replaces an existing file in the same way. The new file keeps its owner and permissions. If
    /// the path is a symbolic link, its target is replaced.
    public static func rewrite(_ path: String, _ bytes: [UInt8]) throws(Problem) {
        guard let resolved = realpath(path, nil) else { throw Problem(path) }
        defer { free(resolved) }
        let target = String(cString: resolved)
        var state = stat()
        guard stat(target, &state) == 0 else { throw Problem(path) }
        // Only root may change the owner, so it is changed only if it differs.
        let isOwn = state.st_uid == geteuid() && state.st_gid == getegid()
        try put(target, bytes, mode: state.st_mode & 0o7777, owner: isOwn ? nil : (state.st_uid, state.st_gid))
    }

    private static func put(
        _ path: String, _ bytes: [UInt8], mode: mode_t, owner: (user: uid_t, group: gid_t)?
    ) throws(Problem) {
        // The process id makes this name unique among running processes. A file that a crash left
        // under it is removed.
        let fresh = "\(path).\(getpid())"
        unlink(fresh)
        try create(fresh, bytes, mode: mode, owner: owner)
        guard rename(fresh, path) == 0 else {
            let problem = Problem(path)
            unlink(fresh)
            throw problem
        }
        try sync(directory: directory(of: path))
    }

    /// Returns the names in a directory, sorted.
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

    /// Makes the entries of a directory durable.
    public static func sync(directory: String) throws(Problem) {
        let file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard file >= 0 else { throw Problem(directory) }
        defer { close(file) }
        guard fsync(file) == 0 else { throw Problem(directory) }
    }

    /// Returns true if it created the directory, false if the directory existed.
    public static func makeDirectory(_ path: String, mode: mode_t) throws(Problem) -> Bool {
        if mkdir(path, mode) == 0 { return true }
        let number = errno
        var state = stat()
        if number == EEXIST, stat(path, &state) == 0, state.st_mode & S_IFMT == S_IFDIR { return false }
        throw Problem(path, errno: number)
    }

    /// Creates a directory, and all missing directories above it.
    public static func makeDirectories(_ path: String, mode: mode_t) throws(Problem) {
        let above = directory(of: path)
        if above != path, !exists(above) { try makeDirectories(above, mode: mode) }
        _ = try makeDirectory(path, mode: mode)
    }

    /// Whether this process may read the file.
    public static func isReadable(_ path: String) -> Bool { access(path, R_OK) == 0 }

    public static func exists(_ path: String) -> Bool {
        var state = stat()
        return lstat(path, &state) == 0
    }

    public static func remove(_ path: String) { unlink(path) }
    public static func removeDirectory(_ path: String) { rmdir(path) }

    /// Returns `path` if it is absolute, otherwise the path inside `directory`.
    public static func resolve(_ path: String, in directory: String) -> String {
        path.hasPrefix("/") || directory.isEmpty
            ? path : directory.hasSuffix("/") ? directory + path : "\(directory)/\(path)"
    }

    /// Returns the directory that contains a file.
    public static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
