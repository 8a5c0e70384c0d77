import Glibc

/// Reads and writes whole files of a test.
public enum TextFile {
    public static func read(_ path: String) throws -> String { String(decoding: try bytes(path), as: UTF8.self) }

    public static func bytes(_ path: String) throws -> [UInt8] {
        guard let file = fopen(path, "r") else { throw problem(path) }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = fread(&chunk, 1, chunk.count, file)
            guard count > 0 else { return bytes }
            bytes += chunk[..<count]
        }
    }

    /// Writes a file that only its owner can read, as the programs require for keys.
    public static func write(_ text: String, to path: String) throws { try write(Array(text.utf8), to: path) }

    public static func write(_ bytes: [UInt8], to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw problem(path) }
        defer { close(descriptor) }
        guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { throw problem(path) }
    }

    private static func problem(_ path: String) -> Child.Problem {
        Child.Problem(description: "\(path): \(String(cString: strerror(errno)))")
    }
}

extension String {
    /// Sets a key in an annotated twoefay.yaml, as in `set("push.apns.topic", to:
    /// "com.example.app")`.
    public mutating func set(_ key: String, to value: String) throws {
        let path = key.split(separator: ".").map(String.init)
        var lines = split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        var depth = 0
        for (index, line) in lines.enumerated() {
            let indent = String(repeating: "  ", count: depth)
            let name = "\(indent)\(path[depth]):"
            if depth < path.count - 1 {
                if line == name { depth += 1 }
            } else if line.hasPrefix("\(name) ") || line.hasPrefix("\(indent)# \(path[depth]): ") {
                lines[index] = "\(name) \(value)"
                self = lines.joined(separator: "\n")
                return
            }
        }
        throw Child.Problem(description: "the settings have no \(key)")
    }
}
