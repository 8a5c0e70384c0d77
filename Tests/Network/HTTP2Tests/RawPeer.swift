import CLinux
import Glibc

/// The time after which a blocked test fails. A passing test does not wait for it.
enum Patience {
    static let seconds = 120

    static func set(on fd: Int32) {
        var limit = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
}

/// A peer that sends raw frames over a plain, blocking socket.
final class RawPeer {
    struct Frame: Equatable {
        let type: UInt8
        let flags: UInt8
        let stream: UInt32
        let payload: [UInt8]
    }

    enum Kind {
        static let data: UInt8 = 0
        static let headers: UInt8 = 1
        static let priority: UInt8 = 2
        static let reset: UInt8 = 3
        static let settings: UInt8 = 4
        static let ping: UInt8 = 6
        static let goAway: UInt8 = 7
        static let windowUpdate: UInt8 = 8
        static let continuation: UInt8 = 9
    }

    static let endStream: UInt8 = 1
    static let acknowledgement: UInt8 = 1
    static let endHeaders: UInt8 = 4

    let fd: Int32
    private var pending: [UInt8] = []

    init(fd: Int32) {
        self.fd = fd
        Patience.set(on: fd)
    }

    /// Connects. `receiveBuffer` makes a peer with a small buffer, and `host` is its own address.
    convenience init(port: UInt16, receiveBuffer: Int32? = nil, from host: UInt32? = nil) {
        let fd = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        if let host {
            var own = sockaddr_in()
            own.sin_family = sa_family_t(AF_INET)
            own.sin_addr.s_addr = host.bigEndian
            let bound = withUnsafePointer(to: &own) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            precondition(bound == 0, "bind: errno \(errno)")
        }
        if var receiveBuffer {
            setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(fd, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        precondition(result == 0, "connect: errno \(errno)")
        self.init(fd: fd)
    }

    deinit { close(fd) }

    /// Sends the preface and SETTINGS.
    func open(settings: [UInt8] = []) {
        send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
        send(Kind.settings, payload: settings)
    }

    func acknowledgeSettings() { send(Kind.settings, flags: Self.acknowledgement) }

    /// Returns false if the peer has closed the connection or no longer reads.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    static func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, payload: [UInt8] = []) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags]
            + withUnsafeBytes(of: stream.bigEndian) { Array($0) } + payload
    }

    @discardableResult
    func send(_ type: UInt8, flags: UInt8 = 0, stream: UInt32 = 0, payload: [UInt8] = []) -> Bool {
        send(Self.frame(type, flags: flags, stream: stream, payload: payload))
    }

    /// GET or POST of / from the static table of HPACK, with `:authority: x`.
    static func requestHead(post: Bool = false, more: [UInt8] = []) -> [UInt8] {
        [post ? 0x83 : 0x82, 0x86, 0x84, 0x01, 0x01, UInt8(ascii: "x")] + more
    }

    func request(_ stream: UInt32, post: Bool = false, end: Bool = true) {
        send(
            Kind.headers, flags: Self.endHeaders | (end ? Self.endStream : 0), stream: stream,
            payload: Self.requestHead(post: post))
    }

    /// Returns true if a frame or the end of the connection has arrived.
    var hasInput: Bool {
        var probe = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        return !pending.isEmpty || poll(&probe, 1, 0) == 1
    }

    /// Returns the next frame, or nil if the connection has ended or no frame arrives in time.
    func next() -> Frame? {
        while true {
            if pending.count >= 9 {
                let length = Int(pending[0]) << 16 | Int(pending[1]) << 8 | Int(pending[2])
                if pending.count >= 9 + length {
                    let stream = pending[5..<9].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
                    let frame = Frame(
                        type: pending[3], flags: pending[4], stream: stream, payload: Array(pending[9..<9 + length]))
                    pending.removeFirst(9 + length)
                    return frame
                }
            }
            var buffer = [UInt8](repeating: 0, count: 65_536)
            let count = recv(fd, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            pending += buffer[..<count]
        }
    }

    /// Skips frames until one `matches`.
    func next(_ matches: (Frame) -> Bool) -> Frame? {
        while let frame = next() {
            if matches(frame) { return frame }
        }
        return nil
    }

    /// Skips frames until one has this type.
    func next(_ type: UInt8, where matches: (Frame) -> Bool = { _ in true }) -> Frame? {
        while let frame = next() {
            if frame.type == type, matches(frame) { return frame }
        }
        return nil
    }

    /// Returns the error code of the next GOAWAY, or nil if the connection ends without one.
    func goAwayCode() -> UInt32? {
        next(Kind.goAway).map { $0.payload[4..<8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } }
    }

    /// Returns true if the other side ends the connection, whatever it sends before.
    func isEnded() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(fd, &buffer, buffer.count, 0)
            if count > 0 { continue }
            return count == 0 || errno == ECONNRESET
        }
    }
}
