import Glibc
import Storage

/// The lock of a relay on its SQLite store. Two relays on one file would take each other's work:
/// each declares the other one dead, and pushes go out twice.
///
/// It is a lock on a file beside the database (`flock`), which the kernel releases when the process
/// ends in any way. `twoefay` and `sqlite3` do not take it, so they work beside a running relay.
/// The file stays; it holds the process id of the last relay.
final class StoreLock: Sendable {
    private let fd: Int32

    /// Takes the lock of this store. Returns nil for stores that relays share.
    init?(_ url: StorageURL) throws(Failure) {
        guard case .sqlite(let path) = url else { return nil }
        let file = "\(path).lock"
        fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard fd >= 0 else {
            throw Failure(
                .failed, "\(file): \(String(cString: strerror(errno)))",
                next: "The relay must be able to write files in the directory of its store.")
        }
        guard flock(fd, LOCK_EX | LOCK_NB) == 0 else {
            let holder = Self.holder(fd)
            close(fd)
            throw Failure(
                .conflict, "\(url) is in use by another relay\(holder.map { ", process \($0)" } ?? "")",
                next: "Stop that relay first. Several relays can share a store in MariaDB.")
        }
        let id = "\(getpid())\n"
        ftruncate(fd, 0)
        pwrite(fd, id, id.utf8.count, 0)
    }

    deinit { close(fd) }

    /// Returns the process id that the holder of the lock wrote.
    private static func holder(_ fd: Int32) -> Int? {
        var text = [UInt8](repeating: 0, count: 16)
        let count = pread(fd, &text, text.count, 0)
        return Int(String(decoding: text.prefix(max(0, count)).filter { $0 != 0x0a }, as: UTF8.self))
    }
}
