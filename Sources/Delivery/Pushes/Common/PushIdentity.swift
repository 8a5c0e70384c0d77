import Log
import Synchronization
import TLS
import World

/// A credential and what was learnt about it. A change of credential makes another identity with
/// its own connections.
final class PushIdentity: Sendable {
    let tls: TLSClientContext
    /// The token that requests carry; nil if the relay authenticates with a certificate.
    let authorization: (any PushAuthorization)?
    /// The token of the previous key. A quick return to that key reuses the token, since Apple would
    /// refuse a new one.
    let formerAuthorization: (any PushAuthorization)?
    private let events: PushEvents
    private let log: Log
    /// The circuit breaker of each host. A key may be valid for only one of Apple's environments,
    /// and the phones determine which host is used. A refusal by one host says nothing about the
    /// other.
    private let circuits = Mutex<[PushEndpoint: CredentialCircuitBreaker]>([:])
    /// Whether any circuit is open. It is rarely true, so most pushes avoid the lock.
    private let isDistrusted = Atomic(false)

    init(
        tls: TLSClientContext, authorization: (any PushAuthorization)?,
        formerAuthorization: (any PushAuthorization)? = nil, events: PushEvents, log: Log
    ) {
        self.tls = tls
        self.authorization = authorization
        self.formerAuthorization = formerAuthorization
        self.events = events
        self.log = log
    }

    /// Returns the reason why that host refuses the credential, or nil.
    func fault(at endpoint: PushEndpoint) -> String? { circuits.withLock { $0[endpoint]?.reason } }

    /// Returns whether a push may be sent to the host now.
    func entry(to endpoint: PushEndpoint, at now: () -> Instant) -> CredentialCircuitBreaker.Entry {
        guard isDistrusted.load(ordering: .relaxed) else { return .free }
        return circuits.withLock { $0[endpoint]?.enter(at: now()) } ?? .free
    }

    func learn(
        _ answer: any PushAnswer, _ verdict: PushVerdict, from endpoint: PushEndpoint, bearer: String?,
        at now: () -> Instant
    ) {
        if let authorization, let bearer {
            switch verdict.credential {
            case .renew: authorization.replace(bearer)
            case .holdRenewal: authorization.tooMany(bearer)
            case .keep, .distrust: break
            }
        }
        if verdict.credential == .distrust {
            distrust(
                answer.text, from: endpoint, at: now,
                [.host: endpoint.host, .status: answer.status, .reason: answer.reason])
        } else if answer.meaning.provesCredential, isDistrusted.load(ordering: .relaxed) {
            let isNew = circuits.withLock { circuits in
                defer { isDistrusted.store(!circuits.isEmpty, ordering: .relaxed) }
                return circuits.removeValue(forKey: endpoint) != nil
            }
            guard isNew else { return }
            log.notice(events.credentialAccepted, [.host: endpoint.host])
        }
    }

    /// Opens the circuit of the host, and logs it if it was closed.
    func distrust(
        _ reason: String, from endpoint: PushEndpoint, at now: () -> Instant, _ fields: @autoclosure () -> LogFields
    ) {
        let isNew = circuits.withLock { circuits in
            isDistrusted.store(true, ordering: .relaxed)
            return circuits[endpoint, default: CredentialCircuitBreaker()].distrust(reason, at: now())
        }
        if isNew { log.error(events.credentialRefused, fields()) }
    }
}
