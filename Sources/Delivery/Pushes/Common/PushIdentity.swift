import Log
import Synchronization
import TLS
import World

/// A credential and what was learnt about it. A change of credential makes another identity with
/// its own connections.
final class PushIdentity: Sendable {
    let tls: TLSClientContext
    /// The provider token; nil if the relay authenticates with a certificate.
    let token: ProviderToken?
    /// The provider token of the previous key. A quick return to that key reuses the token, since
    /// Apple would refuse a new one.
    private let formerToken: ProviderToken?
    private let log: Log
    /// The circuit breaker of each host. A key may be valid for only one of Apple's environments,
    /// and the phones determine which host is used. A refusal by one host says nothing about the
    /// other.
    private let circuits = Mutex<[PushEndpoint: CredentialCircuitBreaker]>([:])
    /// Whether any circuit is open. It is rarely true, so most pushes avoid the lock.
    private let isDistrusted = Atomic(false)

    /// - Parameter former: the previous identity. Its provider token, or the one before it, is
    ///   reused if the key is the same.
    init(
        _ credential: APNsCredential, trust: TLSClientContext.Roots, former: PushIdentity? = nil,
        time: any TimeSource, log: Log
    ) throws {
        self.log = log
        let known = [former?.token, former?.formerToken].compactMap(\.self)
        switch credential {
        case .token(let key, let keyID, let teamID):
            tls = try TLSClientContext(roots: trust)
            token =
                try known.first { $0.isOf(key, keyID: keyID, teamID: teamID) }
                ?? ProviderToken(key: key, keyID: keyID, teamID: teamID, time: time, log: log)
        case .certificate(let chainPEM, let key):
            tls = try TLSClientContext(roots: trust, certificateChainPEM: chainPEM, privateKeyPEM: key)
            token = nil
        }
        let own = token
        formerToken = known.first { $0 !== own }
    }

    /// Returns the reason why that host refuses the credential, or nil.
    func fault(at endpoint: PushEndpoint) -> String? { circuits.withLock { $0[endpoint]?.reason } }

    /// Returns whether a push may be sent to the host now.
    func entry(to endpoint: PushEndpoint, at now: () -> Instant) -> CredentialCircuitBreaker.Entry {
        guard isDistrusted.load(ordering: .relaxed) else { return .free }
        return circuits.withLock { $0[endpoint]?.enter(at: now()) } ?? .free
    }

    func learn(
        _ answer: APNsAnswer, _ verdict: PushVerdict, from endpoint: PushEndpoint, bearer: String?,
        at now: () -> Instant
    ) {
        if let token, let bearer {
            switch verdict.credential {
            case .renew: token.replace(bearer)
            case .holdRenewal: token.tooMany(bearer)
            case .keep, .distrust: break
            }
        }
        if verdict.credential == .distrust {
            let isNew = circuits.withLock { circuits in
                isDistrusted.store(true, ordering: .relaxed)
                return circuits[endpoint, default: CredentialCircuitBreaker()].distrust(answer.text, at: now())
            }
            guard isNew else { return }
            log.error(
                "apns.credential.refused",
                [.host: endpoint.host, .status: answer.status, .reason: answer.reason])
        } else if answer.meaning.provesCredential, isDistrusted.load(ordering: .relaxed) {
            let isNew = circuits.withLock { circuits in
                defer { isDistrusted.store(!circuits.isEmpty, ordering: .relaxed) }
                return circuits.removeValue(forKey: endpoint) != nil
            }
            guard isNew else { return }
            log.notice("apns.credential.accepted", [.host: endpoint.host])
        }
    }
}

extension APNsAnswer.Meaning {
    /// Whether Apple gives this answer only to a client whose credential it accepts.
    var provesCredential: Bool {
        switch self {
        case .accepted, .badToken, .foreignToken, .goneToken, .busyDevice: true
        case .ourMistake, .idleConnection, .refusedCredential, .expiredCredential, .unrelatedKey, .tooManyRenewals,
            .serverTrouble:
            false
        }
    }
}
