import Glibc

/// The built programs, which a test runs as an operator does.
public enum BuiltProgram: String {
    case twoefay
    case twoefayd
    case keys = "twoefay-keys"

    public var path: String {
        get throws {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = readlink("/proc/self/exe", &buffer, buffer.count)
            guard count > 0 else { throw Child.Problem(description: "/proc/self/exe: errno \(errno)") }
            let tests = String(decoding: buffer[..<count], as: UTF8.self)
            return tests.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/\(rawValue)"
        }
    }

    public func callAsFunction(_ arguments: String..., in directory: String? = nil) async throws -> Child.Ended {
        try await Child.run(path, arguments, in: directory)
    }
}
