import API
import APNs
import Bytes
import Crypto
import EventLoop
import HTTP
import HTTP1
import HTTP2
import Hardening
import KeyService
import Log
import Relay
import Storage
import TLS
import Templates
import WebPush
import World

/// The relay on its loops: a store, one HTTP/2 server a loop, the rounds that keep the outbox moving, and a page of
/// counters if one is wanted.
public final class Daemon: Sendable {
    public let settings: Settings
    public let port: UInt16
    public let relay: Relay
    let store: Store
    let push: APNsSender?
    private let webPush: WebPushSender?
    let couriers: ActiveCouriers
    let webhookCourier: ActiveWebhookCourier
    let words: CurrentCatalog
    private let group: LoopGroup
    let servers: [LoopBound<HTTP2Server>]
    private let page: LoopBound<HTTP1Server>?
    let geolocation: Geolocation
    private let presence: PeriodicWork
    private let work: PeriodicWork
    private let backgroundWork: BackgroundWork
    private let remoteCertificates: RemoteCertificates?
    let certificates: Certificates
    /// Restrictions on this process; nil where it has none.
    let hardening: Hardening?
    /// The thumbprint of the authority that activations name.
    let pin: [UInt8]
    /// What operations follow from, as long as this process lives.
    let operationsKey: Secret
    /// Reads the settings again, where somebody can.
    let reread: @Sendable () throws(Failure) -> Settings
    let log: Log
    private let api: API

    /// Starts. When this returns, it listens.
    ///
    /// - Parameter files: the files as they were read before; nil reads them here.
    public static func start(
        _ settings: Settings, _ files: LoadedFiles? = nil, hardening: Hardening? = nil, log: Log,
        reread: (@Sendable () throws(Failure) -> Settings)? = nil
    ) async throws(Failure) -> Daemon {
        let files = if let files { files } else { try LoadedFiles.load(settings, at: SystemTime().now()) }
        let parts = try Components(settings, files, hardening, log: log)
        do {
            return try await Daemon(
                settings, try files.tls(), files.authority.spkiThumbprint, parts, log: log,
                reread: reread ?? { () throws(Failure) in settings })
        } catch {
            parts.close()
            throw error
        }
    }

    private init(
        _ settings: Settings, _ tls: TLSServerContext, _ pin: [UInt8], _ components: Components, log: Log,
        reread: @escaping @Sendable () throws(Failure) -> Settings
    ) async throws(Failure) {
        self.settings = settings
        self.pin = pin
        self.log = log
        self.reread = reread
        store = components.store
        push = components.push
        webPush = components.webPush
        couriers = components.couriers
        webhookCourier = components.webhookCourier
        words = components.words
        group = components.group
        relay = components.relay
        backgroundWork = components.backgroundWork
        remoteCertificates = components.remoteCertificates
        api = components.api
        geolocation = components.geolocation
        certificates = components.certificates
        hardening = components.hardening
        operationsKey = components.operationsKey
        let relay = components.relay
        page = try await MetricsPage.start(settings, components.registry, on: components.group.loops[0], log: log)
        // Known as alive before the first request: what a relay without a beat holds counts as left behind.
        await components.group.loops[0].perform {
            await relay.runHeartbeat()
            await relay.watchRevocations()
        }
        (servers, port) = try await Self.listen(settings, tls, components, log: log)
        relay.onRevocation { [servers] in RevokedConnections.end($0, on: servers, log: log) }
        presence = PeriodicWork.presence(components.relay, components.api, on: components.group.loops[0])
        work = PeriodicWork.work(components.relay, components.certificates, on: components.group.loops[0])
        // Before the first login wants them.
        for loop in group.loops { loop.post { [push] in push?.connectEagerly() } }
        log.notice("daemon.started", [.address: "\(settings.listen.host):\(port)", .count: group.loops.count])
    }

    /// One listener for each loop, all on one port: the kernel spreads the connections.
    private static func listen(
        _ settings: Settings, _ tls: TLSServerContext, _ components: Components, log: Log
    ) async throws(Failure) -> ([LoopBound<HTTP2Server>], port: UInt16) {
        var servers: [LoopBound<HTTP2Server>] = []
        var port = settings.listen.port
        for loop in components.group.loops {
            guard let address = SocketAddress(host: settings.listen.host, port: port) else {
                throw Failure(
                    .failed, "listen: \(settings.listen.host) is not an address of this machine",
                    next: "Give an IP address, such as 0.0.0.0 or [::] for all.")
            }
            let api = components.api
            let isFirst = servers.isEmpty
            let outcome = await loop.perform { () async -> Result<(LoopBound<HTTP2Server>, UInt16), Failure> in
                do {
                    if isFirst { try Socket.requireFree(address) }
                    let server = try HTTP2Server(
                        loop: loop, address: address, tls: tls, handler: api, proxies: components.proxies,
                        admission: components.admission, log: log)
                    try server.start()
                    return .success((LoopBound(server, on: loop), server.port))
                } catch {
                    return .failure(
                        Failure(
                            .unavailable, "cannot listen on \(settings.listen.settingsText): \(error)",
                            next: "Choose another address or port ('listen' in the settings), or stop what has it."))
                }
            }
            let (server, actual) = try outcome.get()
            servers.append(server)
            port = actual
        }
        return (servers, port)
    }

    /// For work that does not end by itself though nothing is left that it could wait for.
    private static let timeout = Duration.seconds(15)

    /// Takes no new connection, lets what is begun end, then closes everything.
    public func stop() async {
        log.notice("daemon.stopping")
        work.stop()
        // Requests first: whoever waits for one has its answer before anything is closed that it needs.
        await withTaskGroup(of: Void.self) { drains in
            for server in servers {
                drains.addTask {
                    await withCheckedContinuation { continuation in
                        server.loop.post { server.value.drain { continuation.resume() } }
                    }
                }
            }
        }
        await relay.stopWebhooks()
        // Then what they left behind. Pushes on their way are let come to their end, which closing
        // the sender then makes a quick one. What is still to be sent goes to whoever starts next,
        // at once: no other relay has to find out that this one is gone.
        await backgroundWork.settled(within: .seconds(3))
        push?.close()
        webPush?.close()
        webhookCourier.close()
        await couriers.close()
        await work.ended(within: Self.timeout)
        await backgroundWork.settled(within: Self.timeout)
        // The store last, when nobody asks it any more.
        presence.stop()
        await presence.ended(within: Self.timeout)
        await group.loops[0].perform { [relay, page] in
            await relay.deregister()
            page?.value.stop()
        }
        store.close()
        remoteCertificates?.close()
        group.stopAndJoin()
        api.logSampledRequests()
        log.notice("daemon.stopped")
    }

    /// Until it is told to stop. Told again, it ends at once, after `atExit`.
    func runUntilStopped(_ signals: Signals, atExit: @escaping @Sendable () -> Void) async {
        while case .reload = await signals.next() { await reload() }
        EventLoop.current?.spawn { [log] in
            while case .reload = await signals.next() {}
            log.warning("daemon.aborted")
            atExit()
            Machine.exit(.failed)
        }
        await stop()
    }

    /// The whole life of the process, on the calling thread.
    public static func run(
        _ settings: Settings, _ files: LoadedFiles, hardening: Hardening?,
        reread: @escaping @Sendable () throws(Failure) -> Settings
    ) throws(Failure) {
        try MainThread.run(settings.log) { _, signals, written async throws(Failure) in
            let daemon = try await Daemon.start(
                settings, files, hardening: hardening, log: written.log, reread: reread)
            await daemon.runUntilStopped(signals) { written.close() }
        }
    }
}
