import Bytes
import Crypto
import EventLoop
import HTTP2
import JSON
import Synchronization
import TLS
import TestSupport
import World

/// A client of several relays, with a connection to each. If a connection fails, it opens another one.
final class MultiRelayClient: Sendable {
    private let tls: TLSClientContext
    private let relays: [UInt16]
    private let chance: SeededRandomness
    private let lines = Mutex<[UInt16: ClientConnection]>([:])

    init(_ cluster: RunningCluster, _ chance: SeededRandomness, certificate: [UInt8]? = nil, key: Secret? = nil) throws
    {
        tls = try TLSClientContext(
            roots: .pem(try TextFile.bytes(cluster.authority)), certificateChainPEM: certificate, privateKeyPEM: key)
        relays = cluster.relays
        self.chance = chance
    }

    /// Sends a request to that port, over the open connection.
    func send(
        _ method: String, _ path: String, _ body: JSONObject? = nil, fields: [String: String] = [:], at port: UInt16,
        deadline: Duration = .seconds(120)
    ) async throws -> Reply {
        try await line(port).send(method, path, body, fields: fields, deadline: deadline).get()
    }

    private func line(_ port: UInt16) async throws(ConnectionFailure) -> ClientConnection {
        if let line = lines.withLock({ $0[port] }), await line.state == .open { return line }
        let fresh = try await ClientConnection.open(tls, port: port)
        lines.withLock { $0[port] = fresh }
        return fresh
    }

    /// A final answer, and the number of earlier attempts whose outcome is unknown.
    struct FinalReply: Sendable {
        let reply: Reply
        let unsure: Int
    }

    /// Repeats a request as the guide requires: at any relay after a failure, after 503 and 429, and while the
    /// first attempt is still running.
    ///
    /// - Parameter first: the relay for the first attempt; nil for any.
    func insist(
        _ method: String, _ path: String, _ body: JSONObject? = nil, key: String? = nil, wait: Int? = nil,
        first: UInt16? = nil
    ) async throws -> FinalReply {
        var fields: [String: String] = [:]
        if let key { fields["idempotency-key"] = key }
        if let wait { fields["prefer"] = "wait=\(wait)" }
        var unsure = 0
        for attempt in 0..<4000 {
            try Task.checkCancellation()
            let anyone = relays[Int(chance.number(below: UInt64(relays.count)))]
            let reply = try? await send(method, path, body, fields: fields, at: attempt == 0 ? first ?? anyone : anyone)
            if let reply, reply.status != 503, reply.status != 429, reply.status != 409 || reply.retryAfter == nil {
                return FinalReply(reply: reply, unsure: unsure)
            }
            if reply?.status != 429 { unsure += 1 }
            await pause(reply?.status == 429 ? 1000..<2000 : 100..<500)
        }
        throw ReconnectingClient.NoAnswer(request: "\(method) \(path)")
    }

    /// Waits for a random time, as a person or a program would between two attempts.
    func pause(_ milliseconds: Range<Int64>) async {
        let time = chance.milliseconds(milliseconds)
        await Clients.loop.perform { await Clients.loop.sleep(for: time) }
    }
}
