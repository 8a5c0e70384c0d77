import CLinux
import Glibc

/// The service manager's end of `sd_notify`: a datagram socket that keeps the order of messages.
public final class NotifySocket: Sendable {
    /// The value of `NOTIFY_SOCKET`.
    public let address: String
    private let fd: Int32
    private let path: String?

    /// - Parameter path: the path of the socket; nil for a name in the abstract namespace.
    public init(path: String?) throws {
        self.path = path
        fd = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        // Without a limit, a program that never sends would hold the test's thread for ever.
        var limit = timeval(tv_sec: 300, tv_usec: 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let name = path ?? "@twoefay-test-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        address = name
        guard Self.with(name, { bind(fd, $0, $1) }) == 0 else {
            throw Child.Problem(description: "bind \(name): errno \(errno)")
        }
    }

    deinit {
        close(fd)
        if let path { unlink(path) }
    }

    /// Returns the next message, as its lines.
    public func next() throws -> [String] {
        var bytes = [UInt8](repeating: 0, count: 4096)
        var count = recv(fd, &bytes, bytes.count, 0)
        while count < 0 && errno == EINTR { count = recv(fd, &bytes, bytes.count, 0) }
        guard count >= 0 else { throw Child.Problem(description: "no message: errno \(errno)") }
        return String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Returns the next message that has a line with this beginning.
    public func next(_ beginning: String) throws -> [String] {
        while true {
            let message = try next()
            if message.contains(where: { $0.hasPrefix(beginning) }) { return message }
        }
    }

    /// Puts a message of the test into the queue, behind those that were sent before.
    public func mark(_ text: String) throws {
        let sender = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(sender) }
        let bytes = Array(text.utf8)
        let sent = Self.with(address) { sendto(sender, bytes, bytes.count, 0, $0, $1) == bytes.count ? 0 : -1 }
        guard sent == 0 else { throw Child.Problem(description: "sendto: errno \(errno)") }
    }

    private static func with(_ name: String, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(name.utf8)
        if bytes.first == UInt8(ascii: "@") { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let start = MemoryLayout<sockaddr_un>.size - MemoryLayout.size(ofValue: address.sun_path)
        let length = start + bytes.count + (bytes.first == 0 ? 0 : 1)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, socklen_t(length)) }
        }
    }
}
