import EventLoop
import Glibc
import Synchronization
import World

/// A text message gateway, or another web server, over plain HTTP/1.1, which behaves well or badly
/// as its test requires.
public final class TestGateway: Sendable {
    public struct Asked: Sendable {
        public let method: String
        /// The path and query as they arrived.
        public let target: String
        /// The header fields, with names in lower case.
        public let fields: [String: String]
        public let body: String

        public var path: String { String(target.prefix { $0 != "?" }) }
        /// The decoded pairs of the query.
        public var query: [String: String] { Self.pairs(target.drop { $0 != "?" }.dropFirst(), plusIsSpace: false) }
        /// The decoded pairs of the body.
        public var form: [String: String] { Self.pairs(Substring(body), plusIsSpace: true) }

        private static func pairs(_ text: Substring, plusIsSpace: Bool) -> [String: String] {
            var pairs: [String: String] = [:]
            for pair in text.split(separator: "&") {
                let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
                    decoded($0, plusIsSpace: plusIsSpace)
                }
                pairs[parts[0]] = parts.count == 2 ? parts[1] : ""
            }
            return pairs
        }

        private static func decoded(_ text: Substring, plusIsSpace: Bool) -> String {
            var bytes: [UInt8] = []
            var rest = text.utf8
            while let byte = rest.popFirst() {
                if byte == UInt8(ascii: "%"),
                    let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
                {
                    bytes.append(value)
                    rest = rest.dropFirst(2)
                } else {
                    bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
                }
            }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    public enum Answer: Sendable {
        case status(Int, String = "", fields: [String] = [])
        /// Sends this text unchanged.
        case raw(String)
        /// Sends this text one byte at a time, and then nothing more.
        case slowly(String, pause: Duration)
        /// Reads the request, and never answers.
        case silence
        /// Closes the connection.
        case hangUp
    }

    private struct State {
        var asked: [Asked] = []
        var answer: @Sendable (Asked) -> Answer
        var waiting: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let group: LoopGroup
    private let state: Mutex<State>
    private let registry: LoopBound<ConnectionRegistry>
    public let host: String
    public let port: UInt16

    /// Starts a server.
    ///
    /// - Parameter host: an address of this machine.
    public init(host: String = "127.0.0.1", _ answer: @escaping @Sendable (Asked) -> Answer) async throws {
        self.host = host
        group = try LoopGroup.start(count: 1, time: SystemTime())
        state = Mutex(State(answer: answer))
        let loop = group.loops[0]
        (registry, port) = try await loop.perform {
            () async -> Result<(LoopBound<ConnectionRegistry>, UInt16), SystemFailure> in
            let registry = ConnectionRegistry(loop, host)
            do throws(SystemFailure) {
                let port = try registry.open(port: 0)
                return .success((LoopBound(registry, on: loop), port))
            } catch { return .failure(error) }
        }.get()
        let registry = registry
        await loop.perform { [weak self] in registry.value.answer = { asked in self?.take(asked) ?? .hangUp } }
    }

    deinit { group.stopAndJoin() }

    public var url: String { "http://\(host):\(port)" }
    /// The requests, in order of arrival.
    public var asked: [Asked] { state.withLock { $0.asked } }

    public func answer(_ answer: @escaping @Sendable (Asked) -> Answer) { state.withLock { $0.answer = answer } }

    /// Returns when this many requests have arrived.
    public func isAsked(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                guard state.asked.count < count else { return true }
                state.waiting.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    private func take(_ asked: Asked) -> Answer {
        let (answer, ready) = state.withLock { state in
            state.asked.append(asked)
            let count = state.asked.count
            let ready = state.waiting.filter { $0.count <= count }
            state.waiting.removeAll { $0.count <= count }
            return (state.answer, ready)
        }
        for waiting in ready { waiting.continuation.resume() }
        return answer(asked)
    }

    /// Closes the listener and all connections.
    public func goDown() async {
        let registry = registry
        await group.loops[0].perform { registry.value.close() }
    }

    /// Listens again on the same port.
    public func comeBack() async throws {
        let (registry, port) = (registry, port)
        try await group.loops[0].perform { () async -> Result<Void, SystemFailure> in
            do throws(SystemFailure) {
                _ = try registry.value.open(port: port)
                return .success(())
            } catch { return .failure(error) }
        }.get()
    }
}

/// The connections, which belong to the loop.
private final class ConnectionRegistry {
    private let loop: EventLoop
    private let host: String
    private var listener: Listener?
    private var watches: [Int32: (watch: DescriptorWatcher, heard: [UInt8], number: Int)] = [:]
    private var connections = 0
    var answer: (TestGateway.Asked) -> TestGateway.Answer = { _ in .hangUp }

    init(_ loop: EventLoop, _ host: String) { (self.loop, self.host) = (loop, host) }

    deinit { close() }

    func open(port: UInt16) throws(SystemFailure) -> UInt16 {
        guard let address = SocketAddress(host: host, port: port) else { throw SystemFailure("address", EINVAL) }
        let listener = try Listener(loop: loop, address: address)
        try listener.start(
            accepted: { [weak self] fd, _ in if let self { take(fd) } else { Glibc.close(fd) } }, exhausted: { _ in })
        self.listener = listener
        return listener.address.port
    }

    func close() {
        listener?.close()
        listener = nil
        for fd in Array(watches.keys) { end(fd) }
    }

    private func take(_ fd: Int32) {
        guard let watch = try? loop.watch(fd: fd, .read, { [weak self] _ in self?.read(fd) }) else {
            Glibc.close(fd)
            return
        }
        connections += 1
        watches[fd] = (watch, [], connections)
    }

    private func end(_ fd: Int32) {
        guard let (watch, _, _) = watches.removeValue(forKey: fd) else { return }
        watch.cancel()
        Glibc.close(fd)
    }

    private func read(_ fd: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(fd, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        guard count > 0 else {
            if count == 0 || errno != EAGAIN { end(fd) }
            return
        }
        watches[fd]?.heard += buffer[..<count]
        guard let asked = watches[fd].flatMap({ Self.request($0.heard) }) else { return }
        watches[fd]?.heard = []
        switch answer(asked) {
        case .silence: break
        case .hangUp: end(fd)
        case .raw(let text): say(text, fd)
        case .slowly(let text, let pause): say(Array(text.utf8)[...], fd, connection: number(of: fd), pause)
        case .status(let status, let body, let fields):
            let head = ["HTTP/1.1 \(status) Said", "content-length: \(body.utf8.count)"] + fields
            say(head.joined(separator: "\r\n") + "\r\n\r\n" + body, fd)
        }
    }

    private func number(of fd: Int32) -> Int? { watches[fd]?.number }

    /// Sends the bytes slowly, while the connection exists. A later connection may have the same
    /// descriptor, so the number of the connection is compared.
    private func say(_ bytes: ArraySlice<UInt8>, _ fd: Int32, connection: Int?, _ pause: Duration) {
        guard let connection, number(of: fd) == connection, let first = bytes.first else { return }
        _ = send(fd, [first], 1, Int32(MSG_NOSIGNAL))
        loop.schedule(after: pause) { [weak self] in
            self?.say(bytes.dropFirst(), fd, connection: connection, pause)
        }
    }

    private func say(_ text: String, _ fd: Int32) {
        let bytes = Array(text.utf8)
        _ = send(fd, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Parses a whole request, as curl sends it; nil if it is incomplete.
    private static func request(_ bytes: [UInt8]) -> TestGateway.Asked? {
        let mark = Array("\r\n\r\n".utf8)
        guard let end = bytes.indices.first(where: { bytes[$0...].starts(with: mark) }) else { return nil }
        // For Swift, a carriage return with a line feed is one character.
        let lines = String(decoding: bytes[..<end], as: UTF8.self).split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count == 3 else { return nil }
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else { continue }
            fields[parts[0].lowercased()] = String(parts[1].drop { $0 == " " })
        }
        let body = bytes[(end + mark.count)...]
        guard body.count >= fields["content-length"].flatMap({ Int($0) }) ?? 0 else { return nil }
        return TestGateway.Asked(
            method: String(words[0]), target: String(words[1]), fields: fields,
            body: String(decoding: body, as: UTF8.self))
    }
}
