import Daemon
import FakeAPNs
import Glibc

/// A control file, and its contents when it was read last.
struct ControlFile {
    let path: String
    private(set) var control = Control()
    private var mark: Mark

    /// The attributes by which a change is detected, whether the file is written or replaced.
    private struct Mark: Equatable {
        var inode: UInt = 0
        var size = 0
        var seconds = 0
        var nanoseconds = 0

        init(_ path: String) {
            var state = stat()
            guard stat(path, &state) == 0 else { return }
            inode = UInt(state.st_ino)
            size = Int(state.st_size)
            seconds = state.st_mtim.tv_sec
            nanoseconds = state.st_mtim.tv_nsec
        }
    }

    init(_ path: String) throws(Failure) {
        self.path = path
        mark = Mark(path)
        try read()
    }

    func hasChanged() -> Bool { Mark(path) != mark }

    /// Reads the file. After a failure the earlier contents stay in force, and the failure is not
    /// reported again until the file changes again.
    mutating func read() throws(Failure) {
        // The mark is taken first, so that a write during the read is detected at the next check.
        mark = Mark(path)
        let bytes: [UInt8]
        do throws(Files.Problem) { bytes = try Files.read(path) } catch {
            throw Failure(.notFound, error.text, next: "To create one: twoefay fake-apns --example > \(path)")
        }
        do throws(ControlReader.Problems) { control = try ControlReader.read(bytes, file: path) } catch {
            throw Failure(
                .failed, error.description, next: "'twoefay fake-apns --example' prints a valid one with explanations.")
        }
    }
}
