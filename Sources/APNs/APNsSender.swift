import Crypto
import EventLoop
import HTTP2
import Log
import Pushing
import Synchronization
import TLS
import World

/// Sends pushes to Apple, or to a service that speaks as Apple does. Each loop has connections of its own.
public final class APNsSender: Sendable {
    private let office: APNsOffice
    private let desks = Mutex<[ObjectIdentifier: LoopBound<APNsDesk>]>([:])

    /// - Parameter extraTrust: certificates (PEM) that the host is believed by, besides the machine's.
    public convenience init(
        endpoint: APNsEndpoint, topic: String, credential: APNsCredential, extraTrust: [UInt8]? = nil,
        time: any TimeSource, randomness: any Randomness, log: Log, options: APNsOptions = APNsOptions()
    ) throws {
        try self.init(
            endpoint: endpoint, topic: topic, credential: credential,
            trust: extraTrust.map { .systemAnd($0) } ?? .system, time: time, randomness: randomness, log: log,
            options: options)
    }

    /// - Parameter trust: whom to believe that the host is the one that was meant.
    public init(
        endpoint: APNsEndpoint, topic: String, credential: APNsCredential, trust: TLSClientContext.Roots,
        time: any TimeSource, randomness: any Randomness, log: Log, options: APNsOptions = APNsOptions()
    ) throws {
        let tls: TLSClientContext
        var token: ProviderToken?
        switch credential {
        case .token(let key, let keyID, let teamID):
            tls = try TLSClientContext(roots: trust)
            token = try ProviderToken(key: key, keyID: keyID, teamID: teamID, time: time, log: log)
        case .certificate(let chainPEM, let key):
            tls = try TLSClientContext(roots: trust, certificateChainPEM: chainPEM, privateKeyPEM: key)
        }
        office = APNsOffice(
            endpoint: endpoint, topic: topic, tls: tls, token: token, time: time, randomness: randomness, log: log,
            options: options)
    }

    /// Whether the text may be a device token.
    public static func isToken(_ text: String) -> Bool { APNsRequest.isToken(text) }

    /// On a loop, whose connection carries it. Answers within `options.deadline` and a little.
    public func send(_ push: APNsNotification) async -> PushOutcome { await currentDesk().value.send(push) }

    /// On a loop: opens its connection, so that the first push does not wait for it.
    public func warmUp() { currentDesk().value.warmUp() }

    /// What keeps pushes from going out, as far as it is known.
    public var trouble: String? { office.trouble }

    /// Closes the connections of all loops. What is on its way is ambiguous.
    public func close() {
        for desk in desks.withLock({ Array($0.values) }) { desk.loop.post { desk.value.close() } }
    }

    private func currentDesk() -> LoopBound<APNsDesk> {
        guard let loop = EventLoop.current else { preconditionFailure("APNsSender: not on a loop") }
        return desks.withLock { desks in
            if let desk = desks[ObjectIdentifier(loop)] { return desk }
            let desk = LoopBound(APNsDesk(loop: loop, office: office), on: loop)
            desks[ObjectIdentifier(loop)] = desk
            return desk
        }
    }
}

public struct APNsOptions: Sendable {
    /// From `send` to its outcome, whatever happens.
    public var deadline: Duration = .seconds(9)
    /// When an answer has not come after so long, the connection is asked whether it still stands.
    public var suspicion: Duration = .seconds(3)
    /// Pushes of one loop that are on their way or wait. More are refused.
    public var capacity = 2000
    public var connectTimeout: Duration = .seconds(5)
    public var pingTimeout: Duration = .seconds(3)

    public init() {}

    var client: ClientOptions {
        var options = ClientOptions()
        options.connectTimeout = connectTimeout
        options.pingTimeout = pingTimeout
        options.maxQueued = capacity
        // Apple's answers are short.
        options.responseBytes = 16_384
        return options
    }
}

/// What the loops share: how to prove who we are, and what was learnt about that.
final class APNsOffice: Sendable {
    private struct State {
        var circuit = CredentialCircuit()
        var doubt = TokenDoubt()
        var unreachable: [APNsEndpoint: String] = [:]
    }

    let endpoint: APNsEndpoint
    let topic: String
    let tls: TLSClientContext
    /// Nil where a certificate speaks for us.
    let token: ProviderToken?
    let time: any TimeSource
    let randomness: any Randomness
    let log: Log
    let options: APNsOptions
    private let state = Mutex(State())

    init(
        endpoint: APNsEndpoint, topic: String, tls: TLSClientContext, token: ProviderToken?, time: any TimeSource,
        randomness: any Randomness, log: Log, options: APNsOptions
    ) {
        self.endpoint = endpoint
        self.topic = topic
        self.tls = tls
        self.token = token
        self.time = time
        self.randomness = randomness
        self.log = log
        self.options = options
    }

    var trouble: String? {
        state.withLock { $0.circuit.reason ?? $0.unreachable.values.sorted().first }
    }

    func reached(_ endpoint: APNsEndpoint, _ trouble: String?) {
        state.withLock { $0.unreachable[endpoint] = trouble.map { "\(endpoint.host): \($0)" } }
    }

    /// Why nothing may be sent now; nil if this push may go.
    func refusal() -> String? {
        guard case .refused(let reason) = state.withLock({ $0.circuit.enter(at: time.instant()) }) else { return nil }
        return reason
    }

    func doubts(_ environment: APNsNotification.Environment) -> Bool { state.withLock { $0.doubt.doubts(environment) } }

    /// What the answer teaches about tokens and about our credential.
    func learn(
        _ answer: APNsAnswer, _ verdict: APNsVerdict, bearer: String?, environment: APNsNotification.Environment
    ) {
        if let token, let bearer {
            switch verdict.credential {
            case .renew: token.replace(bearer)
            case .holdRenewal: token.tooMany(bearer)
            case .keep, .distrust: break
            }
        }
        let changed = state.withLock { state in
            switch answer.meaning {
            case .accepted: state.doubt.accepted(environment)
            case .badToken: state.doubt.bad(environment)
            default: break
            }
            if verdict.credential == .distrust { return state.circuit.distrust(answer.text, at: time.instant()) }
            return answer.meaning.provesCredential && state.circuit.trusted()
        }
        guard changed else { return }
        if verdict.credential == .distrust {
            log.error("apns.credential.refused", [.status: answer.status, .reason: answer.reason])
        } else {
            log.notice("apns.credential.accepted")
        }
    }
}

extension APNsAnswer.Meaning {
    /// Whether Apple says such a thing only to whom it knows.
    fileprivate var provesCredential: Bool {
        switch self {
        case .accepted, .badToken, .foreignToken, .goneToken, .busyDevice: true
        case .ourMistake, .idleConnection, .refusedCredential, .expiredCredential, .unrelatedKey, .tooManyRenewals,
            .serverTrouble:
            false
        }
    }
}
