import Daemon
import Glibc

/// A temporary directory of this run, accessible to its owner only.
struct ScratchDirectory {
    let path: String

    init() throws(Failure) {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? ""
        var template = Array("\(parent.isEmpty ? "/tmp" : parent)/twoefay-demo-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Failure(
                .failed, "a temporary directory cannot be created: \(String(cString: strerror(errno)))",
                next: "Set TMPDIR to a directory that you can write to. Without TMPDIR it is /tmp.")
        }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    func callAsFunction(_ name: String) -> String { "\(path)/\(name)" }

    func remove() { Self.remove(path) }

    private static func remove(_ path: String) {
        for name in (try? Files.names(in: path)) ?? [] {
            let entry = "\(path)/\(name)"
            // A symbolic link is removed and never followed.
            if unlink(entry) != 0 { remove(entry) }
        }
        rmdir(path)
    }
}
