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
    private let log: Log
    private let circuit = Mutex(CredentialCircuit())
    /// Whether the circuit is worth asking: it hardly ever is.
    private let isDistrusted = Atomic(false)

    /// - Parameter former: whose provider token goes on, if the key is the same.
    init(
        _ credential: APNsCredential, trust: TLSClientContext.Roots, former: APNsIdentity? = nil,
        time: any TimeSource, log: Log
    ) throws {
        self.log = log
        switch credential {
        case .token(let key, let keyID, let teamID):
            tls = try TLSClientContext(roots: trust)
            if let token = former?.token, token.isOf(key, keyID: keyID, teamID: teamID) {
                self.token = token
            } else {
                token = try ProviderToken(key: key, keyID: keyID, teamID: teamID, time: time, log: log)
            }
        case .certificate(let chainPEM, let key):
            tls = try TLSClientContext(roots: trust, certificateChainPEM: chainPEM, privateKeyPEM: key)
            token = nil
        }
    }

    /// Why it is refused.
    var trouble: String? { circuit.withLock { $0.reason } }

    /// Why nothing may be sent now; nil if this push may go.
    func refusal(at now: () -> Instant) -> String? {
        guard isDistrusted.load(ordering: .relaxed) else { return nil }
        guard case .refused(let reason) = circuit.withLock({ $0.enter(at: now()) }) else { return nil }
        return reason
    }

    func learn(_ answer: APNsAnswer, _ verdict: APNsVerdict, bearer: String?, at now: () -> Instant) {
        if let token, let bearer {
            switch verdict.credential {
            case .renew: token.replace(bearer)
            case .holdRenewal: token.tooMany(bearer)
            case .keep, .distrust: break
            }
        }
        if verdict.credential == .distrust {
            let isNew = circuit.withLock { circuit in
                isDistrusted.store(true, ordering: .relaxed)
                return circuit.distrust(answer.text, at: now())
            }
            guard isNew else { return }
            log.error("apns.credential.refused", [.status: answer.status, .reason: answer.reason])
        } else if answer.meaning.provesCredential, isDistrusted.load(ordering: .relaxed) {
            let isNew = circuit.withLock { circuit in
                isDistrusted.store(false, ordering: .relaxed)
                return circuit.trusted()
            }
            guard isNew else { return }
            log.notice("apns.credential.accepted")
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
