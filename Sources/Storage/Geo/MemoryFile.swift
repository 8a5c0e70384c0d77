import CLinux
import Glibc

/// A copy of a file in an anonymous file in memory, which nobody else can change.
///
/// libmaxminddb maps the file that it opens. If a mapped file is truncated, a process that reads it
/// is killed. An operator who copies a new database over the old one would therefore end the relay.
final class MemoryFile {
    private let descriptor: Int32

    /// The maximum size in bytes; no database of places is larger.
    private static let largest = 1 << 30

    init(copying path: String) throws(PlaceFinder.Fault) {
        let source = open(path, O_RDONLY | O_CLOEXEC)
        guard source >= 0 else { throw Self.fault(path) }
        defer { close(source) }
        var state = stat()
        guard fstat(source, &state) == 0 else { throw Self.fault(path) }
        guard state.st_mode & S_IFMT == S_IFREG else { throw PlaceFinder.Fault(path: path, reason: "is not a file") }
        descriptor = memfd_create("places", UInt32(MFD_CLOEXEC | MFD_ALLOW_SEALING))
        guard descriptor >= 0 else { throw Self.fault(path) }
        try copy(source, path)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The path with which it can be opened as long as this object lives.
    var path: String { "/proc/self/fd/\(descriptor)" }

    private func copy(_ source: Int32, _ path: String) throws(PlaceFinder.Fault) {
        var chunk = [UInt8](repeating: 0, count: 1 << 20)
        var total = 0
        while true {
            let count = read(source, &chunk, chunk.count)
            if count == 0 { break }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw Self.fault(path)
            }
            total += count
            guard total <= Self.largest else {
                throw PlaceFinder.Fault(path: path, reason: "is larger than 1 GiB, the limit for a database of places")
            }
            var written = 0
            while written < count {
                let some = chunk[written..<count].withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
                guard some > 0 || errno == EINTR else { throw Self.fault(path) }
                written += max(0, some)
            }
        }
        guard total > 0 else { throw PlaceFinder.Fault(path: path, reason: "is empty") }
    }

    private static func fault(_ path: String) -> PlaceFinder.Fault {
        PlaceFinder.Fault(path: path, reason: String(cString: strerror(errno)))
    }
}
