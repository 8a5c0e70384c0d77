import CLinux
import Glibc
import World

/// A free port, reserved for this test. The kernel does not use it for outgoing connections, and no
/// other test of this machine gets it while this object exists.
public final class FreePort: Sendable {
    public let port: UInt16
    /// The socket whose name is the reservation. The kernel releases it when the process ends in
    /// any way.
    private let reservation: Int32

    public init() throws {
        for _ in 0..<100 {
            let bytes = SystemRandomness().bytes(2)
            let port = 10_000 + (UInt16(bytes[0]) << 8 | UInt16(bytes[1])) % 22_000
            guard port != KannelSMSC.bearerbox, let reservation = Self.reserve(port) else { continue }
            guard Self.isFree(port) else {
                close(reservation)
                continue
            }
            self.port = port
            self.reservation = reservation
            return
        }
        throw Child.Problem(description: "no port is free")
    }

    deinit { close(reservation) }

    private static func reserve(_ port: UInt16) -> Int32? {
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        // The leading zero makes it an abstract name, which is no file.
        let name = [0] + Array("twoefay-port-\(port)".utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let isOurs = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) == 0 }
        }
        if isOurs { return descriptor }
        close(descriptor)
        return nil
    }

    private static func isFree(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        } == 0
    }
}
