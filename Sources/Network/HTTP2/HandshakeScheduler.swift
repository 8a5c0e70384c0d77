import EventLoop
import World

/// Begins the handshakes of one server, a few in each turn of its loop. So the public-key work of a
/// burst does not delay the established connections. `HandshakeQueue` decides the order.
///
/// A single timer drives it, both when handshakes can begin at once and when all sources wait for
/// their budget. The timer keeps neither the server nor a connection alive, and `close` cancels it.
/// Used on the loop only.
final class HandshakeScheduler {
    /// The number of handshakes that may begin in one turn of the loop.
    static let perTurn = 8
    /// The number of steps in one turn, including those that only drop closed connections or park
    /// sources.
    static let stepsPerTurn = 256

    private let loop: EventLoop
    private var queue = HandshakeQueue<ServerConnection>()
    private var timer: (id: TimerID, due: Instant)?

    init(loop: EventLoop) { self.loop = loop }

    /// Queues a connection for its handshake.
    /// - Parameter open: the number of open connections of the server.
    func add(_ connection: ServerConnection, open: Int) {
        if queue.add(connection, from: connection.ticket?.source) { connection.ticket?.putOff(1) }
        // Closed connections stay in the queue until their turn. A flood of them must not make it
        // grow.
        if queue.count > 2 * open + 64 { queue.keep { $0.state.isLive } }
        schedule()
    }

    /// Forgets all connections, because they have ended or are about to end.
    func close() {
        if let timer { loop.cancel(timer.id) }
        timer = nil
        queue = HandshakeQueue()
    }

    private func schedule() {
        guard let due = queue.nextTurn(loop.time.instant()) else { return }
        if let timer {
            guard due < timer.due else { return }
            loop.cancel(timer.id)
        }
        let id = loop.schedule(at: due) { [weak self] in
            self?.timer = nil
            self?.take()
        }
        timer = (id, due)
    }

    private func take() {
        let now = loop.time.instant()
        var begun = 0
        var steps = 0
        while begun < Self.perTurn, steps < Self.stepsPerTurn, let step = queue.step(now, { $0.takeHandshake() }) {
            steps += 1
            switch step {
            case .begin(let connection):
                begun += 1
                connection.beginHandshake()
            case .putOff(let newest, let count): newest.ticket?.putOff(count)
            case .dropped: break
            }
        }
        schedule()
    }
}
