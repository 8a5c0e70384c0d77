import API
import Bytes
import Crypto
import Domain
import EventLoop
import HTTP
import HTTP1
import HTTP2
import Hardening
import KeyService
import Log
import Pushes
import Relay
import Storage
import Synchronization
import TLS
import Templates
import WebPush
import World

/// A running relay: a store, one server of HTTP for each loop, and the periodic work for the outbox.
/// A metrics page belongs to it if the settings want one.
///
/// `start` connects the `Components` and listens. `stop` ends requests first, then deliveries, then
/// the store, so that nothing runs without a part that it needs. `DrainTests.swift` tests the stop,
/// `ReloadTests.swift` the reload.
public final class Daemon: Sendable {
    public let settings: Settings
    public let port: UInt16
    /// The port for phones in browsers; nil without `phone.listen`.
    public let browserPort: UInt16?
    /// The address that it listens on.
    let address: String
    public let relay: Relay
    /// Held as long as this daemon lives, and so until after the store is closed.
    private let storeLock: StoreLock?
    let store: Store
    let push: APNsSender?
    let fcm: FCMSender?
    private let webPush: WebPushSender?
    /// The balancers, and the limits for the connections of callers.
    let proxies: Proxies
    let admission: AdmissionControl
    let couriers: ActiveCouriers
    let webhookCourier: ActiveWebhookCourier
    let catalog: CurrentCatalog
    let group: LoopGroup
    let servers: [LoopBound<HTTP2Server>]
    /// Those for phones in browsers; empty without `phone.listen`.
    let browserServers: [LoopBound<HTTP2Server>]
    private let page: LoopBound<HTTP1Server>?
    let geolocation: Geolocation
    let attestations: AttestationHealth
    private let heads: AuditHeadsExport?
    private let presence: PeriodicWork
    private let work: PeriodicWork
    let backgroundWork: BackgroundWork
    let directories: DirectoryWork
    /// The resources of the control socket; nil if there is none.
    let control: ControlResources?
    private let closeIssuer: @Sendable () -> Void
    let keyService: RemoteCertificates?
    let certificates: Certificates
    /// Restrictions on this process; nil if the settings turn hardening off.
    let hardening: Hardening?
    /// The key from which ids of operations are derived. It does not change while this process
    /// runs; a reload only compares with it.
    let operationsKey: Secret
    /// The settings and files in use, with which a reload compares.
    let inUse: Mutex<SettingsInUse>
    /// Reads the settings file again for a reload.
    let reread: @Sendable () throws(Failure) -> SettingsOfFile
    let log: Log
    private let api: API

    /// Starts the daemon. When this returns, it listens.
    ///
    /// - Parameters:
    ///   - files: the files, if they were read before; nil reads them here.
    ///   - inherited: the sockets that systemd has opened.
    ///   - reread: reads the settings again for a reload; nil keeps the settings of the start.
    public static func start(
        _ settings: Settings, _ files: LoadedFiles? = nil, _ inherited: InheritedSockets = .none,
        hardening: Hardening? = nil, log: Log, reread: (@Sendable () throws(Failure) -> SettingsOfFile)? = nil
    ) async throws(Failure) -> Daemon {
        let files = if let files { files } else { try LoadedFiles.load(settings, at: SystemTime().now()) }
        let listeners = try Listeners.open(settings, inherited)
        let parts: Components
        do throws(Failure) {
            parts = try await Components(settings, files, hardening, log: log)
        } catch {
            listeners.close()
            throw error
        }
        do {
            return try await Daemon(
                settings, files, listeners, inherited, parts, log: log,
                reread: reread ?? { () throws(Failure) in SettingsOfFile(settings) })
        } catch {
            parts.close()
            throw error
        }
    }

    private init(
        _ settings: Settings, _ files: LoadedFiles, _ listeners: Listeners,
        _ inherited: InheritedSockets, _ components: Components, log: Log,
        reread: @escaping @Sendable () throws(Failure) -> SettingsOfFile
    ) async throws(Failure) {
        self.settings = settings
        self.log = log
        self.reread = reread
        storeLock = components.storeLock
        store = components.store
        push = components.push
        fcm = components.fcm
        webPush = components.webPush
        proxies = components.proxies
        admission = components.admission
        couriers = components.couriers
        webhookCourier = components.webhookCourier
        catalog = components.catalog
        group = components.group
        relay = components.relay
        backgroundWork = components.backgroundWork
        directories = components.directories
        control = components.control
        closeIssuer = components.closeIssuer
        keyService = components.keyService
        api = components.api
        geolocation = components.geolocation
        attestations = components.attestations
        certificates = components.certificates
        hardening = components.hardening
        operationsKey = components.operationsKey
        inUse = Mutex(SettingsInUse(settings, operationsKey: components.operationsKey))
        let relay = components.relay
        let forgeries = ForgeryRecord(components.store, log: log) { relay.operations.new() }
        heads = try AuditHeadsExport.open(settings, components.store, log: log) { fault in
            await forgeries.record("audit.tampered", row: fault.row, reason: fault.reason)
        }
        heads?.show(in: components.registry)
        relay.onForgery { [backgroundWork] row in
            backgroundWork.spawn { await forgeries.record("row.forged", row: row) }
        }
        address = inherited.relay?.address.description ?? "\(settings.listen.host):\(listeners.relay[0].address.port)"
        page = try await MetricsPage.start(
            settings, inherited.metrics, components.registry, components.dependencies,
            on: components.group.loops[0], log: log)
        // The first heartbeat precedes the first request. Other relays take over the work of a
        // relay that has no heartbeat. The keys are read before nonces are needed.
        await components.group.loops[0].perform {
            await relay.runHeartbeat()
            await relay.rollKeys()
            await relay.watchRevocations()
        }
        servers = try await Self.serve(
            listeners.relay, files.tls, components.api, components, origin: settings.origin, log: log)
        port = listeners.relay[0].address.port
        browserPort = listeners.browsers.first?.address.port
        if let tls = files.browsers, let origin = settings.phone.origin {
            let site = BrowserSite(
                components.api, origins: settings.phone.origins?.all ?? [], app: settings.phoneApp(at: origin))
            browserServers = try await Self.serve(listeners.browsers, tls, site, components, origin: origin, log: log)
        } else {
            browserServers = []
        }
        relay.onRevocation { [servers] in RevokedConnections.end($0, on: servers, log: log) }
        presence = PeriodicWork.presence(components.relay, components.api, heads, on: components.group.loops[0])
        work = PeriodicWork.work(
            components.relay, components.certificates, components.websiteExpiries, components.directories,
            on: components.group.loops[0])
        // Connects to the push services now, so that the first login does not wait for them.
        for loop in group.loops {
            loop.post { [push, fcm] in
                push?.connectEagerly()
                fcm?.connectEagerly()
            }
        }
        await record("daemon.started", note: "relay \(relay.id.text), version \(Program.version)")
        log.notice(
            "daemon.started",
            [
                .address: address, .count: group.loops.count, .relay: relay.id.text,
                .host: HostName.current, .version: Program.version,
            ])
    }

    /// Starts one server on each loop.
    private static func serve(
        _ sockets: [ListeningSocket], _ tls: TLSServerContext, _ handler: any Handler, _ components: Components,
        origin: WebAddress, log: Log
    ) async throws(Failure) -> [LoopBound<HTTP2Server>] {
        var servers: [LoopBound<HTTP2Server>] = []
        for (loop, socket) in zip(components.group.loops, sockets) {
            let outcome = await loop.perform { () async -> Result<LoopBound<HTTP2Server>, SystemFailure> in
                Result { () throws(SystemFailure) in
                    let server = HTTP2Server(
                        loop: loop, socket: socket, tls: tls, handler: handler, origin: origin,
                        proxies: components.proxies,
                        admission: components.admission, record: components.handshakes, log: log)
                    try server.start()
                    return LoopBound(server, on: loop)
                }
            }
            do throws(SystemFailure) {
                servers.append(try outcome.get())
            } catch {
                throw Failure(.unavailable, "cannot serve: \(error)", next: "Raise the limit of open files.")
            }
        }
        return servers
    }

    /// The longest wait for a task during the stop, in case a task never ends.
    private static let timeout = Duration.seconds(15)

    /// Stops accepting connections, lets running requests and deliveries end, then closes
    /// everything.
    public func stop() async {
        log.notice("daemon.stopping")
        work.stop()
        directories.stop()
        // Requests end first. Every held request gets its answer before anything that it needs is
        // closed.
        await withTaskGroup(of: Void.self) { drains in
            for server in servers + browserServers {
                drains.addTask {
                    await withCheckedContinuation { continuation in
                        server.loop.post { server.value.drain { continuation.resume() } }
                    }
                }
            }
        }
        // The next factors of these challenges may soon be due at other relays.
        await group.loops[0].perform { [relay] in await relay.recordSeen() }
        await relay.stopDeliveries()
        // Background work ends next. Pushes in flight get three seconds, then closing the sender
        // ends them at once. Entries that were not sent lose their lease, so the next relay can
        // take them without waiting for a failure detector.
        await backgroundWork.settled(within: .seconds(3))
        push?.close()
        fcm?.close()
        webPush?.close()
        webhookCourier.close()
        await couriers.close()
        await work.ended(within: Self.timeout)
        directories.close()
        await backgroundWork.settled(within: Self.timeout)
        // The store closes last, when no task uses it any more.
        presence.stop()
        await presence.ended(within: Self.timeout)
        await group.loops[0].perform { [relay] in await relay.recordUsage() }
        await record("daemon.stopped")
        await group.loops[0].perform { [relay, page, heads] in
            await relay.deregister()
            await heads?.append()
            page?.value.stop()
        }
        heads?.close()
        control?.close()
        store.close()
        closeIssuer()
        group.stopAndJoin()
        api.logSampledRequests()
        log.notice("daemon.stopped")
    }

    /// Serves until a signal stops it; reload signals before that reload. A second stop signal
    /// calls `atExit` and ends the process at once.
    func runUntilStopped(
        _ signals: Signals, _ supervisor: Supervisor, _ reloads: Reloads, _ socket: ControlSocket?,
        atExit: @escaping @Sendable () -> Void
    ) async {
        supervisor.ready(status)
        while case .reload = await signals.next() { _ = await reloads.run() }
        supervisor.stopping()
        EventLoop.current?.spawn { [log] in
            while case .reload = await signals.next() {}
            log.warning("daemon.aborted")
            atExit()
            Machine.exit(.failed)
        }
        await socket?.stop()
        await stop()
    }

    private var status: String { "Serves at \(address)." }

    /// The reloads that signals and callers of the control socket ask for. A service manager is told
    /// of each.
    private func reloads(_ supervisor: Supervisor) -> Reloads {
        Reloads { actor in
            supervisor.reloading(at: SystemTime().instant())
            let outcome = await self.reload(by: actor)
            supervisor.ready(outcome.status ?? self.status)
            return outcome
        }
    }

    /// Starts the control socket on a loop that serves no requests. Nil if there is none.
    private func listen(
        _ listener: ControlListener?, _ commands: any ControlCommands, _ reloads: Reloads, on main: EventLoop
    ) throws(Failure) -> ControlSocket? {
        guard let listener, let control else { return nil }
        control.use(listener)
        let runner = ControlRunner(resources: control, commands: commands, log: log) { actor throws(Failure) in
            do throws(SystemFailure) {
                return try EventLoop.run("reload", time: SystemTime()) { _ in
                    await main.perform { await reloads.run(actor) }
                }
            } catch {
                throw Failure(.failed, "nothing was reloaded: \(error)", next: "Raise the limit of open files.")
            }
        }
        do throws(SystemFailure) {
            let socket = try ControlSocket(listener, runner, on: main, log: log)
            try socket.start()
            return socket
        } catch {
            throw Failure(.failed, "control.socket: \(error)", next: "Raise the limit of open files and threads.")
        }
    }

    /// Runs the whole life of the process on the calling thread.
    public static func run(
        _ settings: Settings, _ files: LoadedFiles, _ inherited: InheritedSockets, _ supervisor: Supervisor,
        _ listener: ControlListener?, _ commands: any ControlCommands, hardening: Hardening?,
        reread: @escaping @Sendable () throws(Failure) -> SettingsOfFile
    ) throws(Failure) {
        try MainThread.run(settings.log) { main, signals, written async throws(Failure) in
            let daemon = try await Daemon.start(
                settings, files, inherited, hardening: hardening, log: written.log, reread: reread)
            let reloads = daemon.reloads(supervisor)
            let socket = try daemon.listen(listener, commands, reloads, on: main)
            supervisor.watch([main] + daemon.group.loops, on: main)
            await daemon.runUntilStopped(signals, supervisor, reloads, socket) { written.close() }
        }
    }
}
