import EventLoop
import HTTP
import HTTP2
import Log
import TLS
import World

/// Forwards requests of phones in the browser to the relay, unchanged.
///
/// It uses no client certificate: these phones prove their identity by signatures. The actor runs
/// on its event loop.
actor RelayProxy {
    private nonisolated let loop: EventLoop
    private nonisolated let relay: WebAddress
    private let tls: TLSClientContext
    private var client: HTTP2Client?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Creates a proxy.
    ///
    /// - Parameter authority: the authority that signed the relay's certificate, as PEM.
    init(loop: EventLoop, relay: WebAddress, authority: [UInt8]) throws(TLSFailure) {
        self.loop = loop
        self.relay = relay
        tls = try TLSClientContext(roots: .pem(authority))
    }

    /// Forwards one request; nil if the relay was not reached or did not answer.
    func carry(_ method: String, _ path: String, _ fields: Fields, _ body: [UInt8]) async -> Response? {
        let request = ClientRequest(
            method: method, path: path, authority: relay.authority, fields: fields, body: body)
        guard let client = await opened(),
            case .success(let response) = await client.send(request, deadline: Self.timeout)
        else { return nil }
        return response
    }

    func close() { client?.close() }

    /// The time limit for an answer, a little shorter than the time-out of the browser's request.
    private static let timeout = Duration.seconds(18)

    private func opened() async -> HTTP2Client? {
        if let client, client.state == .open { return client }
        let fresh = HTTP2Client(
            loop: loop, host: relay.host, port: relay.port ?? 443, tls: tls, log: Log(minimum: .error))
        do throws(ConnectionFailure) {
            try await fresh.connect()
        } catch {
            return nil
        }
        client = fresh
        return fresh
    }
}
