import Glibc
import JSON
import TestSupport
import Testing

/// The programs as they were built beside the tests, run from outside as an operator runs them.
enum BuiltProgram: String {
    case twoefay
    case twoefayd

    var path: String {
        get throws {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = readlink("/proc/self/exe", &buffer, buffer.count)
            try #require(count > 0)
            let tests = String(decoding: buffer[..<count], as: UTF8.self)
            return tests.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/\(rawValue)"
        }
    }

    func callAsFunction(_ arguments: String..., in directory: String? = nil) async throws -> Child.Ended {
        try await Child.run(path, arguments, in: directory)
    }
}

extension Child.Ended {
    /// What was printed under `--json`, one value on one line.
    var json: JSONObject {
        get throws {
            let line = status == 0 ? output : errors
            try #require(line.hasSuffix("\n") && line.dropLast().contains("\n") == false, "not one line: \(line)")
            return try #require(try JSONReader.read(Array(line.utf8)).object)
        }
    }
}

/// An installation in a directory of its own.
struct Installed {
    let directory: TemporaryDirectory
    var settings: String { directory("relay/twoefay.yaml") }

    init(_ arguments: String...) async throws {
        directory = try TemporaryDirectory()
        let made = try await Child.run(
            try BuiltProgram.twoefay.path, ["init", directory("relay")] + arguments)
        try #require(made.status == 0, "\(made.errors)")
    }
}

func text(_ path: String) throws -> String {
    let file = try #require(fopen(path, "r"), "\(path)")
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var byte = getc(file)
    while byte != EOF {
        bytes.append(UInt8(truncatingIfNeeded: byte))
        byte = getc(file)
    }
    return String(decoding: bytes, as: UTF8.self)
}
