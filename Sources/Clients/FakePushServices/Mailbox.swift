import EventLoop
import Synchronization

/// The error of a wait that ended without an item.
public struct MailboxTimeout: Error, Sendable, Equatable {
    public let within: Duration
}

/// A queue of received items, with waiting readers. Each item goes to one reader, in order.
final class Mailbox<Item: Sendable>: Sendable {
    private struct State {
        var items: [Item] = []
        /// The index of the first item that was not handed out yet.
        var start = 0
        var waiting: [(number: Int, continuation: CheckedContinuation<Item?, Never>)] = []
        var numbers = 0

        mutating func take() -> Item? {
            guard start < items.count else { return nil }
            let item = items[start]
            drop()
            return item
        }

        mutating func drop() {
            start += 1
            guard start > 64, start > items.count / 2 else { return }
            items.removeFirst(start)
            start = 0
        }
    }

    private let loop: EventLoop
    private let capacity: Int
    private let state = Mutex(State())

    /// - Parameter capacity: the most items to keep; further ones replace the oldest.
    init(loop: EventLoop, capacity: Int = .max) {
        self.loop = loop
        self.capacity = capacity
    }

    func put(_ item: Item) {
        let waiting = state.withLock { state -> CheckedContinuation<Item?, Never>? in
            guard !state.waiting.isEmpty else {
                guard capacity > 0 else { return nil }
                if state.items.count - state.start >= capacity { state.drop() }
                state.items.append(item)
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        waiting?.resume(returning: item)
    }

    func next(within duration: Duration) async throws(MailboxTimeout) -> Item {
        let item = await withCheckedContinuation { continuation in
            let (item, number) = state.withLock { state -> (Item?, Int) in
                state.numbers += 1
                if let item = state.take() { return (item, 0) }
                state.waiting.append((state.numbers, continuation))
                return (nil, state.numbers)
            }
            if let item { return continuation.resume(returning: item) }
            loop.post { [loop] in loop.schedule(after: duration) { self.giveUp(number) } }
        }
        guard let item else { throw MailboxTimeout(within: duration) }
        return item
    }

    private func giveUp(_ number: Int) {
        let waiting = state.withLock { state -> CheckedContinuation<Item?, Never>? in
            guard let index = state.waiting.firstIndex(where: { $0.number == number }) else { return nil }
            return state.waiting.remove(at: index).continuation
        }
        waiting?.resume(returning: nil)
    }
}
