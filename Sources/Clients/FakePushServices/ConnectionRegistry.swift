import EventLoop
import HTTP2

/// The connections of one listening service. It applies the scripted behavior to each new
/// connection, and keeps the open ones. It must be used on its loop only.
final class ConnectionRegistry: ServerController {
    private let responder: PushResponder
    /// The number of connections to earlier services of the same `FakePushService`.
    private let before: Int
    private(set) var count = 0
    /// The behavior to apply to each connection after its handshake.
    private var waiting: [Int: ConnectionBehavior] = [:]
    private(set) var standing: [Int: ProviderConnection] = [:]

    init(responder: PushResponder, before: Int) {
        self.responder = responder
        self.before = before
    }

    /// The number of connections since the first service, whether or not their handshake succeeded.
    var total: Int { before + count }

    func admit(_ number: Int) -> Admission {
        count = number
        let reception = responder.nextBehavior()
        switch reception {
        case .serve: return .serve
        case .hang: return .ignore
        case .cut: return .cut
        case .tls(let context): return .serveWith(context)
        case .goAway, .freeze:
            waiting[number] = reception
            return .serve
        }
    }

    func opened(_ connection: ServerConnection) -> any ConnectionController {
        let number = before + connection.number
        let (listener, remote) = (responder.listeners.connection, connection.remote)
        let kept = ProviderConnection(connection, number: number, responder: responder) { [weak self] in
            self?.standing[number] = nil
            listener?(ConnectionEvent(number: number, isOpen: false, remote: remote))
        }
        standing[number] = kept
        listener?(ConnectionEvent(number: number, isOpen: true, remote: remote))
        switch waiting.removeValue(forKey: connection.number) {
        case .goAway: connection.goAway(lastStream: 0)
        case .freeze: connection.freeze()
        default: break
        }
        let mischief = responder.faults
        kept.begin(mischief.streams)
        if mischief.frozen.contains(number) { kept.freeze() }
        return kept
    }

    /// The selected connection; all open ones if `number` is nil.
    func chosen(_ number: Int?) -> [ProviderConnection] {
        guard let number else { return standing.sorted { $0.key < $1.key }.map(\.value) }
        return standing[number].map { [$0] } ?? []
    }
}
