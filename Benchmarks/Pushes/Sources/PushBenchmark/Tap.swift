import EventLoop
import Glibc
import Synchronization

/// A thread between the sender and the service that observes the bytes. It also receives bare
/// writes.
final class Tap: Sendable {
    let port: UInt16
    private let barePort: UInt16
    private let target: UInt16
    private let listeners: (sender: Int32, bare: Int32)
    private let sight = Mutex<(armed: Bool, at: Double, bytes: Int)>((false, 0, 0))
    private let seenOnce = Semaphore()

    init(to target: UInt16) throws {
        self.target = target
        let (sender, bare) = (try Self.listening(), try Self.listening())
        listeners = (sender.fd, bare.fd)
        port = sender.port
        barePort = bare.port
        try WorkerThread(name: "tap").post { [self] in pass() }
    }

    /// Observes the next bytes.
    func listen() { sight.withLock { $0.armed = true } }

    /// Waits for the observed bytes. Returns the time of their arrival, and their number.
    func seen() -> (at: Double, bytes: Int) {
        seenOnce.wait()
        return sight.withLock { ($0.at, $0.bytes) }
    }

    func bareConnection() throws -> Int32 { try Self.connected(to: barePort) }

    private func pass() {
        let client = accept(listeners.sender, nil, nil)
        guard client >= 0, let service = try? Self.connected(to: target) else { return }
        noDelay(client)
        let bare = accept(listeners.bare, nil, nil)
        var ends = [client, service, bare].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        var buffer = [UInt8](repeating: 0, count: 65536)
        while poll(&ends, nfds_t(ends.count), -1) > 0 {
            for index in ends.indices where ends[index].revents != 0 {
                let count = buffer.withUnsafeMutableBytes { read(ends[index].fd, $0.baseAddress, $0.count) }
                let moment = now()
                guard count > 0 else { return }
                if index != 1 { note(moment, count) }
                if index < 2 {
                    _ = buffer.withUnsafeBytes { write(ends[1 - index].fd, $0.baseAddress, count) }
                }
            }
        }
    }

    private func note(_ moment: Double, _ bytes: Int) {
        let isMeant = sight.withLock { sight in
            guard sight.armed else { return false }
            sight = (false, moment, bytes)
            return true
        }
        if isMeant { seenOnce.signal() }
    }

    private static func listening() throws -> (fd: Int32, port: UInt16) {
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(fd, address, length) == 0 && Glibc.listen(fd, 1) == 0 && getsockname(fd, address, &length) == 0
            }
        }
        guard bound else { throw Fault("cannot listen") }
        return (fd, UInt16(bigEndian: address.sin_port))
    }

    private static func connected(to port: UInt16) throws -> Int32 {
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = loopback(port)
        let isConnected = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else { throw Fault("cannot connect to port \(port)") }
        noDelay(fd)
        return fd
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }
}

private func noDelay(_ fd: Int32) { Socket.setNoDelay(fd) }

/// A counting semaphore.
final class Semaphore: Sendable {
    private let ends: (read: Int32, write: Int32)

    init() {
        var pair: [Int32] = [0, 0]
        guard pipe(&pair) == 0 else { preconditionFailure("no pipe") }
        ends = (pair[0], pair[1])
    }

    func signal() {
        var byte: UInt8 = 1
        _ = write(ends.write, &byte, 1)
    }

    func wait() {
        var byte: UInt8 = 0
        _ = read(ends.read, &byte, 1)
    }
}
