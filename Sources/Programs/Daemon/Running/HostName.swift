import Glibc

/// The name of this machine, by which an operator tells relays apart.
enum HostName {
    /// The name that the kernel has; `unknown` if it cannot be read.
    static var current: String {
        var name = [CChar](repeating: 0, count: Int(HOST_NAME_MAX) + 1)
        guard gethostname(&name, name.count) == 0 else { return "unknown" }
        return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
