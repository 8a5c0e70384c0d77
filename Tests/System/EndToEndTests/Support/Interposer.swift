import CLinux
import EventLoop
import Glibc
import Synchronization
import TestSupport

/// A proxy in the middle of every connection through its port. It records all bytes, and can change them.
final class Interposer: Sendable {
    enum Direction: Sendable { case toServer, toClient }

    /// A function that gets each piece with its direction and its number in that direction, and returns the bytes
    /// to send instead.
    typealias Tamper = @Sendable ([UInt8], Direction, _ number: Int) -> [UInt8]

    /// The bytes of one connection, in both directions.
    struct Passed: Sendable {
        var toServer: [UInt8] = []
        var toClient: [UInt8] = []
    }

    let port: UInt16
    private let target = Mutex<UInt16>(0)
    private let listener: Int32
    private let tamper = Mutex<Tamper?>(nil)
    private let connections = Mutex<[Passed]>([])

    init(to target: UInt16) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Wire.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, $0, &size) == 0
            }
        }
        guard isListening else { throw Child.Problem(description: "listen: errno \(errno)") }
        port = UInt16(bigEndian: address.sin_port)
        self.target.withLock { $0 = target }
        let acceptor = try WorkerThread(name: "interposer")
        acceptor.post { [weak self] in
            while true {
                let client = accept(descriptor, nil, nil)
                guard client >= 0, let self else { break }
                self.join(client)
            }
            close(descriptor)
        }
        acceptor.stop()
    }

    /// The accepting thread notices this and closes its sockets.
    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    /// Sets the function for all later pieces.
    func set(_ tamper: Tamper?) { self.tamper.withLock { $0 = tamper } }

    /// Sets the target of later connections.
    func lead(to port: UInt16) { target.withLock { $0 = port } }

    var passed: [Passed] { connections.withLock { $0 } }

    /// Two sockets, closed when both pumps have ended.
    private final class Pair: Sendable {
        let client: Int32
        let server: Int32

        init(_ client: Int32, _ server: Int32) {
            self.client = client
            self.server = server
        }

        func cut() {
            shutdown(client, Int32(SHUT_RDWR))
            shutdown(server, Int32(SHUT_RDWR))
        }

        deinit {
            close(client)
            close(server)
        }
    }

    private func join(_ client: Int32) {
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Wire.loopback(target.withLock { $0 })
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        let pair = Pair(client, server)
        let index = connections.withLock { list in
            list.append(Passed())
            return list.count - 1
        }
        guard isConnected, let up = try? WorkerThread(name: "interposer-up"),
            let down = try? WorkerThread(name: "interposer-down")
        else { return pair.cut() }
        up.post { self.pump(pair, from: pair.client, to: pair.server, .toServer, index) }
        down.post { self.pump(pair, from: pair.server, to: pair.client, .toClient, index) }
        up.stop()
        down.stop()
    }

    private func pump(_ pair: Pair, from source: Int32, to target: Int32, _ direction: Direction, _ index: Int) {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        var number = 0
        while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            let piece = Array(buffer[..<count])
            connections.withLock { list in
                switch direction {
                case .toServer: list[index].toServer += piece
                case .toClient: list[index].toClient += piece
                }
            }
            let tamper = tamper.withLock { $0 }
            var rest = (tamper?(piece, direction, number) ?? piece)[...]
            number += 1
            while !rest.isEmpty {
                let sent = rest.withUnsafeBytes { send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                guard sent > 0 else { return pair.cut() }
                rest = rest.dropFirst(sent)
            }
        }
        pair.cut()
    }
}

/// TLS as an attacker in the middle sees it (RFC 8446).
enum Records {
    /// Whether these bytes are TLS records throughout; the last one may be incomplete.
    static func areAll(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while rest.count >= 5 {
            let head = Array(rest.prefix(5))
            let length = Int(head[3]) << 8 | Int(head[4])
            guard (20...23).contains(head[0]), head[1] == 3, head[2] <= 3, length <= 16_384 + 256 else { return false }
            rest = rest.dropFirst(5 + length)
        }
        return true
    }

    /// Returns the position of an extension's type in a ClientHello.
    static func place(of type: UInt16, in hello: [UInt8]) -> Int? {
        func number(_ at: Int) -> Int { at + 1 < hello.count ? Int(hello[at]) << 8 | Int(hello[at + 1]) : 0 }
        // Skips the heads of record and handshake, version and random; then session, ciphers and compression.
        var at = 5 + 4 + 2 + 32
        guard hello.count > at, hello[0] == 22, hello[5] == 1 else { return nil }
        at += 1 + Int(hello[at])
        at += 2 + number(at)
        guard at < hello.count else { return nil }
        at += 1 + Int(hello[at])
        at += 2
        while at + 4 <= hello.count {
            if number(at) == Int(type) { return at }
            at += 4 + number(at + 2)
        }
        return nil
    }

    /// Returns the ClientHello with an unknown extension in place of the given one.
    static func without(_ type: UInt16, _ hello: [UInt8]) -> [UInt8] {
        guard let place = place(of: type, in: hello) else { return hello }
        var changed = hello
        changed[place] = 0xfa
        changed[place + 1] = 0xfa
        return changed
    }

    static let alpn: UInt16 = 16
    static let supportedVersions: UInt16 = 43

    static func contain(_ text: String, _ bytes: [UInt8]) -> Bool {
        let text = Array(text.utf8)
        return bytes.withUnsafeBytes { haystack in
            text.withUnsafeBytes { needle in
                guard let start = haystack.baseAddress, let wanted = needle.baseAddress else { return false }
                return memmem(start, haystack.count, wanted, needle.count) != nil
            }
        }
    }
}
