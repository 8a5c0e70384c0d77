import API
import APNs
import Bytes
import Couriers
import Crypto
import EventLoop
import HTTP
import HTTP2
import Log
import Metrics
import Relay
import Storage
import WebPush
import Wording
import World

/// What a daemon is made of before it listens: all that must be closed again if the start fails.
final class Parts: Sendable {
    let store: Store
    let push: APNsSender?
    let webPush: WebPushSender?
    let messengers: Messengers
    let callers: Callers
    let words: WordingBook
    let group: LoopGroup
    let relay: Relay
    let errands = Errands()
    let places: Places
    let certificates: Certificates
    let operationsKey: Secret
    let registry = Registry()
    let proxies: Proxies
    let api: API

    init(_ settings: Settings, _ materials: Materials, log: Log) throws(Failure) {
        let time = SystemTime()
        let randomness = SystemRandomness()
        let url = try settings.store()
        let proxies = Proxies(settings.proxies?.all ?? [])
        self.proxies = proxies
        registry.counter(
            "twoefay_proxied_connections_refused_total",
            "Connections of balancers (proxies in the settings) that did not begin with whose they are."
        ) { proxies.refused }
        places = Places(materials.places)
        operationsKey = materials.masterKey.secret
        certificates = Certificates(materials.certificates, time: time, log: log, registry)
        words = WordingBook(materials.wording)
        callers = Callers(materials.callbacks, time: time, log: log)
        do {
            var options = StoreOptions()
            options.watches = true
            store = try Store.open(url, time: time, log: log, options: options)
        } catch {
            throw Failure(store: error)
        }
        StoreMetrics.show(store, in: registry)
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
                    isAlone: url.isEmbedded, retention: settings.retention),
                store: store, push: PushServices(apns: push, web: webPush), ways: first.ways,
                calls: callers.courier, phones: materials.phones,
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
        callers.close()
        store.close()
        group.stopAndJoin()
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
