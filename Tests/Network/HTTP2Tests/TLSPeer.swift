import EventLoop
import TestSupport

@testable import HTTP2
@testable import TLS

/// A TLS client on a blocking socket, which sends and reads raw frames.
final class TLSPeer {
    private let peer: RawPeer
    let tls: TLSSession
    private var scanner = FrameScanner(skipping: 0)
    private var received: [UInt8] = []

    /// Does the handshake.
    init(_ peer: RawPeer, _ server: TestServer) throws {
        self.peer = peer
        tls = try TLSSession(client: server.certificates.clientContext(nil), fd: peer.fd, host: "localhost")
        guard case .complete = tls.handshake() else { throw SystemFailure("handshake", 0) }
    }

    func send(_ bytes: [UInt8]) { _ = bytes.withUnsafeBytes { tls.write($0) } }

    /// Sends the preface and SETTINGS.
    func open() { send(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + RawPeer.frame(RawPeer.Kind.settings)) }

    /// Returns the type of the next frame whose type is in `types`, or nil at the end.
    func next(_ types: [UInt8]) -> UInt8? {
        while true {
            while !received.isEmpty {
                let type = received.removeFirst()
                if types.contains(type) { return type }
            }
            guard read() else { return nil }
        }
    }

    private func read() -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 32_768, alignment: 1) { buffer in
            guard case .bytes(let count) = tls.read(into: buffer) else { return false }
            var at = 0
            while let head = scanner.next(UnsafeRawBufferPointer(rebasing: buffer[..<count]), &at) {
                received.append(head.type)
            }
            return true
        }
    }
}
