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
        let text: String
        let drawn: @Sendable (String?) -> Void
    }

    private let orders = Mutex(FairQueue<Tenant, Job>())
    private let worker: any Worker

    convenience init() throws(SystemFailure) { self.init(worker: try WorkerThread(name: "qr")) }

    init(worker: any Worker) { self.worker = worker }

    /// Ends the thread. Must be called after the last request.
    func close() { (worker as? WorkerThread)?.stop() }

    func svg(of text: String) async -> String? {
        let tenant = Tenant.current
        return await withUnsafeContinuation { continuation in
            let order = Job(text: text) { continuation.resume(returning: $0) }
            orders.withLock { $0.append(order, of: tenant) }
            worker.post { self.drawNext() }
        }
    }

    private func drawNext() {
        guard let order = orders.withLock({ $0.popFirst() }) else { return }
        order.drawn(try? QRCode(order.text).svg())
    }
}
