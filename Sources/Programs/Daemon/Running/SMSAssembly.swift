import Bytes
import Couriers
import Curl
import Domain
import EventLoop
import Log
import Metrics
import Relay
import SMPP
import SMS
import TLS
import Templates
import World

extension LoadedFiles.SMSFiles {
    /// Creates a dispatcher that routes messages to these gateways.
    public func exchange(on loop: EventLoop, time: any TimeSource, log: Log) throws(Failure) -> SMSDispatcher {
        var made: [String: any SMSGateway] = [:]
        for gateway in gateways { made[gateway.form.name] = try gateway.made(on: loop, time: time, log: log) }
        return SMSDispatcher(setup(made), time: time, log: log)
    }

    /// Returns the routing of phone numbers to gateways, with the time limit of each gateway.
    func setup(_ made: [String: any SMSGateway]) -> SMSDispatcher.Setup {
        let forms = gateways.map(\.form)
        let routes = forms.map {
            SMSRouting.Route(gateway: $0.name, prefixes: $0.prefixes, priority: $0.priority, tariff: $0.cost)
        }
        let waits = forms.map { ($0.name, Duration.seconds(Int64($0.timeout))) }
        return SMSDispatcher.Setup(
            Array(made.values), routing: SMSRouting(routes), limits: Dictionary(waits) { first, _ in first })
    }
}

extension LoadedFiles.SMSFiles.Gateway {
    func made(on loop: EventLoop, time: any TimeSource, log: Log) throws(Failure) -> any SMSGateway {
        if case .smpp(let line) = form.kind {
            return SMPPGateway(
                name: form.name, options: try options(line),
                limit: .seconds(Int64(form.timeout)), loop: loop, randomness: SystemRandomness(), log: log)
        }
        if case .mail(let mailed) = form.kind, let mail {
            return MailGateway(
                name: form.name, form: mailed.form, from: mail.from, username: mailed.username ?? "",
                password: password, client: SMTPClient(mail.server, time: time), time: time)
        }
        var options = HTTPGateway.Options()
        options.extraTrust = authority
        guard let dialect = dialect() else {
            // The reader of the settings has already checked everything that could be wrong with
            // the URL.
            throw Failure(
                .failed, "gateway \(form.name): its url is not valid",
                next: "docs/operators/sms.md describes what each kind needs.")
        }
        return HTTPGateway(name: form.name, dialect: dialect, options: options)
    }

    /// The reason why the gateway cannot be created; nil if it can.
    var fault: String? {
        guard case .smpp(let line) = form.kind else { return nil }
        do throws(Failure) {
            _ = try options(line)
            return nil
        } catch {
            return error.message
        }
    }

    private func options(_ line: Settings.SMSGatewaySettings.SMPPSettings) throws(Failure) -> SMPPOptions {
        var options = SMPPOptions(host: line.host, port: line.port, systemID: line.systemID, password: password)
        options.systemType = line.systemType
        options.mode = line.mode
        options.window = line.window
        options.throughput = line.throughput
        options.receipts = line.receipts
        options.source = from.flatMap { SMPPAddress($0) }?.typed(line.source)
        options.destinationKind = line.destination
        options.longTexts = line.longTexts
        let fault: String?
        do {
            if line.isTLS {
                options.tls = try TLSClientContext(
                    roots: authority.map { .systemAnd($0) } ?? .system, application: .unnamed)
            }
            let isSender = from == nil || options.source != nil
            fault = options.fault ?? (isSender ? nil : "from must be a number, or at most 11 letters and digits")
        } catch { fault = "\(error)" }
        if let fault {
            throw Failure(
                .failed, "gateway \(form.name): \(fault)", next: "The gateway is under 'sms.gateways' in the settings.")
        }
        return options
    }

    private func dialect() -> (any HTTPGatewayDialect)? {
        switch form.kind {
        case .kannel(let web, let username, let method, let smsc):
            TransferURL(web.url).map {
                Kannel(url: $0, method: method, username: username, password: password, from: from, smsc: smsc)
            }
        case .twilio(let web, let account, let key, let service):
            TransferURL(web.url).flatMap {
                Twilio(
                    at: $0, account: account, key: key, token: password,
                    sender: service.map { .service($0) } ?? .from(from ?? ""))
            }
        case .smpp, .mail: nil
        case .plain(_, let plain):
            GenericHTTPDialect(
                method: plain.method, url: plain.url, fields: plain.fields, contentType: plain.contentType,
                escaping: plain.escaping, body: plain.body, username: plain.username, password: password,
                authorizes: plain.authorizes, from: from, rule: plain.rule)
        }
    }
}

/// The metrics of the gateways. Their series appear when a gateway becomes known from the settings.
struct SMSMetrics: SMSObserver {
    private struct Attempt: Hashable {
        let gateway: String
        let outcome: GatewayOutcome.Word
    }

    private let tried: GrowingCounters<Attempt>
    private let components: GrowingCounters<String>
    private let cost: GrowingCounters<String>
    private let took: Histogram

    init(_ registry: Registry) {
        tried = registry.growingCounters(
            "twoefay_sms_attempts_total",
            "SMS submissions, by outcome: accepted, refused (number), unsuited (to this gateway), busy, down, "
                + "fault (settings or account), ambiguous.",
            by: ["gateway", "outcome"]
        ) { [$0.gateway, $0.outcome.rawValue] }
        components = registry.growingCounters(
            "twoefay_sms_segments_total", "SMS segments that gateways accepted.", by: ["gateway"]
        ) { [$0] }
        cost = registry.growingCounters(
            "twoefay_sms_cost_millionths_total",
            "Cost of accepted SMS segments at the configured prices, in millionths of the currency unit.",
            by: ["gateway"]
        ) { [$0] }
        took = registry.histogram(
            "twoefay_sms_answer_seconds", "Time from submitting a text message to the gateway's answer, in seconds.",
            upTo: [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000].map { .milliseconds($0) })
    }

    /// Creates the series of these gateways.
    func know(_ gateways: [String]) {
        tried.know(
            gateways.flatMap { name in GatewayOutcome.Word.allCases.map { Attempt(gateway: name, outcome: $0) } })
        components.know(gateways)
        cost.know(gateways)
    }

    func tried(gateway: String, _ outcome: GatewayOutcome.Word, after duration: Duration) {
        took.observe(duration)
        tried.add(Attempt(gateway: gateway, outcome: outcome))
    }

    func sent(gateway: String, parts: Int, cost: Int64) {
        self.components.add(gateway, UInt64(parts))
        self.cost.add(gateway, UInt64(cost))
    }
}
