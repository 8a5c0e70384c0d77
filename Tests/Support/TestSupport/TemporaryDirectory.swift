import CLinux
import Daemon
import Glibc

/// A temporary directory of a test, which is removed with its content when the test releases it.
public final class TemporaryDirectory: Sendable {
    public let path: String

    public init() throws { path = try Self.make("test") }

    /// Makes a directory that the caller removes.
    static func make(_ name: String) throws -> String {
        let wished = getenv("TMPDIR").map { String(cString: $0) } ?? ""
        // The path of a Unix socket in it may have at most 107 bytes.
        let parent = wished.isEmpty || wished.utf8.count > 60 ? "/tmp" : wished
        var template = Array("\(parent)/twoefay-\(name)-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Child.Problem(description: "mkdtemp: errno \(errno)") }
        return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { Self.remove(path) }

    /// Returns the path of an entry.
    public func callAsFunction(_ name: String) -> String { "\(path)/\(name)" }

    /// The names of its entries, sorted.
    public var names: [String] { Self.names(in: path) }

    public static func names(in path: String) -> [String] { (try? Files.names(in: path)) ?? [] }

    /// Returns the permissions of a file; 0 if there is none.
    public static func mode(of path: String) -> mode_t {
        var state = stat()
        return stat(path, &state) == 0 ? state.st_mode & 0o7777 : 0
    }

    private static func remove(_ path: String) {
        for name in names(in: path) {
            let entry = "\(path)/\(name)"
            if unlink(entry) != 0 { remove(entry) }
        }
        rmdir(path)
    }
}
