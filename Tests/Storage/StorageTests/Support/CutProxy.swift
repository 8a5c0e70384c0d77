import CLinux
import EventLoop
import Glibc
import Synchronization

/// A proxy between a store and its server that cuts the connection at a COMMIT when a test requests it.
final class CutProxy: Sendable {
    enum Cut: Sendable {
        /// The server never sees the COMMIT.
        case before
        /// The server has answered the COMMIT, and the answer is lost.
        case after
        /// The COMMIT is on its way to the server when `harm` runs.
        case during(harm: @Sendable () -> Void)
        /// The store loses its connection; the COMMIT reaches the server after `delay`.
        case late(delay: @Sendable () -> Void)
    }

    struct Problem: Error { let step: String }

    let port: UInt16
    private let target: UInt16
    private let listener: Int32
    private let cut = Mutex<Cut?>(nil)
    private let commits = Atomic<Int>(0)

    init(to target: UInt16) throws {
        self.target = target
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Self.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && listen(descriptor, 16) == 0
                    && getsockname(descriptor, $0, &size) == 0
            }
        }
        guard isListening else { throw Problem(step: "listen") }
        port = UInt16(bigEndian: address.sin_port)
        let acceptor = try WorkerThread(name: "proxy")
        acceptor.post { [listener] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                self.join(client)
            }
        }
        acceptor.stop()
    }

    /// Ends the accepting thread, which keeps the proxy alive.
    func close() { shutdown(listener, Int32(SHUT_RDWR)) }

    deinit { Glibc.close(listener) }

    /// Cuts the connection once, at the next COMMIT.
    func cutNextCommit(_ cut: Cut) { self.cut.withLock { $0 = cut } }

    var seenCommits: Int { commits.load(ordering: .relaxed) }

    /// The two sockets of a connection and its planned cut; closed when both pumps have ended.
    private final class Pair: Sendable {
        let client: Int32
        let server: Int32
        let swallowsAnswers = Atomic<Bool>(false)

        init(_ client: Int32, _ server: Int32) {
            self.client = client
            self.server = server
        }

        deinit {
            Glibc.close(client)
            Glibc.close(server)
        }

        func cut() {
            shutdown(client, Int32(SHUT_RDWR))
            shutdown(server, Int32(SHUT_RDWR))
        }
    }

    private func join(_ client: Int32) {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Self.loopback(target)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        let pair = Pair(client, server)
        guard isConnected, let up = try? WorkerThread(name: "proxy-up"),
            let down = try? WorkerThread(name: "proxy-down")
        else { return pair.cut() }
        up.post { self.pumpUp(pair) }
        down.post { Self.pumpDown(pair) }
        up.stop()
        down.stop()
    }

    private func pumpUp(_ pair: Pair) {
        Self.pump(from: pair.client, to: pair.server) { bytes in
            guard Self.holdsCommit(bytes) else { return true }
            commits.add(1, ordering: .relaxed)
            let cut = cut.withLock { cut in
                defer { cut = nil }
                return cut
            }
            switch cut {
            case nil: return true
            case .before: return false
            case .after:
                pair.swallowsAnswers.store(true, ordering: .releasing)
                return true
            case .during(let harm):
                pair.swallowsAnswers.store(true, ordering: .releasing)
                _ = Self.send(bytes, to: pair.server)
                harm()
                return false
            case .late(let delay):
                pair.swallowsAnswers.store(true, ordering: .releasing)
                shutdown(pair.client, Int32(SHUT_RDWR))
                delay()
                _ = Self.send(bytes, to: pair.server)
                return false
            }
        }
        pair.cut()
    }

    private static func pumpDown(_ pair: Pair) {
        pump(from: pair.server, to: pair.client) { _ in !pair.swallowsAnswers.load(ordering: .acquiring) }
        pair.cut()
    }

    /// Copies bytes until the stream ends or `mayPass` returns false.
    private static func pump(from source: Int32, to target: Int32, mayPass: (ArraySlice<UInt8>) -> Bool) {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0, mayPass(buffer[..<count]), send(buffer[..<count], to: target) else { return }
        }
    }

    private static func send(_ bytes: ArraySlice<UInt8>, to target: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes {
                Glibc.send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { return false }
            rest = rest.dropFirst(sent)
        }
        return true
    }

    /// Whether the bytes are a COM_QUERY packet with the word COMMIT. It is sent by itself, after all answers have
    /// been read.
    private static func holdsCommit(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.elementsEqual([7, 0, 0, 0, 3] + Array("COMMIT".utf8))
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        address.sin_port = port.bigEndian
        return address
    }
}
