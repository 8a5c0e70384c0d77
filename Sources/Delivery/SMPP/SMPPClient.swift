import EventLoop
import Synchronization
import World

/// A client that sends text messages to an SMPP 3.4 gateway over one session. It connects at once
/// and reconnects after every loss. Any task on any thread may use it.
public final class SMPPClient: Sendable {
    /// The state that is visible outside the loop.
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

    /// Creates a client and starts to connect.
    ///
    /// - Parameter receipts: called on the loop for each new receipt.
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

    /// The driver may be released only on its loop.
    deinit {
        let left = driver.withLock { $0 }
        loop.post { left?.value.close {} }
    }

    /// The reason why no messages can be sent; nil while the session is bound and before the first
    /// failure.
    public var fault: String? { shared.fault }

    /// Sends a message. Returns at the latest when its time in the queue and the gateway's time for
    /// the answer are over.
    public func send(_ message: SMPPMessage) async -> SMPPOutcome {
        await withUnsafeContinuation { continuation in
            loop.post { self.onLoop.send(message) { continuation.resume(returning: $0) } }
        }
    }

    /// Takes no more messages, waits for the answers to those sent, then unbinds.
    public func close() async {
        await withUnsafeContinuation { continuation in
            loop.post { self.onLoop.close { continuation.resume() } }
        }
    }

    /// The driver, which the first use creates.
    private var onLoop: SessionDriver {
        if let driver = driver.withLock({ $0 }) { return driver.value }
        let made = SessionDriver(options, loop: loop, randomness: randomness, shared: shared)
        driver.withLock { $0 = LoopBound(made, on: loop) }
        made.start()
        return made
    }
}
