import EventLoop
import Glibc
import HTTP
import HTTP1
import Log
import Metrics

/// The page `/metrics`, for a Prometheus on this machine.
struct MetricsPage: Pages {
    let registry: Registry
    let dependencies: DependencyMetrics

    func answer(_ request: Request) async -> Response {
        guard request.path == "/metrics" else { return .plain(404, "Not found. The metrics are at /metrics.\n") }
        guard request.method != "POST" else {
            return .plain(405, "Method not allowed. Use GET or HEAD.\n", [Fields.Field("allow", "GET, HEAD")])
        }
        await dependencies.check()
        return Response(
            status: 200, fields: Fields([Fields.Field("content-type", Registry.contentType)]),
            body: registry.exposition())
    }

    /// Starts the page if the settings name an address for it; returns nil otherwise.
    ///
    /// - Parameter socket: the socket of the page that systemd has opened.
    static func start(
        _ settings: Settings, _ socket: ListeningSocket?, _ registry: Registry, _ dependencies: DependencyMetrics,
        on loop: EventLoop, log: Log
    ) async throws(Failure) -> LoopBound<HTTP1Server>? {
        guard let wanted = settings.metrics?.place else {
            socket?.close()
            return nil
        }
        let outcome = await loop.perform { () async -> Result<LoopBound<HTTP1Server>, Failure> in
            do throws(SystemFailure) {
                let page = MetricsPage(registry: registry, dependencies: dependencies)
                let server: HTTP1Server
                if let socket {
                    server = try HTTP1Server(loop: loop, socket: socket, pages: page, log: log)
                } else if let address = SocketAddress(host: wanted.host, port: wanted.port) {
                    server = try HTTP1Server(loop: loop, address: address, pages: page, log: log)
                } else {
                    throw SystemFailure("\(wanted.host)", EADDRNOTAVAIL)
                }
                try server.start()
                log.notice("metrics.started", [.address: server.address.description])
                return .success(LoopBound(server, on: loop))
            } catch {
                return .failure(
                    Failure(
                        .unavailable, "cannot listen on \(wanted.settingsText): \(error)",
                        next: "Choose another port ('metrics.listen' in the settings), or free this one."))
            }
        }
        return try outcome.get()
    }
}
