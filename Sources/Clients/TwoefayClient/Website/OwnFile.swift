import Glibc

/// Reads the files that the operator gave to the website.
enum OwnFile {
    /// The size limit. A chain of certificates is much smaller.
    private static let largest = 1 << 20

    static func read(_ path: String) throws(CallFault) -> [UInt8] {
        guard let file = fopen(path, "re") else { throw .unable("\(path): \(String(cString: strerror(errno)))") }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = fread(&chunk, 1, chunk.count, file)
            guard count > 0 else {
                guard ferror(file) == 0 else { throw .unable("\(path): \(String(cString: strerror(errno)))") }
                return bytes
            }
            bytes += chunk[..<count]
            guard bytes.count <= largest else { throw .unable("\(path) is larger than 1 MiB") }
        }
    }
}
