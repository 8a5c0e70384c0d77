import CLinux
import Glibc
import TestSupport

/// A blocking socket, for bytes that no library would send. All its waits have a time limit.
final class Wire {
    let descriptor: Int32

    init(to port: UInt16) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var patience = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        var address = Self.loopback(port)
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else { throw Child.Problem(description: "connect: errno \(errno)") }
    }

    deinit { close(descriptor) }

    func send(_ bytes: [UInt8]) { _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
    func send(_ text: String) { send(Array(text.utf8)) }

    /// Returns all bytes until the other side closes; nil if it does not close in time.
    func rest() -> [UInt8]? {
        var all: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = recv(descriptor, &chunk, chunk.count, 0)
            if count > 0 { all += chunk[..<count] } else { return count == 0 || errno == ECONNRESET ? all : nil }
        }
    }

    /// Resets the connection: nothing more is sent, and unread bytes are dropped.
    func reset() {
        var now = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &now, socklen_t(MemoryLayout<linger>.size))
    }

    static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }
}

/// HTTP/2 frames made by hand (RFC 9113), with uncompressed header fields (RFC 7541).
enum Frames {
    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    static let settings = frame(4, 0, stream: 0)

    static func frame(_ type: UInt8, _ flags: UInt8, stream: UInt32, _ payload: [UInt8] = [], claimed: Int? = nil)
        -> [UInt8]
    {
        let length = claimed ?? payload.count
        let head = [UInt8(length >> 16 & 0xff), UInt8(length >> 8 & 0xff), UInt8(length & 0xff), type, flags]
        return head + withUnsafeBytes(of: stream.bigEndian) { Array($0) } + payload
    }

    /// - Parameter flags: 4 ends the header block, 1 the stream.
    static func headers(_ fields: [(String, String)], flags: UInt8, stream: UInt32 = 1) -> [UInt8] {
        frame(1, flags, stream: stream, block(fields))
    }

    static func block(_ fields: [(String, String)]) -> [UInt8] {
        var block: [UInt8] = []
        for (name, value) in fields {
            block.append(0x10)
            for text in [name, value] {
                block.append(UInt8(text.utf8.count))
                block += text.utf8
            }
        }
        return block
    }

    static func post(_ path: String, length: Int) -> [(String, String)] {
        [
            (":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", path),
            ("content-type", "application/json"), ("content-length", String(length)),
        ]
    }

    static func data(_ bytes: [UInt8], flags: UInt8 = 0, stream: UInt32 = 1) -> [UInt8] {
        frame(0, flags, stream: stream, bytes)
    }

    static func reset(stream: UInt32 = 1) -> [UInt8] { frame(3, 0, stream: stream, [0, 0, 0, 8]) }
}
