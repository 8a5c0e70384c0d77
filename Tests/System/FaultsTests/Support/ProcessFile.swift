import Glibc
import TestSupport

/// The kernel's data about a running relay.
extension RunningRelay {
    /// The resident memory in bytes.
    var residentBytes: Int {
        get throws {
            let words = try TextFile.read("/proc/\(pid)/statm").split(separator: " ")
            guard words.count > 1, let pages = Int(words[1]) else {
                throw Unexpected(text: "/proc/\(pid)/statm")
            }
            return pages * sysconf(Int32(_SC_PAGESIZE))
        }
    }

    var openDescriptors: Int { TemporaryDirectory.names(in: "/proc/\(pid)/fd").count }

    /// Sets a limit of the running process, as `prlimit(1)` names it; the hard limit stays.
    func limit(_ what: String, to value: String) async throws {
        let done = try await Child.run("prlimit", ["--pid", "\(pid)", "--\(what)=\(value):"])
        guard done.status == 0 else { throw Unexpected(text: done.errors) }
    }
}

struct Unexpected: Error, CustomStringConvertible {
    let text: String
    var description: String { "not as expected: \(text)" }
}
