import EventLoop
import Synchronization
import World

/// Sends text messages through a gateway that speaks SMPP 3.4, over one session. Connects by itself, at once and again after every
/// loss. For any task, on whatever thread.
public final class SMPPClient: Sendable {
    /// What is known outside the loop.
    final class SharedState: Sendable {
        let receipts: @Sendable (SMPPReceipt) -> Void
        private let text = Mutex<String?>(nil)

        init(receipts: @escaping @Sendable (SMPPReceipt) -> Void) { self.receipts = receipts }

        var fault: String? {
            get { text.withLock { $0 } }
            set { text.withLock { $0 = newValue } }
        }
    }

    private let options: SMPPOptions
    private let loop: EventLoop
    private let randomness: any Randomness
    private let shared: SharedState
    private let driver = Mutex<LoopBound<SessionDriver>?>(nil)

    /// `receipts` is called on the loop.
    public init(
        _ options: SMPPOptions, loop: EventLoop, randomness: any Randomness = SystemRandomness(),
        receipts: @escaping @Sendable (SMPPReceipt) -> Void = { _ in }
    ) {
        self.options = options
        self.loop = loop
        self.randomness = randomness
        shared = SharedState(receipts: receipts)
        loop.post { [weak self] in _ = self?.onLoop }
    }

    /// On its loop it can be let go of only there.
    deinit {
        let left = driver.withLock { $0 }
        loop.post { left?.value.close {} }
    }

    /// What keeps messages from being sent; nil while the session stands, and until the first attempt has failed.
    public var fault: String? { shared.fault }

    /// Always comes back: when the message has had its turn and the gateway its time to answer, at the latest.
    public func send(_ message: SMPPMessage) async -> SMPPOutcome {
        await withUnsafeContinuation { continuation in
            loop.post { self.onLoop.send(message) { continuation.resume(returning: $0) } }
        }
    }

    /// Takes no more, waits for the answers to what was sent, and ends the session in order.
    public func close() async {
        await withUnsafeContinuation { continuation in
            loop.post { self.onLoop.close { continuation.resume() } }
        }
    }

    /// Made by who comes first.
    private var onLoop: SessionDriver {
        if let driver = driver.withLock({ $0 }) { return driver.value }
        let made = SessionDriver(options, loop: loop, randomness: randomness, shared: shared)
        driver.withLock { $0 = LoopBound(made, on: loop) }
        made.start()
        return made
    }
}
