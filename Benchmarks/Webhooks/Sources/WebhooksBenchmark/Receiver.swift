import Crypto
import EventLoop
import HTTP
import HTTP2
import Log
import Measuring
import Synchronization
import TLS
import World

/// The server of a website, on its own loop. It records when webhooks arrive, and can stop
/// answering.
final class Receiver: Handler {
    private struct State {
        var told: [String: Instant] = [:]
        var isHanging = false
        var hung = 0
        var held: [ObjectIdentifier: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())
    private let time = SystemTime()

    /// The accepted webhooks, each with the time of its arrival.
    var told: [String: Instant] { state.withLock { $0.told } }
    /// The number of webhooks that it left unanswered.
    var hung: Int { state.withLock { $0.hung } }

    func hang() {
        state.withLock { state in
            state.isHanging = true
            state.hung = 0
        }
    }

    /// Answers from now on, including the webhooks that wait.
    func recover() {
        let held = state.withLock { state in
            defer { state.held = [:] }
            state.isHanging = false
            return state.held
        }
        for wake in held.values { wake() }
    }

    func handle(_ request: Request) -> Reply {
        let now = time.instant()
        // Webhooks about phones are answered, but not recorded.
        guard String(decoding: request.body, as: UTF8.self).contains("\"login.decided\"") else {
            return .now(Response(status: 204))
        }
        let id = request.fields["webhook-id"] ?? ""
        let isHanging = state.withLock { state in
            if state.isHanging { state.hung += 1 } else { state.told[id] = state.told[id] ?? now }
            return state.isHanging
        }
        guard isHanging else { return .now(Response(status: 204)) }
        // Longer than the timeout of a webhook.
        let hold = Hold(duration: .seconds(600), wait: Recovery(self)) {
            self.state.withLock { $0.told[id] = $0.told[id] ?? now }
            return .response(Response(status: 204))
        }
        return .later(deadline: .seconds(600), late: { Response(status: 503) }) { .held(hold) }
    }

    /// The wait of an unanswered webhook for `recover`. A cancelled wait does not accept its
    /// webhook.
    private final class Recovery: Wait {
        private let receiver: Receiver

        init(_ receiver: Receiver) { self.receiver = receiver }

        func arm(_ wake: @escaping @Sendable () -> Void) {
            let isOver = receiver.state.withLock { state in
                if state.isHanging { state.held[ObjectIdentifier(self)] = wake }
                return !state.isHanging
            }
            if isOver { wake() }
        }

        func cancel() { receiver.state.withLock { $0.held[ObjectIdentifier(self)] = nil } }
    }

    /// Starts a server, and returns the webhook URL.
    func listen(on loop: EventLoop, as issued: IssuedCertificate) async throws -> String {
        let tls = try TLSServerContext(certificateChainPEM: issued.certificatePEM(), privateKeyPEM: issued.keyPEM())
        guard let address = SocketAddress(host: "127.0.0.1", port: 0) else { throw Unmeasured("no address") }
        // libcurl sends more frames with each request than a server earns by it.
        var limits = ServerLimits()
        limits.abuseCapacity = 1_000_000_000
        let server = await loop.perform { [limits] () -> Result<LoopBound<HTTP2Server>, SystemFailure> in
            Result { () throws(SystemFailure) in
                let server = try HTTP2Server(
                    loop: loop, address: address, tls: tls, handler: self, limits: limits,
                    log: Log(minimum: .error))
                try server.start()
                return LoopBound(server, on: loop)
            }
        }
        let bound = try server.get()
        servers.withLock { $0.append(bound) }
        return "https://localhost:\(await loop.perform { bound.value.port })/twoefay"
    }

    private let servers = Mutex<[LoopBound<HTTP2Server>]>([])
}
