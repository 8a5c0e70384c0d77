import Log
import Synchronization
import TLS
import World

/// Who we are for the service: one credential, and what was learnt about it. Another credential is another identity, with
/// connections of its own.
final class APNsIdentity: Sendable {
    let tls: TLSClientContext
    /// Nil where a certificate speaks for us.
    let token: ProviderToken?
    /// Of the key before: who goes back to it soon goes on with its token, since Apple would not have another.
    private let formerToken: ProviderToken?
    private let log: Log
    /// For each host one: a key may be for one of Apple's environments alone, and it is the phone that says where it is to
    /// be reached. What the one host says against us says nothing about the other.
    private let circuits = Mutex<[APNsEndpoint: CredentialCircuitBreaker]>([:])
    /// Whether any of them is worth asking: it hardly ever is.
    private let isDistrusted = Atomic(false)

    /// - Parameter former: whose provider token, or that before it, goes on if the key is the same.
    init(
        _ credential: APNsCredential, trust: TLSClientContext.Roots, former: APNsIdentity? = nil,
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

    /// Why that host refuses it.
    func fault(at endpoint: APNsEndpoint) -> String? { circuits.withLock { $0[endpoint]?.reason } }

    /// Whether a push may be sent there now.
    func entry(to endpoint: APNsEndpoint, at now: () -> Instant) -> CredentialCircuitBreaker.Entry {
        guard isDistrusted.load(ordering: .relaxed) else { return .free }
        return circuits.withLock { $0[endpoint]?.enter(at: now()) } ?? .free
    }

    func learn(
        _ answer: APNsAnswer, _ verdict: APNsVerdict, from endpoint: APNsEndpoint, bearer: String?,
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
    /// Whether Apple says such a thing only to whom it knows.
    var provesCredential: Bool {
        switch self {
        case .accepted, .badToken, .foreignToken, .goneToken, .busyDevice: true
        case .ourMistake, .idleConnection, .refusedCredential, .expiredCredential, .unrelatedKey, .tooManyRenewals,
            .serverTrouble:
            false
        }
    }
}
