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

    /// The directory with the programs of the last package (`TWOEFAY_PREVIOUS`), from which tests of
    /// updates start; nil: they start from these programs, with the tables of that package.
    public static var previous: String? { getenv("TWOEFAY_PREVIOUS").map { String(cString: $0) } }

    /// Returns the path of the program in another directory; nil: the one that was built.
    public func path(in directory: String?) throws -> String {
        if let directory { "\(directory)/\(rawValue)" } else { try path }
    }

    public func callAsFunction(_ arguments: String..., in directory: String? = nil) async throws -> Child.Ended {
        try await Child.run(path, arguments, in: directory)
    }
}
