import EventLoop

/// Ends the held requests of one server: a few at a time, and each owner's in turn.
///
/// A single event may end tens of thousands of them, and each end is a task that asks the store. If
/// all ends began together, they would block the loop and fill the store's queue. Touched on its
/// loop only.
final class HeldRequestCompleter {
    /// Ends under way at the same time, and begun in one turn.
    static let atOnce = 16

    private let loop: EventLoop
    private var waiting = FairQueue<String, Exchange>()
    private var running = 0
    private var isBeginning = false
    private var isPosted = false

    init(loop: EventLoop) { self.loop = loop }

    /// Calls `end()` of the exchange when it is its turn, perhaps at once.
    func add(_ exchange: Exchange, of owner: String) {
        waiting.append(exchange, of: owner)
        begin()
    }

    /// An end has come back from its work.
    func ended() {
        running -= 1
        begin()
    }

    private func begin() {
        // An end that awaits nothing comes back from within `end()`.
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
