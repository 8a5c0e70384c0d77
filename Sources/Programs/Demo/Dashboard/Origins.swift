import Bytes
import Crypto
import Daemon
import EventLoop
import HTTP
import HTTP1
import Log
import Synchronization
import World

/// The three origins of the demo, their ports and content security policies, and the one secret
/// that admits a browser to all three. It must be used on its loop only.
///
/// Invariant: all ports are bound before the pages are made, because the pages and their policies
/// name the ports. Until `open`, every request waits.
final class Origins {
    struct Origin {
        let origin: String
        let port: UInt16
        let responder: PageResponder
    }

    let dashboard: Origin
    let website: Origin
    let phone: Origin
    let servers: [HTTP1Server]
    /// The id of this run, which is not secret.
    let run: String
    private let secret: RunSecret
    private let deferred: [DeferredPages]

    init(port: UInt16?, loop: EventLoop, randomness: any Randomness, log: Log) throws(Failure) {
        let deferred = (0..<3).map { _ in DeferredPages() }
        var servers: [HTTP1Server] = []
        do throws(SystemFailure) {
            for (number, pages) in deferred.enumerated() {
                let wanted = port.map { $0 + UInt16(number) } ?? 0
                servers.append(
                    try HTTP1Server(loop: loop, address: try Self.address(port: wanted), pages: pages, log: log))
            }
        } catch {
            for server in servers { server.stop() }
            throw Failure(
                .conflict, "the pages cannot be served: \(error.description)",
                next: "Is something else listening there? Choose another --port, or leave it out.")
        }
        let ports = servers.map(\.port)
        let origins = ports.map { "http://localhost:\($0)" }
        func origin(_ number: Int, frames: [String] = [], _ files: [PageFile]) -> Origin {
            Origin(
                origin: origins[number], port: ports[number],
                responder: PageResponder(frames: frames, framedBy: number == 0 ? nil : origins[0], files: files))
        }
        dashboard = origin(0, frames: Array(origins[1...]), Dashboard.files)
        website = origin(1, Shop.files)
        phone = origin(2, PhoneBackend.files)
        secret = RunSecret(dashboardPort: ports[0], randomness: randomness)
        run = Hex.encode(randomness.bytes(16))
        self.deferred = deferred
        self.servers = servers
    }

    /// Starts to answer requests.
    func open(dashboard: any Pages, website: any Pages, phone: any Pages) throws(SystemFailure) {
        for (deferred, (pages, origin)) in zip(
            self.deferred, [(dashboard, self.dashboard), (website, self.website), (phone, self.phone)])
        {
            deferred.open(AccessGate(pages: pages, responder: origin.responder, secret: secret))
        }
        for server in servers { try server.start() }
    }

    func address(of origin: Origin, _ path: String = "/") -> String { secret.address(of: origin.origin, path: path) }

    static func address(port: UInt16) throws(SystemFailure) -> SocketAddress {
        guard let address = SocketAddress(host: "127.0.0.1", port: port) else {
            throw SystemFailure("address 127.0.0.1", 0)
        }
        return address
    }
}

/// Pages of a server that is bound before its pages are made. Until `open`, it answers 503.
private final class DeferredPages: Pages {
    private let pages = Mutex<(any Pages)?>(nil)

    func open(_ pages: any Pages) { self.pages.withLock { $0 = pages } }

    func answer(_ request: Request) async -> Response {
        guard let pages = pages.withLock({ $0 }) else { return Response(status: 503) }
        return await pages.answer(request)
    }
}
