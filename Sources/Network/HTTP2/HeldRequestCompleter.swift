import EventLoop

/// Ends the held requests of one server: a few at a time, and the owners in turn.
///
/// A single event may end tens of thousands of held requests, and each end is a task that queries
/// the store. If all of them began together, they would block the loop and fill the store's queue.
/// Used on its loop only. Tests: `HeldRequestCompleterTests`.
final class HeldRequestCompleter {
    /// The number of ends that run at the same time, and that begin in one turn.
    static let atOnce = 16

    private let loop: EventLoop
    private var waiting = FairQueue<String, Exchange>()
    private var running = 0
    private var isBeginning = false
    private var isPosted = false

    init(loop: EventLoop) { self.loop = loop }

    /// Queues an exchange. Its `end()` is called when its turn comes, perhaps at once.
    func add(_ exchange: Exchange, of owner: String) {
        waiting.append(exchange, of: owner)
        begin()
    }

    /// Records that the work of one end has returned.
    func ended() {
        running -= 1
        begin()
    }

    private func begin() {
        // An end that does not suspend returns from within `end()`.
        guard !isBeginning, !isPosted else { return }
        isBeginning = true
        var begun = 0
        while running < Self.atOnce, begun < Self.atOnce, let exchange = waiting.popFirst() {
            running += 1
            if exchange.end() { begun += 1 } else { running -= 1 }
        }
        isBeginning = false
        guard running < Self.atOnce, !waiting.isEmpty else { return }
        isPosted = true
        let bound = LoopBound(self, on: loop)
        loop.post {
            bound.value.isPosted = false
            bound.value.begin()
        }
    }
}
