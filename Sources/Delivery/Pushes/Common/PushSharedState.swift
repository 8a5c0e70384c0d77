import EventLoop
import Log
import Synchronization
import TLS
import World

/// The state that the loops share: the identity, the health of the hosts, and what the answers
/// showed.
final class PushSharedState: Sendable {
    private struct State {
        var identity: PushIdentity
        var mismatches = TokenMismatchDetector()
        var hosts: [PushEndpoint: HostHealth] = [:]
    }

    let endpoint: PushEndpoint
    let dialect: any PushDialect
    let time: any TimeSource
    let randomness: any Randomness
    let log: Log
    let options: PushOptions
    let observer: (any PushObserver)?
    private let state: Mutex<State>
    private let generations = Atomic(0)
    /// Whether bad tokens arrived since a push was last accepted. It is rarely true, so most pushes
    /// avoid the lock.
    private let hasMismatches = Atomic(false)

    init(
        endpoint: PushEndpoint, dialect: any PushDialect, identity: PushIdentity, time: any TimeSource,
        randomness: any Randomness, log: Log, options: PushOptions, observer: (any PushObserver)?
    ) {
        self.endpoint = endpoint
        self.dialect = dialect
        self.time = time
        self.randomness = randomness
        self.log = log
        self.options = options
        self.observer = observer
        state = Mutex(State(identity: identity))
    }

    /// The identity for new connections.
    var identity: PushIdentity { state.withLock { $0.identity } }

    /// The number of changes of the identity.
    var generation: Int { generations.load(ordering: .acquiring) }

    func adopt(_ identity: PushIdentity) {
        state.withLock { $0.identity = identity }
        generations.add(1, ordering: .releasing)
    }

    /// The fault of the configured host. A fault of the sandbox host does not count, since the
    /// phones decide whether it is used.
    var fault: String? {
        let (identity, unreachable) = state.withLock { state in
            (state.identity, state.hosts[endpoint]?.fault.map { "\(endpoint.host): \($0)" })
        }
        return identity.fault(at: endpoint) ?? identity.authorization?.failure?.reason ?? unreachable
    }

    // MARK: Hosts

    /// Returns the host for device tokens of that environment, and whether it cannot be reached now.
    func host(for environment: APNsNotification.Environment?) -> (name: String, isDown: Bool) {
        let endpoint = dialect.endpoint(endpoint, for: environment)
        return (endpoint.host, state.withLock { $0.hosts[endpoint]?.isDown ?? false })
    }

    func withHostHealth<Value: Sendable>(_ endpoint: PushEndpoint, _ body: (inout HostHealth) -> Value) -> Value {
        state.withLock { body(&$0.hosts[endpoint, default: HostHealth()]) }
    }

    // MARK: Tokens

    func suspects(_ environment: APNsNotification.Environment?) -> Bool {
        hasMismatches.load(ordering: .relaxed) && state.withLock { $0.mismatches.suspects(environment) }
    }

    func learn(_ meaning: AnswerMeaning, _ environment: APNsNotification.Environment?) {
        switch meaning {
        case .accepted:
            guard hasMismatches.load(ordering: .relaxed) else { return }
            state.withLock { state in
                state.mismatches.accepted(environment)
                hasMismatches.store(state.mismatches.isLeft, ordering: .relaxed)
            }
        case .badToken, .foreignToken:
            state.withLock { state in
                state.mismatches.bad(environment)
                hasMismatches.store(true, ordering: .relaxed)
            }
        default: break
        }
    }
}
