import API
import EventLoop
import QR
import Relay
import Synchronization

/// Draws QR codes on a thread of its own, for websites in turn.
///
/// A code takes half a millisecond, because the standard has eight masks judged: more than all else that a registration
/// costs its loop. Drawn there, some hundred registrations at a time held up everybody on that loop.
final class QRThread: QRDrawing {
    private struct Job {
        let text: String
        let drawn: @Sendable (String?) -> Void
    }

    private let orders = Mutex(FairQueue<Tenant, Job>())
    private let worker: any Worker

    convenience init() throws(SystemFailure) { self.init(worker: try WorkerThread(name: "qr")) }

    init(worker: any Worker) { self.worker = worker }

    /// Ends the thread. To be called after the last request.
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
