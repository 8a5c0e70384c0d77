import API
import EventLoop
import QR
import Relay
import Synchronization

/// A thread that draws QR codes, for websites in turn.
///
/// A code takes half a millisecond, because the standard requires eight masks to be evaluated. This
/// is more than the rest of a registration costs its loop. On a loop, a hundred registrations at
/// once would delay every other request of that loop. Tested in `QRThreadTests.swift`.
final class QRThread: QRDrawing {
    private struct Job {
        /// Draws, and passes the drawing on.
        let draw: @Sendable () -> Void
    }

    private let orders = Mutex(FairQueue<Tenant, Job>())
    private let worker: any Worker

    convenience init() throws(SystemFailure) { self.init(worker: try WorkerThread(name: "qr")) }

    init(worker: any Worker) { self.worker = worker }

    /// Ends the thread. Must be called after the last request.
    func close() { (worker as? WorkerThread)?.stop() }

    func svg(of text: String) async -> String? { await drawing(of: text) { $0.svg() } }

    /// Draws a PNG image, for mails. Returns nil if the text is too long for a code.
    func png(of text: String) async -> [UInt8]? { await drawing(of: text) { $0.png() } }

    private func drawing<Drawing: Sendable>(
        of text: String, _ draw: @escaping @Sendable (QRCode) -> Drawing
    ) async -> Drawing? {
        let tenant = Tenant.current
        return await withUnsafeContinuation { continuation in
            let order = Job { continuation.resume(returning: (try? QRCode(text)).map(draw)) }
            orders.withLock { $0.append(order, of: tenant) }
            worker.post { self.drawNext() }
        }
    }

    private func drawNext() {
        guard let order = orders.withLock({ $0.popFirst() }) else { return }
        order.draw()
    }
}
