import EventLoop
import GSM
import Glibc
import SMPP
import Synchronization
import TLS
import World

/// An SMPP 3.4 gateway, written from the specification. It accepts text messages on a port of this
/// machine, sends delivery receipts, and misbehaves as a test requires.
public final class FakeSMSC: Sendable {
    /// The answer to one submit.
    public enum Answer: Sendable {
        case accept
        case status(UInt32)
        /// Accepts it, with a delayed answer.
        case late(Duration)
        /// Accepts it, and never answers.
        case silence
        /// Accepts it, and closes the connection before the answer.
        case cut
        /// Sends these bytes in place of an answer.
        case bytes([UInt8])
    }

    public struct Script: Sendable {
        public var systemID = "gateway"
        public var password = "secret08"
        public var answersBind = true
        public var answersEnquiries = true
        /// The number of receipts for each requested one. Real gateways sometimes send two.
        public var receipts = 1
        public var state = "DELIVRD"
        public var answer: @Sendable (Submit) -> Answer = { _ in .accept }

        public init() {}
    }

    public struct Submit: Sendable {
        /// The number of the submit, from 1, over all connections.
        public let number: Int
        public let connection: Int
        public let messageID: String
        public let source: SMPPAddress
        public let destination: SMPPAddress
        public let text: String
        /// The header of a segment of a longer message: its reference, the number of segments, and
        /// its index.
        public let part: [UInt8]?
        public let dataCoding: UInt8
        public let validity: String
        public let wantsReceipt: Bool
    }

    /// The record of everything that has happened so far.
    public struct Record: Sendable {
        public internal(set) var binds: [(mode: BindMode, systemID: String, systemType: String)] = []
        public internal(set) var connections = 0
        public internal(set) var submits: [Submit] = []
        public internal(set) var enquiries = 0
        public internal(set) var unbinds = 0
        public internal(set) var ends = 0
        public internal(set) var receiptsAnswered = 0
        public internal(set) var nacks = 0
        /// The largest number of submits on one connection that were unanswered at the same time.
        public internal(set) var mostUnanswered = 0

        /// The texts as a phone shows them, of the messages with all segments.
        public var texts: [String] {
            var shown: [String] = []
            var parts: [String: [UInt8: String]] = [:]
            for submit in submits {
                guard let part = submit.part else {
                    shown.append(submit.text)
                    continue
                }
                let key = "\(submit.destination.text) \(part[0])"
                parts[key, default: [:]][part[2]] = submit.text
                guard let found = parts[key], found.count == Int(part[1]) else { continue }
                shown.append(found.sorted { $0.key < $1.key }.map(\.value).joined())
                parts[key] = nil
            }
            return shown
        }
    }

    private struct State {
        var script: Script
        var record = Record()
        var waiters: [UnsafeContinuation<Void, Never>] = []
    }

    public let port: UInt16
    let loop: EventLoop
    private let group: LoopGroup
    private let state: Mutex<State>
    private let registry: Mutex<LoopBound<ConnectionRegistry>?> = Mutex(nil)

    /// The state that belongs to the loop.
    private final class ConnectionRegistry {
        let listener: Listener
        var clients: [Int: SMSCClient] = [:]

        init(_ listener: Listener) { self.listener = listener }
    }

    public static func start(_ script: Script = Script(), tls: TLSServerContext? = nil, port: UInt16 = 0) async throws
        -> FakeSMSC
    {
        let group = try LoopGroup.start(count: 1, time: SystemTime())
        let loop = group.loops[0]
        let made = await loop.perform { () -> Result<LoopBound<ConnectionRegistry>, SystemFailure> in
            guard let address = SocketAddress(host: "127.0.0.1", port: port) else {
                return .failure(SystemFailure("address", EINVAL))
            }
            do throws(SystemFailure) {
                return .success(LoopBound(ConnectionRegistry(try Listener(loop: loop, address: address)), on: loop))
            } catch {
                return .failure(error)
            }
        }
        let registry = try made.get()
        let bound = await loop.perform { registry.value.listener.address.port }
        let smsc = FakeSMSC(script, group, port: bound)
        smsc.registry.withLock { $0 = registry }
        await loop.perform { smsc.open(registry.value, tls) }
        return smsc
    }

    private init(_ script: Script, _ group: LoopGroup, port: UInt16) {
        self.group = group
        self.port = port
        loop = group.loops[0]
        state = Mutex(State(script: script))
    }

    private func open(_ registry: ConnectionRegistry, _ tls: TLSServerContext?) {
        try? registry.listener.start { [weak self, weak registry] fd, _ in
            guard let self, let registry else {
                close(fd)
                return
            }
            let session = tls.flatMap { try? TLSSession(server: $0, fd: fd) }
            let number = change { record -> Int in
                record.connections += 1
                return record.connections
            }
            let client = SMSCClient(self, number: number, wire: Transport(loop: loop, fd: fd, tls: session))
            registry.clients[number] = client
            client.serve { [weak registry] in registry?.clients[number] = nil }
        } exhausted: { _ in
        }
    }

    public func stop() async {
        await cut(listening: false)
        group.stopAndJoin()
    }

    /// Closes all connections without an unbind. New ones are accepted only if `listening`.
    public func cut(listening: Bool = true) async {
        guard let registry = registry.withLock({ $0 }) else { return }
        await loop.perform {
            for client in registry.value.clients.values { client.cut() }
            registry.value.clients = [:]
            if !listening { registry.value.listener.close() }
        }
    }

    /// Ends all sessions with an unbind, as the specification requires.
    public func unbind() async {
        guard let registry = registry.withLock({ $0 }) else { return }
        await loop.perform { for client in registry.value.clients.values { client.unbind() } }
    }

    // MARK: Record

    public var script: Script {
        get { state.withLock { $0.script } }
        set { state.withLock { $0.script = newValue } }
    }

    public var record: Record { state.withLock { $0.record } }

    /// Waits until the record fulfils the condition.
    @discardableResult public func until(_ isSo: @Sendable (Record) -> Bool) async -> Record {
        while true {
            let found = state.withLock { isSo($0.record) ? $0.record : nil }
            if let found { return found }
            await withUnsafeContinuation { continuation in
                let isThere = state.withLock { state in
                    if isSo(state.record) { return true }
                    state.waiters.append(continuation)
                    return false
                }
                if isThere { continuation.resume() }
            }
        }
    }

    func change<Value>(_ body: (inout Record) -> Value) -> Value {
        let (value, waiters) = state.withLock { state in
            let value = body(&state.record)
            defer { state.waiters = [] }
            return (value, state.waiters)
        }
        for waiter in waiters { waiter.resume() }
        return value
    }
}
