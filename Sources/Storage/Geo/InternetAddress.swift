import CLinux
import Glibc

/// An IPv4 or IPv6 address, parsed from text for a lookup.
struct InternetAddress {
    private enum Form {
        case four(sockaddr_in)
        case six(sockaddr_in6)
    }

    private var form: Form

    /// Parses an address; nil if the text is not one. An IPv4-mapped IPv6 address
    /// (`::ffff:192.0.2.1`) becomes the IPv4 address.
    init?(_ text: String) {
        // C would read only the text before a zero byte.
        guard !text.utf8.contains(0) else { return nil }
        var four = sockaddr_in()
        four.sin_family = sa_family_t(AF_INET)
        if inet_pton(AF_INET, text, &four.sin_addr) == 1 {
            form = .four(four)
            return
        }
        var six = sockaddr_in6()
        six.sin6_family = sa_family_t(AF_INET6)
        guard inet_pton(AF_INET6, text, &six.sin6_addr) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: &six.sin6_addr) { Array($0) }
        if bytes.starts(with: Self.mapped) {
            withUnsafeMutableBytes(of: &four.sin_addr) { $0.copyBytes(from: bytes.suffix(4)) }
            form = .four(four)
        } else {
            form = .six(six)
        }
    }

    private static let mapped: [UInt8] = Array(repeating: 0, count: 10) + [0xff, 0xff]

    mutating func withPointer<Value>(_ body: (UnsafePointer<sockaddr>) -> Value) -> Value {
        switch form {
        case .four(var address): Self.rebound(&address, body)
        case .six(var address): Self.rebound(&address, body)
        }
    }

    private static func rebound<Address, Value>(
        _ address: inout Address, _ body: (UnsafePointer<sockaddr>) -> Value
    ) -> Value {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0) }
        }
    }
}
