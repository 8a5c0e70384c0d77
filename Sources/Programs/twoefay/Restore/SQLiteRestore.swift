import CLinux
import Daemon
import Glibc
import Storage

/// Puts a copy in the place of a SQLite store.
///
/// The copy is made and voided beside the store, and then takes its name. So an interrupted run has
/// changed nothing, and the next one begins again. The former store is never deleted.
struct SQLiteRestore: RestorePlace {
    let path: String
    let file: RestoredFile
    let progress: ProgressLines

    /// The database goes first: a relay starts with no store that is missing, but would start with
    /// one whose log is gone.
    private static let suffixes = ["", "-wal", "-shm", "-journal"]

    var consequence: String {
        Files.exists(path) ? "The former store is kept as \(former)." : "There is no store at present."
    }

    /// The new store until it is complete.
    private var unfinished: String { "\(path).restoring" }

    /// The name of the former store: the first one that is free. If an interrupted run has moved the
    /// database but not its log, the log belongs to the last one.
    private var former: String {
        var number = 1
        while Files.exists("\(path).before-restore-\(number)") { number += 1 }
        let isLogLeft = !Files.exists(path) && Self.suffixes.contains { Files.exists(path + $0) }
        return "\(path).before-restore-\(isLogLeft ? max(1, number - 1) : number)"
    }

    private static let stopFirst = "The store was not changed. Stop that relay, then run the command again."

    func check(_ settings: Settings) throws(Failure) {
        // A relay that runs has the lock. It is free again when this object is gone.
        if Files.exists(path) { _ = try StoreLock(.sqlite(path: path), next: Self.stopFirst) }
        guard Files.resolve(file.path, in: "/") != path else {
            throw Failure(.usage, "\(path) is the store itself", next: "Nothing was changed. Name the copy.")
        }
    }

    func restore(
        _ settings: Settings, void: (StorageURL) throws(Failure) -> Void
    ) throws(Failure) -> String? {
        // Held until the former store has another name.
        let lock = Files.exists(path) ? try StoreLock(.sqlite(path: path), next: Self.stopFirst) : nil
        defer { withExtendedLifetime(lock) {} }
        for suffix in Self.suffixes { unlink(unfinished + suffix) }
        do throws(Files.Problem) {
            try Files.create(unfinished, [], mode: 0o600)
        } catch {
            throw Failure(
                .failed, error.text,
                next: "Nothing was changed. Make room in the directory of the store, and let this account write to it.")
        }
        do throws(SQLiteBackup.Fault) {
            _ = try SQLiteBackup.copy(file.path, to: unfinished) { done, all in
                progress.show(Int64(done), of: Int64(all), percent: "copied")
            }
        } catch {
            throw Failure(.failed, error.reason, next: "The store was not changed. Try an earlier copy.")
        }
        let url = StorageURL.sqlite(path: unfinished)
        // The copy may be of an earlier version.
        try settings.openStore(.migrate, at: url).close()
        try void(url)
        do throws(SQLiteBackup.Fault) {
            try SQLiteBackup.settle(unfinished)
        } catch {
            throw Failure(.failed, error.reason, next: "The store was not changed. Run the command again.")
        }
        return try putInPlace()
    }

    /// Gives the former store and its log another name, and the new one its name.
    private func putInPlace() throws(Failure) -> String? {
        let former = former
        var isMoved = false
        for suffix in Self.suffixes where Files.exists(path + suffix) {
            guard !Files.exists(former + suffix) else {
                throw Failure(
                    .failed, "\(former)\(suffix) exists already",
                    next: "It may have the last changes of a former store. Move it away, and run the command again.")
            }
            guard rename(path + suffix, former + suffix) == 0 else { throw problem("\(path)\(suffix)") }
            isMoved = true
        }
        adoptOwner()
        guard rename(unfinished, path) == 0 else { throw problem(unfinished) }
        do throws(Files.Problem) {
            try Files.sync(directory: Files.directory(of: path))
        } catch {
            throw Failure(
                .failed, error.text, next: "The store is in its place, but may be gone after a power failure.")
        }
        return isMoved || Files.exists(former) ? former : nil
    }

    /// Gives the new store the owner of the directory, if this is root: the relay has another account.
    private func adoptOwner() {
        var state = stat()
        guard geteuid() == 0, stat(Files.directory(of: path), &state) == 0 else { return }
        // Not through a link that the relay's account may have put there.
        _ = lchown(unfinished, state.st_uid, state.st_gid)
    }

    private func problem(_ path: String) -> Failure {
        Failure(
            .failed, "\(path): \(String(cString: strerror(errno)))",
            next: "Correct this, and run the command again. The former store is kept.")
    }
}
