import Bytes
import EventLoop
import HTTP2
import JSON
import Synchronization
import TLS
import TestSupport
import World

/// A client of a relay with one connection at a time. It opens a new one when the old one has ended.
final class ReconnectingClient: Sendable {
    private let tls: TLSClientContext
    private let port: UInt16
    private let current = Mutex<ClientConnection?>(nil)

    init(_ relay: RunningRelay, certificate: [UInt8]? = nil, key: Secret? = nil) throws {
        tls = try TLSClientContext(
            roots: .pem(try TextFile.bytes(relay.file("ca.pem"))), certificateChainPEM: certificate, privateKeyPEM: key)
        port = relay.port
    }

    /// Opens a separate connection.
    func line() async throws(ConnectionFailure) -> ClientConnection { try await ClientConnection.open(tls, port: port) }

    /// Sends a request over the open connection. After a failure the outcome of the request is unknown.
    func send(
        _ method: String, _ path: String, _ body: JSONObject? = nil, key: String? = nil, wait: Int? = nil
    ) async throws -> Reply {
        var fields: [String: String] = [:]
        if let key { fields["idempotency-key"] = key }
        if let wait { fields["prefer"] = "wait=\(wait)" }
        let line = try await open()
        return try await line.send(method, path, body, fields: fields).get()
    }

    private func open() async throws(ConnectionFailure) -> ClientConnection {
        if let line = current.withLock({ $0 }), await line.state == .open { return line }
        let fresh = try await line()
        current.withLock { $0 = fresh }
        return fresh
    }

    /// Repeats a request as the guide requires: after a failure, after 503, and while the first attempt is still
    /// running, until there is a final answer. `gate` lets it through while a relay runs.
    func insist(
        _ method: String, _ path: String, _ body: JSONObject? = nil, key: String? = nil, gate: Gate
    ) async throws -> Reply {
        for _ in 0..<4000 {
            await gate.pass()
            guard let reply = try? await send(method, path, body, key: key) else {
                // The connection ended with the relay. The pause prevents a busy loop if connections fail for
                // another reason.
                await Clients.loop.perform { await Clients.loop.sleep(for: .milliseconds(5)) }
                continue
            }
            gate.answered()
            let isNotYet = reply.status == 503 || (reply.status == 409 && reply.retryAfter != nil)
            guard isNotYet else { return reply }
            await Clients.loop.perform { await Clients.loop.sleep(for: .milliseconds(250)) }
        }
        throw NoAnswer(request: "\(method) \(path)")
    }

    struct NoAnswer: Error { let request: String }
}

/// A gate that is closed while no relay runs. It counts answers, which determine the moment of the next kill.
final class Gate: Sendable {
    private struct State {
        var isOpen = true
        var waiting: [CheckedContinuation<Void, Never>] = []
        var answers = 0
        var counting: (until: Int, continuation: CheckedContinuation<Void, Never>)?
    }

    private let state = Mutex(State())

    func shut() { state.withLock { $0.isOpen = false } }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    func answered() {
        let ready = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.answers += 1
            guard let counting = state.counting, state.answers >= counting.until else { return nil }
            state.counting = nil
            return counting.continuation
        }
        ready?.resume()
    }

    /// Returns after `count` more answers. Only one caller may wait.
    func answers(_ count: Int) async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.counting = ($0.answers + count, continuation) }
        }
    }
}
