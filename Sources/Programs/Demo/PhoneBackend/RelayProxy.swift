import EventLoop
import HTTP
import HTTP2
import Log
import TLS
import World

/// Requests that somebody else has made, carried to the relay as they are. No certificate is shown: a phone in a browser
/// proves itself by what it signs. An actor that lives on its loop.
actor RelayProxy {
    private nonisolated let loop: EventLoop
    private nonisolated let relay: WebAddress
    private let tls: TLSClientContext
    private var client: HTTP2Client?

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameter authority: PEM; signed the relay's certificate.
    init(loop: EventLoop, relay: WebAddress, authority: [UInt8]) throws(TLSFailure) {
        self.loop = loop
        self.relay = relay
        tls = try TLSClientContext(roots: .pem(authority))
    }

    /// Nil where the relay was not reached, or said nothing.
    func carry(_ method: String, _ path: String, _ fields: Fields, _ body: [UInt8]) async -> Response? {
        let request = ClientRequest(
            method: method, path: path, authority: relay.authority, fields: fields, body: body)
        guard let client = await opened(),
            case .success(let response) = await client.send(request, deadline: Self.timeout)
        else { return nil }
        return response
    }

    func close() { client?.close() }

    /// A little less than the browser's request is held for.
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
