import Bytes
import EventLoop
import Glibc
import HTTP
import HTTP2
import Log
import TLS
import World

/// A server that accepts every push without reading it, because only the sender is measured. It
/// repeats the `apns-id`, as Apple does, because aioapns waits for it. It also issues access tokens,
/// as FCM's sender needs.
private struct Sink: Handler {
    private static let token = Array(#"{"access_token":"bench","expires_in":3600,"token_type":"Bearer"}"#.utf8)

    func handle(_ request: Request) -> Reply {
        if request.path == "/token" { return .now(Response(status: 200, body: Self.token)) }
        var fields = Fields()
        if let id = request.fields["apns-id"] { fields.add("apns-id", id) }
        return .now(Response(status: 200, fields: fields))
    }
}

/// Prints its port, and runs until the process is killed.
func runSink(certificate: String, key: String) throws {
    var limits = ServerLimits()
    limits.streams = 1000
    let tls = try TLSServerContext(
        certificateChainPEM: try contents(certificate), privateKeyPEM: Secret(try contents(key)), websitesCA: [])
    let loop = try EventLoop(name: "sink", time: SystemTime())
    loop.post { [limits] in
        do {
            guard let address = SocketAddress(host: "127.0.0.1", port: 0) else { throw Fault("no address") }
            let server = try HTTP2Server(
                loop: loop, address: address, tls: tls, handler: Sink(), limits: limits, log: Log(minimum: .warning))
            try server.start()
            kept = LoopBound(server, on: loop)
            print(server.port)
            fflush(nil)
        } catch {
            complain("sink: \(error)")
            exit(1)
        }
    }
    loop.run()
}

/// Keeps the server alive. Guard: written once, on the loop.
nonisolated(unsafe) private var kept: LoopBound<HTTP2Server>?
