import API
import Bytes
import Couriers
import Crypto
import EST
import EventLoop
import HTTP
import HTTP2
import Hardening
import KeyService
import Log
import Metrics
import Pushes
import Relay
import Storage
import TLS
import Templates
import WebPush
import World

/// The parts of a daemon that exist before it listens: store, senders, couriers, loops, relay and
/// API.
///
/// Purpose: this is the one place where the modules are connected. Each part gets its store, clock,
/// log and metrics here.
///
/// Order: the files are loaded and the process is restricted before `init` runs, so every thread
/// that starts here inherits the restrictions. `init` opens the store before the parts that may
/// still fail.
///
/// Failure modes: if a part fails, `init` closes the store. If the daemon cannot listen afterwards,
/// `Daemon.start` calls `close`. After a successful start, `Daemon.stop` closes the same parts in
/// an order that lets requests and deliveries end.
///
/// The tests of whole programs cover it: `DrainTests.swift` the stop, `KeyProcessTests.swift` a
/// start without the key service.
final class Components: Sendable {
    /// Held until the store is closed; nil for a store that relays share.
    let storeLock: StoreLock?
    let store: Store
    let push: APNsSender?
    let fcm: FCMSender?
    let webPush: WebPushSender?
    let couriers: ActiveCouriers
    let webhookCourier: ActiveWebhookCourier
    let catalog: CurrentCatalog
    let group: LoopGroup
    let relay: Relay
    let backgroundWork = BackgroundWork()
    let directories: DirectoryWork
    /// The resources of the control socket; nil if there is none.
    let control: ControlResources?
    let geolocation: Geolocation
    let attestations: AttestationHealth
    let certificates: Certificates
    let websiteExpiries: WebsiteExpiries
    let hardening: Hardening?
    let operationsKey: Secret
    /// Ends what requests certificates from the key service or from an EST server.
    let closeIssuer: @Sendable () -> Void
    /// The key service as the issuer of websites' certificates; nil without one.
    let keyService: RemoteCertificates?
    let registry = Registry()
    let dependencies: DependencyMetrics
    let proxies: Proxies
    let admission: AdmissionControl
    let handshakes: HandshakeRecord
    private let drawing: QRThread
    let api: API

    init(_ settings: Settings, _ files: LoadedFiles, _ hardening: Hardening?, log: Log) async throws(Failure) {
        self.hardening = hardening
        Hardening.show(hardening, in: registry)
        let time = SystemTime()
        ProcessMetrics.show(startedAt: time.now(), in: registry)
        let randomness = SystemRandomness()
        let url = try settings.store()
        let proxies = Proxies(settings.proxies?.all ?? [])
        self.proxies = proxies
        admission = ConnectionLimits.admission(settings.connections, time: time, log: log, registry)
        handshakes = ConnectionLimits.handshakes(time: time, log: log, registry)
        registry.counter(
            "twoefay_proxied_connections_refused_total",
            "Connections from load balancers refused for a missing or invalid PROXY header."
        ) { proxies.refused }
        geolocation = Geolocation(files.geolocation)
        attestations = AttestationHealth(settings, files.attestations, time: time, log: log, registry)
        operationsKey = files.keys.relay.operations
        certificates = Certificates(files.certificates, time: time, log: log, registry)
        websiteExpiries = WebsiteExpiries(time: time, log: log, registry)
        catalog = CurrentCatalog(files.wording)
        webhookCourier = ActiveWebhookCourier(files.webhooks, time: time, log: log)
        var options = StoreOptions()
        options.rows = try files.keys.usableRowAuthenticator()
        options.personal = settings.personalSealer(try files.keys.usableSealer())
        options.author = AuditAuthor(
            program: "relay", host: HostName.current, actor: "relay \(HostName.current)")
        storeLock = try StoreLock(url)
        do {
            options.watches = true
            store = try Store.open(url, time: time, log: log, options: options)
        } catch {
            throw Failure(store: error)
        }
        StoreMetrics.show(store, in: registry)
        DaemonLog.show(log, in: registry)
        do {
            push = try files.push.map { [registry] push in
                let sender = try push.sender(
                    time: time, randomness: randomness, log: log, observer: PushMetrics(of: .apns, registry))
                PushMetrics.show(.apns, in: registry) { sender.snapshot() }
                return sender
            }
            fcm = try files.fcm.map { [registry] fcm in
                let sender = try fcm.sender(
                    time: time, randomness: randomness, log: log, observer: PushMetrics(of: .fcm, registry))
                PushMetrics.show(.fcm, in: registry) { sender.snapshot() }
                return sender
            }
            webPush = files.webPush?.sender(time: time, randomness: randomness, log: log)
            let issuer: any PhoneCertificates
            let close: @Sendable () -> Void
            (issuer, close) = try files.issuer.start(time: time)
            keyService = try settings.keys.map {
                try RemoteCertificates(KeyServiceClient(path: settings.path(of: $0)), time: time)
            }
            closeIssuer = { [keyService] in
                close()
                keyService?.close()
            }
            group = try LoopGroup.start(count: settings.loopCount, time: time)
            try store.read(on: group.loops)
            let epoch = try await InstallationEpoch.read(from: store, on: group.loops[0])
            drawing = try QRThread()
            couriers = ActiveCouriers(
                catalog: catalog, usage: store, backgroundWork: backgroundWork, loop: group.loops[0], time: time,
                log: log, drawing: drawing, registry)
            let first = try couriers.successors(files)
            couriers.activate(first)
            relay = Relay(
                settings: Relay.Settings(
                    origin: settings.origin.settingsText, browsers: settings.browsers,
                    pin: files.authority.spkiThumbprint, policy: settings.policy,
                    isAlone: url.isEmbedded, retention: settings.retention, quotas: settings.quotas,
                    rolling: settings.rolling),
                store: store, push: PushServices(apns: push, fcm: fcm, web: webPush), couriers: first.ways,
                webhooks: webhookCourier.courier, phones: issuer,
                keys: files.keys.relay.bound(to: epoch), sealer: try files.keys.sealer(), statements: files.statements,
                attestations: files.attestations.verifier, time: time,
                randomness: randomness, log: log, metrics: RelayMetrics(registry),
                locate: { [geolocation] ip in geolocation.place(of: ip) },
                distance: { [geolocation] ip, place in geolocation.distance(of: ip, to: place) },
                later: { work in if let loop = EventLoop.current { loop.post(work) } else { work() } },
                spawn: { [backgroundWork] work in backgroundWork.spawn(work) })
            relay.replace(
                pin: files.authority.spkiThumbprint, statement: files.pins, formerPin: files.formerPin)
            relay.replace(websites: files.websites?.certificates(by: keyService))
            directories = try DirectoryWork(
                settings, store: store, relay: relay.id, operationsKey: operationsKey, sealer: try files.keys.sealer(),
                randomness: randomness, time: time, log: log, registry)
            control = try ControlResources.open(settings, files.keys, beside: store, options, log: log)
        } catch let failure as Failure {
            store.close()
            throw failure
        } catch {
            store.close()
            throw Failure(.failed, "\(error)", next: "Correct the settings, then try again.")
        }
        var dependencies = [Dependency("store") { [relay] in await relay.storeTrouble() }]
        dependencies.append(Dependency("log") { DaemonLog.fault(log) })
        dependencies.append(
            Dependency("mail", isNeeded: { [couriers] in couriers.mail != nil }) { [couriers] in
                couriers.mail?.fault
            })
        if let push { dependencies.append(Dependency("push") { push.fault }) }
        if let fcm { dependencies.append(Dependency("fcm") { fcm.fault }) }
        dependencies.append(
            Dependency("sms", isNeeded: { [couriers] in couriers.texts != nil }) { [couriers] in
                couriers.texts?.fault
            })
        dependencies.append(
            Dependency("attestation", isAdvisory: true, isNeeded: { [attestations] in attestations.isNeeded }) {
                [attestations] in attestations.fault
            })
        if let keys = files.issuer.dependency { dependencies.append(keys) }
        // Other callers are served all the same: an expired list locks out those of one authority.
        dependencies.append(Dependency("certificates", isAdvisory: true) { [certificates] in certificates.fault })
        if let hardening {
            dependencies.append(Dependency("hardening", isAdvisory: true) { hardening.fault })
        }
        self.dependencies = DependencyMetrics(dependencies, in: registry)
        api = API(
            settings: API.Settings(
                origin: settings.origin.settingsText, browserOrigin: settings.browsers?.origin,
                applicationServerKey: webPush?.applicationServerKey),
            relay: relay,
            dependencies: dependencies, drawing: drawing, time: time, randomness: randomness, log: log,
            registry: registry, atTurnEnd: { EventLoop.atTurnEnd($0) })
    }

    func close() {
        directories.stop()
        directories.close()
        push?.close()
        fcm?.close()
        webPush?.close()
        couriers.mail?.close()
        webhookCourier.close()
        control?.close()
        store.close()
        closeIssuer()
        drawing.close()
        group.stopAndJoin()
    }
}

extension Settings {
    /// The number of loops, which is that of the cores if the settings leave it open.
    var loopCount: Int { loops > 0 ? loops : Machine.cores }
}

extension InstallationEpoch {
    /// Returns the epoch to which a relay binds what it hands out. A store that is being restored is
    /// refused: it has rights that the restore has not taken away yet.
    fileprivate static func read(from store: Store, on loop: EventLoop) async throws(Failure) -> [UInt8] {
        let read = await loop.perform { () async -> Result<InstallationEpoch?, StoreFailure> in
            do throws(StoreFailure) {
                return .success(try await store.run(current))
            } catch {
                return .failure(error)
            }
        }
        do throws(StoreFailure) {
            guard let epoch = try read.get() else { return [] }
            guard !epoch.isReady else { return epoch.id }
        } catch {
            throw Failure(store: error)
        }
        throw Failure(
            .conflict, "the store is not completely restored",
            next: "Run 'twoefay restore' again, with the same file: it continues where it was interrupted.")
    }
}

extension PhoneIssuer {
    /// Returns the issuer of certificates for the relay, and what ends it.
    func start(time: any TimeSource) throws(SystemFailure) -> (any PhoneCertificates, @Sendable () -> Void) {
        switch self {
        case .authority(let authority): return (authority, {})
        case .service(let client):
            let remote = try RemoteCertificates(client, time: time)
            return (remote, { remote.close() })
        case .est(let options, let root):
            let issuer = ESTIssuer(options)
            return (OutsideAuthority(issuer, root: root, time: time), { issuer.close() })
        case .command(let client, let command, let root):
            let issuer = try CommandIssuer(
                client, issuesTagged: command.documents == .on, timeout: .seconds(command.seconds), time: time)
            return (OutsideAuthority(issuer, root: root, time: time), { issuer.close() })
        }
    }

    /// The dependency on the key service for `/ready`; nil if the key is in this process.
    var dependency: Dependency? {
        switch self {
        case .service(let client), .command(let client, _, _):
            return Dependency("key_service", isAdvisory: true) { client.fault }
        case .authority, .est: return nil
        }
    }
}

extension LoadedFiles.Push {
    var proof: APNsCredential {
        switch credential {
        case .token(let key, let keyID, let teamID): .token(key: key, keyID: keyID, teamID: teamID)
        case .certificate(let chain, let key): .certificate(chainPEM: chain, key: key)
        }
    }

    func sender(
        time: any TimeSource, randomness: any Randomness, log: Log, observer: any PushObserver
    ) throws -> APNsSender {
        try APNsSender(
            endpoint: PushEndpoint(host: endpoint.host, port: endpoint.port ?? 443), topic: topic, credential: proof,
            extraTrust: authority, time: time, randomness: randomness, log: log, observer: observer)
    }
}

extension LoadedFiles.FCM {
    func sender(
        time: any TimeSource, randomness: any Randomness, log: Log, observer: any PushObserver
    ) throws -> FCMSender {
        try FCMSender(
            endpoint: PushEndpoint(host: endpoint.host, port: endpoint.port ?? 443), account: account,
            trust: authority.map { .systemAnd($0) } ?? .system, time: time, randomness: randomness, log: log,
            observer: observer)
    }
}
