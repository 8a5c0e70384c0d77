import CLinux
import Glibc

/// An IPv4 or IPv6 address and a port.
public struct SocketAddress: Sendable, CustomStringConvertible {
    private var storage: sockaddr_storage
    private let length: socklen_t

    init(_ address: UnsafePointer<sockaddr>, length: socklen_t) {
        storage = sockaddr_storage()
        self.length = length
        withUnsafeMutableBytes(of: &storage) { target in
            target.copyMemory(from: UnsafeRawBufferPointer(start: address, count: min(Int(length), target.count)))
        }
    }

    /// Parses an address; nil if `host` is a name, which `Resolver` resolves. `[::1]` and `::1` are
    /// the same.
    public init?(host: String, port: UInt16) {
        var text = Substring(host)
        if text.hasPrefix("["), text.hasSuffix("]") { text = text.dropFirst().dropLast() }
        let host = String(text)
        var four = sockaddr_in()
        if inet_pton(AF_INET, host, &four.sin_addr) == 1 {
            four.sin_family = sa_family_t(AF_INET)
            four.sin_port = port.bigEndian
            self = Self.wrap(&four)
            return
        }
        var six = sockaddr_in6()
        guard inet_pton(AF_INET6, host, &six.sin6_addr) == 1 else { return nil }
        six.sin6_family = sa_family_t(AF_INET6)
        six.sin6_port = port.bigEndian
        self = Self.wrap(&six)
    }

    /// Makes an address from its 4 or 16 bytes in network order; nil for another length.
    public init?(bytes: [UInt8], port: UInt16) {
        switch bytes.count {
        case 4:
            var four = sockaddr_in()
            withUnsafeMutableBytes(of: &four.sin_addr) { $0.copyBytes(from: bytes) }
            four.sin_family = sa_family_t(AF_INET)
            four.sin_port = port.bigEndian
            self = Self.wrap(&four)
        case 16:
            var six = sockaddr_in6()
            withUnsafeMutableBytes(of: &six.sin6_addr) { $0.copyBytes(from: bytes) }
            six.sin6_family = sa_family_t(AF_INET6)
            six.sin6_port = port.bigEndian
            self = Self.wrap(&six)
        default: return nil
        }
    }

    private static func wrap<Address>(_ address: inout Address) -> SocketAddress {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                SocketAddress($0, length: socklen_t(MemoryLayout<Address>.size))
            }
        }
    }

    /// Reads the local or remote address of a socket.
    static func read(_ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32) -> Self? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                body(address, &length) == 0 ? SocketAddress(address, length: length) : nil
            }
        }
    }

    package func withPointer<Value>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    public var family: Int32 { Int32(storage.ss_family) }

    public var port: UInt16 {
        withUnsafeBytes(of: storage) { bytes in
            switch family {
            case AF_INET: UInt16(bigEndian: bytes.loadUnaligned(as: sockaddr_in.self).sin_port)
            case AF_INET6: UInt16(bigEndian: bytes.loadUnaligned(as: sockaddr_in6.self).sin6_port)
            default: 0
            }
        }
    }

    /// The 4 or 16 bytes of the address in network order; empty for another family.
    package var bytes: [UInt8] {
        withUnsafeBytes(of: storage) { bytes in
            switch family {
            case AF_INET: withUnsafeBytes(of: bytes.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
            case AF_INET6: withUnsafeBytes(of: bytes.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
            default: []
            }
        }
    }

    /// The IPv4 address, if this is an IPv4 address in IPv6 form (RFC 4291 §2.5.5.2); otherwise the
    /// same address.
    public var unmapped: SocketAddress {
        let bytes = bytes
        guard bytes.count == 16, bytes.starts(with: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]) else { return self }
        return SocketAddress(bytes: Array(bytes[12...]), port: port) ?? self
    }

    /// The address without the port.
    public var host: String {
        withUnsafeBytes(of: storage) { bytes in
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            let size = socklen_t(text.count)
            let written: UnsafePointer<CChar>?
            switch family {
            case AF_INET:
                var address = bytes.loadUnaligned(as: sockaddr_in.self).sin_addr
                written = inet_ntop(AF_INET, &address, &text, size)
            case AF_INET6:
                var address = bytes.loadUnaligned(as: sockaddr_in6.self).sin6_addr
                written = inet_ntop(AF_INET6, &address, &text, size)
            default: return ""
            }
            return written == nil ? "" : String(decoding: text.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
        }
    }

    /// Whether it is the address of a Unix socket, which has no host and no port.
    public var isUnix: Bool { family == AF_UNIX }

    /// Whether only this machine can reach the address.
    public var isLoopback: Bool {
        withUnsafeBytes(of: storage) { bytes in
            switch family {
            case AF_INET: UInt32(bigEndian: bytes.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr) >> 24 == 127
            case AF_INET6:
                withUnsafeBytes(of: bytes.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { address in
                    address.last == 1 && address.dropLast().allSatisfy { $0 == 0 }
                }
            default: false
            }
        }
    }

    public var description: String { family == AF_INET6 ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
