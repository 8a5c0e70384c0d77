import APNs
import API
import Bytes
import Couriers
import Crypto
import Domain
import EventLoop
import HTTP
import HTTP1
import HTTP2
import Log
import Metrics
import Relay
import Storage
import Synchronization
import TLS
import WebPush
import Wording
import World

/// The relay on its loops: a store, one HTTP/2 server a loop, the rounds that keep the outbox moving, and a page of
/// counters if one is wanted.
public final class Daemon: Sendable {
    public let settings: Settings
    public let port: UInt16
    public let relay: Relay
    private let store: Store
    private let push: APNsSender?
    private let webPush: WebPushSender?
    private let messengers: Messengers
    private let words: WordingBook
    private let group: LoopGroup
    private let servers: [LoopBound<HTTP2Server>]
    private let page: LoopBound<HTTP1Server>?
    private let places: Places
    private let rounds: Rounds
    private let errands: Errands
    private let certificates: Certificates
    /// The thumbprint of the authority that activations name.
    private let pin: [UInt8]
    /// What operations follow from, as long as this process lives.
    private let operationsKey: Secret
    /// Reads the settings again, where somebody can.
    private let reread: @Sendable () throws(Failure) -> Settings
    private let log: Log

    /// Starts. When this returns, it listens.
    public static func start(
        _ settings: Settings, log: Log, reread: (@Sendable () throws(Failure) -> Settings)? = nil
    ) async throws(Failure) -> Daemon {
        let materials = try Materials.load(settings, at: SystemTime().now())
        let parts = try Parts(settings, materials, log: log)
        do {
            return try await Daemon(
                settings, try materials.tls(), materials.authority.spkiThumbprint, parts, log: log,
                reread: reread ?? { () throws(Failure) in settings })
        } catch {
            parts.close()
            throw error
        }
    }

    private init(
        _ settings: Settings, _ tls: TLSServerContext, _ pin: [UInt8], _ parts: Parts, log: Log,
        reread: @escaping @Sendable () throws(Failure) -> Settings
    ) async throws(Failure) {
        self.settings = settings
        self.pin = pin
        self.log = log
        self.reread = reread
        store = parts.store
        push = parts.push
        webPush = parts.webPush
        messengers = parts.messengers
        words = parts.words
        group = parts.group
        relay = parts.relay
        errands = parts.errands
        places = parts.places
        certificates = parts.certificates
        operationsKey = parts.operationsKey
        let relay = parts.relay
        page = try await MetricsPage.start(settings, parts.registry, on: parts.group.loops[0], log: log)
        // Known as alive before the first request: what a relay without a beat holds counts as left behind.
        await parts.group.loops[0].perform { await relay.keep() }
        (servers, port) = try await Self.listen(settings, tls, parts, log: log)
        rounds = Rounds(relay: parts.relay, certificates: parts.certificates, loop: parts.group.loops[0])
        // Before the first login wants them.
        for loop in group.loops { loop.post { [push] in push?.warmUp() } }
        log.notice("daemon.started", [.address: "\(settings.listen.host):\(port)", .count: group.loops.count])
    }

    /// What must be closed again if the start fails.
    private final class Parts: Sendable {
        let store: Store
        let push: APNsSender?
        let webPush: WebPushSender?
        let messengers: Messengers
        let words: WordingBook
        let group: LoopGroup
        let relay: Relay
        let errands = Errands()
        let places: Places
        let certificates: Certificates
        let operationsKey: Secret
        let registry = Registry()
        let api: API

        init(_ settings: Settings, _ materials: Materials, log: Log) throws(Failure) {
            let time = SystemTime()
            let randomness = SystemRandomness()
            let url = try settings.store()
            places = Places(materials.places)
            operationsKey = materials.masterKey.secret
            certificates = Certificates(materials.certificates, time: time, log: log, registry)
            words = WordingBook(materials.wording)
            do {
                store = try Store.open(url, time: time, log: log)
            } catch {
                throw Failure(store: error)
            }
            do {
                push = try materials.push.map { [registry] push in
                    let sender = try push.sender(
                        time: time, randomness: randomness, log: log, observer: PushMetrics(registry))
                    PushMetrics.show(sender, in: registry)
                    return sender
                }
                webPush = materials.webPush?.sender(time: time, randomness: randomness, log: log)
                let count = settings.loops > 0 ? settings.loops : Machine.cores
                group = try LoopGroup.start(count: count, time: time)
                messengers = Messengers(
                    words: words, ledger: store, errands: errands, loop: group.loops[0], time: time, log: log, registry)
                let first = try messengers.successors(materials)
                messengers.takeOver(first)
                relay = Relay(
                    settings: Relay.Settings(
                        origin: settings.origin.settingsText, pin: materials.authority.spkiThumbprint,
                        policy: settings.policy,
                        isAlone: url.isEmbedded),
                    store: store, push: PushServices(apns: push, web: webPush), ways: first.ways,
                    phones: materials.phones,
                    masterKey: materials.masterKey.secret, sealer: try materials.masterKey.sealer(), time: time,
                    randomness: randomness, log: log, metrics: RelayMetrics(registry),
                    placeOf: { [places] ip in places.place(of: ip) },
                    spawn: { [errands] work in errands.spawn(work) })
            } catch let failure as Failure {
                store.close()
                throw failure
            } catch {
                store.close()
                throw Failure(.failed, "\(error)", next: "Mend the settings, then try again.")
            }
            var dependencies = [Dependency("store") { [relay] in await relay.storeTrouble() }]
            dependencies.append(
                Dependency("mail", isNeeded: { [messengers] in messengers.mail != nil }) { [messengers] in
                    messengers.mail?.trouble
                })
            if let push { dependencies.append(Dependency("push") { push.trouble }) }
            dependencies.append(
                Dependency("sms", isNeeded: { [messengers] in messengers.texts != nil }) { [messengers] in
                    messengers.texts?.trouble
                })
            api = API(
                settings: API.Settings(
                    origin: settings.origin.settingsText, applicationServerKey: webPush?.applicationServerKey),
                relay: relay,
                dependencies: dependencies, time: time, randomness: randomness, log: log)
        }

        func close() {
            push?.close()
            webPush?.close()
            messengers.mail?.close()
            store.close()
            group.stopAndJoin()
        }
    }

    /// One listener for each loop, all on one port: the kernel spreads the connections.
    private static func listen(
        _ settings: Settings, _ tls: TLSServerContext, _ parts: Parts, log: Log
    ) async throws(Failure) -> ([LoopBound<HTTP2Server>], port: UInt16) {
        var servers: [LoopBound<HTTP2Server>] = []
        var port = settings.listen.port
        for loop in parts.group.loops {
            guard let address = SocketAddress(host: settings.listen.host, port: port) else {
                throw Failure(
                    .failed, "listen: \(settings.listen.host) is not an address of this machine",
                    next: "Give an IP address, such as 0.0.0.0 or [::] for all.")
            }
            let api = parts.api
            let isFirst = servers.isEmpty
            let outcome = await loop.perform { () async -> Result<(LoopBound<HTTP2Server>, UInt16), Failure> in
                do {
                    if isFirst { try Socket.requireFree(address) }
                    let server = try HTTP2Server(loop: loop, address: address, tls: tls, handler: api, log: log)
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

    /// Takes no new connection, lets what is begun end, then closes everything.
    public func stop() async {
        log.notice("daemon.stopping")
        rounds.stop()
        await withTaskGroup(of: Void.self) { drains in
            for server in servers {
                drains.addTask {
                    await withCheckedContinuation { continuation in
                        server.loop.post { server.value.drain { continuation.resume() } }
                    }
                }
            }
        }
        // Pushes on their way are let come to their end, which closing the sender then makes a quick one. What is still
        // to be sent goes to whoever starts next, at once: no other relay has to find out that this one is gone.
        await errands.settled(within: .seconds(3))
        push?.close()
        webPush?.close()
        await messengers.close()
        await errands.settled(within: .seconds(1))
        await group.loops[0].perform { [relay, page] in
            await relay.leave()
            page?.value.stop()
        }
        store.close()
        group.stopAndJoin()
        log.notice("daemon.stopped")
    }

    /// Reads certificates, keys, the master key, revocation lists, words and the database of places again, for the connections,
    /// the messages and the logins to come; of the settings what stands in `settingsNow`.
    /// If anything is wrong with any file, everything stays as it was.
    public func reload() async {
        do throws(Failure) {
            let (now, isLeft) = try settingsNow()
            let materials = try Materials.load(now, at: SystemTime().now())
            guard materials.authority.spkiThumbprint == pin else {
                throw Failure(
                    .failed,
                    "\(settings.path(of: settings.tls.authority)): has another key, and phones pin the old one",
                    next: "A restart takes it, and phones have to be bound again.")
            }
            let tls = try materials.tls()
            let sealer = try materials.masterKey.usableSealer()
            let next = try messengers.successors(materials)
            // The last that can fail: nothing has changed until then.
            try adopt(materials.push)
            messengers.takeOver(next)
            relay.adopt(next.ways)
            places.replace(materials.places)
            relay.adopt(sealer)
            if !Secret.matches(materials.masterKey.secret.reveal(), operationsKey.reveal()) {
                log.warning("daemon.restart", [.reason: "operations follow from another key after a restart"])
            }
            words.replace(materials.wording)
            certificates.replace(materials.certificates)
            for server in servers { await server.loop.perform { server.value.replace(tls: tls) } }
            if isLeft {
                log.warning("daemon.restart", [.reason: "other settings have changed, and hold from the next start on"])
            }
            log.notice("daemon.reloaded", [.keyID: sealer.currentID])
        } catch {
            log.error("daemon.reload", [.error: error.message])
        }
    }

    /// The settings as they were at the start, but for mails, text messages and their words, and for what the push service
    /// knows us by: another key has another id, which stands there. Whether anything else has changed, too.
    private func settingsNow() throws(Failure) -> (Settings, isLeft: Bool) {
        var now = settings
        let new = try reread()
        now.mail = new.mail
        now.templates = new.templates
        now.texts = new.texts
        if now.push.credential != nil, new.push.credential != nil {
            now.push.key = new.push.key
            now.push.keyID = new.push.keyID
            now.push.teamID = new.push.teamID
            now.push.certificate = new.push.certificate
            now.push.certificateKey = new.push.certificateKey
        }
        return (now, now != new)
    }

    /// Pushes to come go out under what was read; those on their way end as they began.
    private func adopt(_ materials: Materials.Push?) throws(Failure) {
        guard let push, let materials else { return }
        do {
            try push.replace(credential: materials.proof)
        } catch {
            throw Failure(
                .failed, "push.apns: \(error)",
                next: "These files are named under 'push.apns' in the settings; mend what is wrong.")
        }
    }

    /// Until it is told to stop. Told again, it ends at once.
    func runUntilStopped(_ signals: Signals) async {
        while case .reload = await signals.next() { await reload() }
        EventLoop.current?.spawn { [log] in
            while case .reload = await signals.next() {}
            log.warning("daemon.aborted")
            Machine.exit(.failed)
        }
        await stop()
    }

    /// The whole life of the process, on the calling thread.
    public static func run(
        _ settings: Settings, log: Log, reread: @escaping @Sendable () throws(Failure) -> Settings
    ) throws(Failure) {
        let main: EventLoop
        let signals: Signals
        do {
            signals = try Signals()
            main = try EventLoop(name: "main", time: SystemTime())
        } catch {
            throw Failure(.failed, "\(error)", next: "The machine is out of something: threads or descriptors.")
        }
        let failure = Mutex<Failure?>(nil)
        main.post {
            main.spawn {
                do throws(Failure) {
                    try await Daemon.start(settings, log: log, reread: reread).runUntilStopped(signals)
                } catch {
                    failure.withLock { $0 = error }
                }
                main.stop()
            }
        }
        main.run()
        if let failure = failure.withLock({ $0 }) { throw failure }
    }
}

extension Materials {
    func tls() throws(Failure) -> TLSServerContext {
        do {
            return try TLSServerContext(
                certificateChainPEM: certificate, privateKeyPEM: key, websitesCA: websites,
                phonesCA: try phones.certificatePEM(), crl: revoked)
        } catch {
            throw Failure(
                .failed, "tls: \(error)", next: "These files are named under 'tls' in the settings; mend what is wrong."
            )
        }
    }
}

extension Materials.Push {
    var proof: APNsCredential {
        switch credential {
        case .token(let key, let keyID, let teamID): .token(key: key, keyID: keyID, teamID: teamID)
        case .certificate(let chain, let key): .certificate(chainPEM: chain, key: key)
        }
    }

    func sender(
        time: any TimeSource, randomness: any Randomness, log: Log, observer: any APNsObserver
    ) throws -> APNsSender {
        try APNsSender(
            endpoint: APNsEndpoint(host: endpoint.host, port: endpoint.port ?? 443), topic: topic, credential: proof,
            extraTrust: authority, time: time, randomness: randomness, log: log, observer: observer)
    }
}
