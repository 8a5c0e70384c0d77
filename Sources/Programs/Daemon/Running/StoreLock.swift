import CLinux
import Glibc
import Storage

/// The lock of a relay on its SQLite store. Two relays on one file would take each other's work:
/// each declares the other one dead, and pushes go out twice.
///
/// It is a lock on the database file itself, so no other name of the file (a symbolic or hard link)
/// and no deletion of another file gets past it. It covers one byte far behind the largest database
/// that SQLite can write, so `twoefay` and `sqlite3`, which lock other bytes, work beside a running
/// relay. It belongs to the open file (`F_OFD_SETLK`), because a lock of the process would end when
/// SQLite closes its own descriptor of the file. The kernel releases it when the process ends in any
/// way.
///
/// A file beside the database names the process of the last relay, for the message only.
///
/// Invariant: this descriptor is opened before SQLite opens the file, and closed after. Closing it
/// earlier would end the locks of SQLite.
package final class StoreLock: Sendable {
    /// The byte that is locked. SQLite's databases end before 2^48.
    private static let byte: off_t = 1 << 60

    private let fd: Int32

    /// Takes the lock of this store. Returns nil for stores that relays share.
    ///
    /// - Parameter next: what to do if a relay has it.
    package init?(
        _ url: StorageURL, next: String = "Stop that relay first. Several relays can share a store in MariaDB."
    ) throws(Failure) {
        guard case .sqlite(let path) = url else { return nil }
        fd = open(path, O_RDWR | O_CLOEXEC)
        guard fd >= 0 else {
            let isMissing = errno == ENOENT
            throw Failure(
                isMissing ? .notFound : .failed, "\(url): \(String(cString: strerror(errno)))",
                next: isMissing
                    ? "If it was never created, 'twoefay --config FILE migrate' creates it."
                    : "The relay must be able to read and write its store.")
        }
        let note = Self.note(of: path)
        guard clinux_lock_byte(fd, Self.byte) == 0 else {
            let (reason, holder) = (errno, Self.holder(note))
            close(fd)
            guard reason == EAGAIN || reason == EACCES else {
                throw Failure(
                    .failed, "\(url): \(String(cString: strerror(reason)))",
                    next: "The file system of the store must support locks.")
            }
            throw Failure(
                .conflict, "\(url) is in use by another relay\(holder.map { ", process \($0)" } ?? "")",
                next: next)
        }
        Self.write(note)
    }

    deinit { close(fd) }

    /// The path of the file that names the process, beside the file that links lead to.
    private static func note(of path: String) -> String {
        var resolved = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
        guard realpath(path, &resolved) != nil else { return "\(path).lock" }
        return String(decoding: resolved.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) + ".lock"
    }

    private static func write(_ note: String) {
        let file = open(note, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { return }
        let id = "\(getpid())\n"
        Glibc.write(file, id, id.utf8.count)
        close(file)
    }

    /// Returns the process id that the holder of the lock wrote.
    private static func holder(_ note: String) -> Int? {
        let file = open(note, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var text = [UInt8](repeating: 0, count: 16)
        let count = read(file, &text, text.count)
        return Int(String(decoding: text.prefix(max(0, count)).filter { $0 != 0x0a }, as: UTF8.self))
    }
}
