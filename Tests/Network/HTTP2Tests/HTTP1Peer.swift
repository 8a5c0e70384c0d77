import Crypto
import EventLoop
import Glibc
import HTTP
import TestSupport
import Testing
import World

@testable import HTTP2
@testable import TLS

/// A client of HTTP/1.1 over TLS on a blocking socket, which sends raw bytes. It names no protocol
/// in its handshake.
final class HTTP1Peer {
    struct Answer: Equatable {
        let status: Int
        /// The header fields as they came, without the ends of their lines.
        let fields: [String]
        let body: String
        var closes: Bool { fields.contains("connection: close") }
    }

    /// The end of the connection, as this side has seen it.
    enum End {
        /// With a close_notify.
        case closed
        case failed
        /// The server sent nothing for longer than a test may wait.
        case late
    }

    let peer: RawPeer
    private let tls: TLSSession
    private var received: [UInt8] = []
    private(set) var end: End?

    /// Does the handshake.
    init(_ server: TestServer, certificate: IssuedCertificate? = nil, receiveBuffer: Int32? = nil) throws {
        peer = RawPeer(port: server.port, receiveBuffer: receiveBuffer)
        let context = try TLSClientContext(
            roots: .pem(server.certificates.websites.certificatePEM()),
            certificateChainPEM: certificate?.certificatePEM(), privateKeyPEM: certificate?.keyPEM(),
            application: .unnamed)
        tls = try TLSSession(client: context, fd: peer.fd, host: "localhost")
        guard case .complete = tls.handshake() else { throw SystemFailure("handshake", 0) }
    }

    /// Sends bytes, one record in each write. Returns false if the server takes no more.
    @discardableResult
    func send(_ bytes: some Collection<UInt8>) -> Bool {
        Array(bytes).withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty, case .bytes(let count) = tls.write(UnsafeRawBufferPointer(rebasing: rest)) {
                rest = rest.dropFirst(count)
            }
            return rest.isEmpty
        }
    }
    func send(_ text: String) { send(Array(text.utf8)) }

    /// Sends a request with `Host`, and with more lines if given.
    func request(_ method: String = "GET", _ path: String = "/", _ fields: String = "") {
        send("\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n")
    }

    /// Whether the server has sent something, or has closed the connection.
    var hasInput: Bool { !received.isEmpty || peer.hasInput }

    /// Changes the keys for sending.
    func updateKeys() -> Bool { tls.updateKeys() }

    /// Whether the server has reset the connection. Nothing is read, so that the server cannot
    /// write more.
    var isReset: Bool {
        var probe = pollfd(fd: peer.fd, events: 0, revents: 0)
        return poll(&probe, 1, 0) == 1
    }

    /// Returns when the server has read what other peers had sent before, and has run the timers
    /// that were due. The first answer may precede that; the second one comes from a later turn.
    func passTurn() {
        for _ in 0..<2 {
            request()
            #expect(answer()?.status == 200)
        }
    }

    /// Ends this side, and keeps the other open.
    func halfClose() {
        tls.shutdown()
        shutdown(peer.fd, Int32(SHUT_WR))
    }

    /// Returns the next answer, or nil at the end of the connection. An answer to HEAD has no body.
    func answer(toHead: Bool = false) -> Answer? {
        while true {
            if let answer = take(toHead) { return answer }
            guard read() else { return nil }
        }
    }

    /// Returns whether the server ends the connection, and sends nothing before.
    func isEnded() -> Bool {
        guard received.isEmpty, !read() else { return false }
        return end != .late
    }

    /// Returns the statuses of all answers until the connection ends, without 100. Other bytes and
    /// a connection that does not end are negative numbers.
    func statuses(heads: Int = 0) -> [Int] {
        var statuses: [Int] = []
        while let answer = answer(toHead: statuses.count < heads) {
            if answer.status != 100 { statuses.append(answer.status) }
        }
        if !received.isEmpty { statuses.append(-1) }
        if end == .late { statuses.append(-2) }
        return statuses
    }

    private func take(_ toHead: Bool) -> Answer? {
        let end = Array("\r\n\r\n".utf8)
        guard let at = received.indices.first(where: { received[$0...].starts(with: end) }) else { return nil }
        var lines = String(decoding: received[..<at], as: UTF8.self).split(separator: "\r\n").map(String.init)
        let line = lines.removeFirst().split(separator: " ")
        // Bytes before the line belong to no answer.
        let status = line.first == "HTTP/1.1" ? Int(line[1]) ?? 0 : 0
        let length = lines.first { $0.hasPrefix("content-length: ") }.flatMap { Int($0.dropFirst(16)) } ?? 0
        let (start, count) = (at + 4, toHead ? 0 : length)
        guard received.count >= start + count else { return nil }
        let body = String(decoding: received[start..<(start + count)], as: UTF8.self)
        received.removeFirst(start + count)
        return Answer(status: status, fields: lines, body: body)
    }

    private func read() -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 32_768, alignment: 1) { buffer in
            switch tls.read(into: buffer) {
            case .bytes(let count):
                received += buffer[..<count]
                return true
            case .closed: end = .closed
            case .failed: end = .failed
            case .incomplete: end = .late
            }
            return false
        }
    }
}

extension TestServer {
    /// A server that also speaks HTTP/1.1, as the daemon does.
    static func withHTTP1<Value>(
        limits: ServerLimits = .patient, admission: AdmissionControl? = nil, time: any TimeSource = SystemTime(),
        handler: @escaping @Sendable (Request) -> Reply, _ body: (TestServer) async throws -> Value
    ) async throws -> Value {
        try await with(
            limits: limits, application: .http, admission: admission,
            origin: WebAddress(secure: true, host: "localhost", port: nil), time: time, handler: handler, body)
    }

    /// Advances the clock of the server, and has it run the timers that are due then.
    func pass(_ duration: Duration, of time: TestTime) async {
        time.advance(by: duration)
        await loop.perform {}
    }

    /// Returns when the server has this number of connections.
    func hasConnections(_ count: Int) async {
        while await loop.perform({ server.value.connectionCount }) != count { await Task.yield() }
    }
}
