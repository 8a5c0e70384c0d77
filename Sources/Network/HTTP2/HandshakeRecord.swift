import Log
import Synchronization
import TLS
import World

/// The handshakes of all servers that share this: how many were completed and resumed, and how many
/// ended because of the client's certificate. Without it, a website with an expired certificate
/// would only see a closed connection, and its operator nothing.
///
/// Each refusal is counted by its reason. One in ten seconds is logged for each reason, because
/// anybody can cause them.
public final class HandshakeRecord: Sendable {
    /// The kind of caller that a handshake has shown.
    public enum Caller: String, CaseIterable, Sendable { case website, phone, unidentified }

    private struct State {
        var completed: [Caller: UInt64] = [:]
        var resumed: [Caller: UInt64] = [:]
        var counts: [RefusedCertificate.Reason: UInt64] = [:]
        var bursts: [RefusedCertificate.Reason: LogThrottle] = [:]
    }

    private let state = Mutex(State())
    private let time: any TimeSource
    private let log: Log

    public init(time: any TimeSource, log: Log) {
        self.time = time
        self.log = log
    }

    /// The values of the `reason` label.
    public static var reasons: [String] { RefusedCertificate.Reason.allCases.map(\.rawValue) }

    public func count(reason: String) -> UInt64 {
        guard let reason = RefusedCertificate.Reason(rawValue: reason) else { return 0 }
        return state.withLock { $0.counts[reason] ?? 0 }
    }

    /// The number of handshakes that were completed, including those that resumed a session.
    public func completed(by caller: Caller) -> UInt64 { state.withLock { $0.completed[caller] ?? 0 } }

    /// The number of handshakes that resumed a session.
    public func resumed(by caller: Caller) -> UInt64 { state.withLock { $0.resumed[caller] ?? 0 } }

    /// Counts a completed handshake.
    func complete(by caller: Caller, resumed: Bool) {
        state.withLock { state in
            state.completed[caller, default: 0] += 1
            if resumed { state.resumed[caller, default: 0] += 1 }
        }
    }

    /// - Parameter remote: the address of the client.
    func refuse(_ certificate: RefusedCertificate, from remote: String) {
        let now = time.instant()
        let count = state.withLock { state in
            state.counts[certificate.reason, default: 0] += 1
            return state.bursts[certificate.reason, default: LogThrottle()].record(at: now)
        }
        guard let count else { return }
        log.info(
            "handshake.refused",
            [
                .remote: remote, .reason: certificate.reason.rawValue, .subject: certificate.subject,
                .issuer: certificate.issuer, .count: count,
            ])
    }
}
