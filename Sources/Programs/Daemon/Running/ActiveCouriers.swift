import Bytes
import Couriers
import Curl
import Domain
import EventLoop
import Log
import Metrics
import Relay
import SMS
import Storage
import Synchronization
import Templates
import World

/// The couriers for mails and text messages that are in use now.
///
/// A reload replaces them in two steps. `successors` creates the new couriers and may throw;
/// `activate` puts them into use and cannot fail. A message that is being sent ends with the
/// courier that began it. A courier whose settings and files are unchanged is kept, with its
/// connections and with what is known of its health. Tested in `CourierReloadTests.swift`.
final class ActiveCouriers: Sendable {
    fileprivate struct State {
        var mail: Active<LoadedFiles.Mail, MailCourier>?
        var texts: SMSCourier?
        var gateways: [String: Active<LoadedFiles.SMSFiles.Gateway, any SMSGateway>] = [:]
    }

    /// A courier or gateway in use, with the settings and files that it was made from.
    fileprivate struct Active<Material: Sendable, Holder: Sendable>: Sendable {
        let material: Material
        let courier: Holder
    }

    /// The couriers of a reload, created but not yet in use.
    struct Replacement: Sendable {
        fileprivate let state: State
        fileprivate let setup: SMSDispatcher.Setup
        let ways: MessageCouriers
    }

    private let state = Mutex(State())
    /// The dispatcher for all gateways. It lives as long as the process, because it knows which
    /// gateway may already have a message.
    private let exchange: SMSDispatcher
    private let metrics: SMSMetrics
    private let catalog: CurrentCatalog
    private let usage: any SMSUsageStore
    private let backgroundWork: BackgroundWork
    private let loop: EventLoop
    private let time: any TimeSource
    private let log: Log
    private let drawing: QRThread

    init(
        catalog: CurrentCatalog, usage: any SMSUsageStore, backgroundWork: BackgroundWork, loop: EventLoop,
        time: any TimeSource, log: Log, drawing: QRThread,
        _ registry: Registry
    ) {
        metrics = SMSMetrics(registry)
        exchange = SMSDispatcher(
            SMSDispatcher.Setup([], routing: SMSRouting([])), time: time, log: log, observer: metrics)
        self.catalog = catalog
        self.usage = usage
        self.backgroundWork = backgroundWork
        self.loop = loop
        self.time = time
        self.log = log
        self.drawing = drawing
    }

    /// Creates the couriers for the files that were read. Everything in a reload of couriers that
    /// can fail happens here; nothing changes before `activate`.
    func successors(_ files: LoadedFiles) throws(Failure) -> Replacement {
        let now = state.withLock { $0 }
        var next = State()
        if let mail = files.mail {
            if let post = now.mail, post.material.isSame(as: mail) {
                next.mail = post
            } else {
                let courier = mail.courier(catalog, time: time, log: log) { [drawing] in await drawing.png(of: $0) }
                next.mail = Active(material: mail, courier: courier)
            }
        }
        let texts = files.texts
        for gateway in texts?.gateways ?? [] {
            if let post = now.gateways[gateway.form.name], post.material.isSame(as: gateway) {
                next.gateways[gateway.form.name] = post
            } else {
                let made = try gateway.made(on: loop, time: time, log: log)
                next.gateways[gateway.form.name] = Active(material: gateway, courier: made)
            }
        }
        next.texts = texts.map { texts in
            SMSCourier(
                exchange, limits: texts.limits, catalog: catalog, usage: usage, time: time, log: log,
                spawn: { [backgroundWork] work in backgroundWork.spawn(work) })
        }
        return Replacement(
            state: next,
            setup: texts?.setup(next.gateways.mapValues(\.courier)) ?? SMSDispatcher.Setup([], routing: SMSRouting([])),
            ways: MessageCouriers(
                mail: next.mail?.courier, texts: next.texts, smsLimits: texts?.limits ?? SMSLimits()))
    }

    /// Puts new couriers into use. A replaced courier is released when its messages in flight have
    /// ended.
    func activate(_ successors: Replacement) {
        metrics.know(Array(successors.state.gateways.keys))
        exchange.adopt(successors.setup)
        state.withLock { $0 = successors.state }
    }

    /// The courier for mails; nil if no mail server is set.
    var mail: MailCourier? { state.withLock { $0.mail }?.courier }
    /// The courier for text messages; nil if no gateway is set.
    var texts: SMSCourier? { state.withLock { $0.texts } }

    func close() async {
        mail?.close()
        await exchange.close()
    }
}

extension LoadedFiles.Mail {
    fileprivate func isSame(as other: LoadedFiles.Mail) -> Bool {
        from == other.from && server.address == other.server.address && server.name == other.server.name
            && server.extraTrust == other.server.extraTrust && server.login?.username == other.server.login?.username
            && Secret.areSame(server.login?.password, other.server.login?.password)
    }
}

extension LoadedFiles.SMSFiles.Gateway {
    fileprivate func isSame(as other: LoadedFiles.SMSFiles.Gateway) -> Bool {
        guard form == other.form, from == other.from, authority == other.authority,
            Secret.areSame(password, other.password)
        else { return false }
        switch (mail, other.mail) {
        case (nil, nil): return true
        case (let mail?, let other?): return mail.isSame(as: other)
        default: return false
        }
    }
}

extension Secret {
    fileprivate static func areSame(_ a: Secret?, _ b: Secret?) -> Bool {
        guard let a, let b else { return a == nil && b == nil }
        return matches(a.reveal(), b.reveal())
    }
}
