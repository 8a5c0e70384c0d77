import CLinux
import Daemon
import Glibc

/// The new file of a backup. It appears under its name only when it is complete, verified and on
/// the disk. Until then it is beside it, as `FILE.partial`. Only its owner can read it.
struct BackupFile {
    let path: String
    private let partial: String

    /// Requires that the file does not exist.
    init(_ path: String) throws(Failure) {
        self.path = path
        partial = "\(path).partial"
        guard !Files.exists(path) else { throw Self.taken(path) }
    }

    private static func taken(_ path: String) -> Failure {
        Failure(.conflict, "\(path) exists", next: "Nothing was written. Give the name of a file that does not exist.")
    }

    /// Makes the file, lets `copy` fill it, and gives it its name.
    func fill(_ copy: (String) throws(Failure) -> StoreCopy) throws(Failure) -> StoreCopy {
        let file = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            if errno == EEXIST {
                throw Failure(
                    .conflict, "\(partial) exists",
                    next: "Another backup is writing it, or was interrupted. Delete it in the second case.")
            }
            throw Failure(
                .failed, "\(partial): \(String(cString: strerror(errno)))",
                next: "Nothing was written. Choose a directory that exists, has room, and that you may write to.")
        }
        defer { close(file) }
        do throws(Failure) {
            let copied = try copy(partial)
            guard fsync(file) == 0 else { throw problem() }
            try publish()
            return copied
        } catch {
            for suffix in ["", "-journal", "-wal", "-shm"] { unlink(partial + suffix) }
            throw error
        }
    }

    /// Gives the file its name. `link` replaces no file that somebody has made meanwhile.
    private func publish() throws(Failure) {
        if link(partial, path) == 0 {
            unlink(partial)
        } else {
            guard errno != EEXIST else { throw Self.taken(path) }
            // Some file systems have no links.
            guard !Files.exists(path), rename(partial, path) == 0 else { throw problem() }
        }
        do throws(Files.Problem) {
            try Files.sync(directory: Files.directory(of: path))
        } catch {
            throw Failure(.failed, error.text, next: "The file may be gone after a power failure. Make it again.")
        }
    }

    private func problem() -> Failure {
        Failure(
            .failed, "\(path): \(String(cString: strerror(errno)))",
            next: "There is no copy. Check the disk, and run the command again.")
    }

    static func size(_ path: String) -> Int64 {
        var state = stat()
        return stat(path, &state) == 0 ? Int64(state.st_size) : 0
    }
}
