import EventLoop
import Log
import Relay
import Storage
import Synchronization
import World

/// Appends the heads of all writers of the audit to a file outside of the store, so that nobody can
/// delete the end of a chain without notice (docs/operators/audit.md).
///
/// Invariant: a head is written once, when it is new since the last round. After a start, all heads
/// are written. No event loop waits for the file.
///
/// Failures: the file cannot be written. The log says so, and the next round tries the same heads
/// again. A line that was cut, by a full disk or the end of the process, is ended before the next one.
///
/// `AuditHeadsFileTests.swift` tests it.
final class AuditHeadsFile: Sendable {
    static let pause = Duration.seconds(5)

    private let path: String
    private let store: Store
    private let log: Log
    private let worker: WorkerThread
    private let written = Mutex<[[UInt8]: Int64]>([:])
    private let isFailing = Mutex(false)
    /// Whether the last line of the file may be without its end.
    private let mayBeCut = Mutex(true)

    /// Opens the file that the settings name; nil if they name none.
    static func open(_ settings: Settings, _ store: Store, log: Log) throws(Failure) -> AuditHeadsFile? {
        guard let file = settings.auditHeads else { return nil }
        let path = settings.path(of: file)
        do {
            try Files.append([], to: path)
            return AuditHeadsFile(path, store, worker: try WorkerThread(name: "audit-heads"), log: log)
        } catch {
            throw Failure(
                .failed, "audit.heads: \((error as? Files.Problem)?.text ?? "\(error)")",
                next: "Create its directory, and let the account of the relay write to it.")
        }
    }

    private init(_ path: String, _ store: Store, worker: WorkerThread, log: Log) {
        self.path = path
        self.store = store
        self.worker = worker
        self.log = log
    }

    /// Appends the heads that are new. It must be called on a loop.
    func append() async {
        var after: [UInt8]?
        while true {
            let page: [AuditHead]
            do throws(StoreFailure) {
                page = try await store.run(AuditHead.page(after: after))
            } catch {
                // The lane reports a store that fails.
                return
            }
            let new = written.withLock { written in page.filter { written[$0.writer] != $0.sequence } }
            if !new.isEmpty {
                guard await write(new) else { return }
                written.withLock { written in for head in new { written[head.writer] = head.sequence } }
            }
            guard page.count == AuditHead.pageSize, let last = page.last else { return }
            after = last.writer
        }
    }

    func close() {
        worker.stop()
        worker.join(within: .seconds(2))
    }

    private func write(_ heads: [AuditHead]) async -> Bool {
        guard let loop = EventLoop.current else { return false }
        let text = (mayBeCut.withLock { $0 } ? "\n" : "") + heads.map { $0.line + "\n" }.joined()
        let problem = await withUnsafeContinuation { continuation in
            worker.post { [path] in
                var problem: String?
                do throws(Files.Problem) {
                    try Files.append(Array(text.utf8), to: path)
                } catch {
                    problem = error.text
                }
                loop.post { [problem] in continuation.resume(returning: problem) }
            }
        }
        mayBeCut.withLock { $0 = problem != nil }
        let isNew = isFailing.withLock { isFailing in
            defer { isFailing = problem != nil }
            return isFailing != (problem != nil)
        }
        if isNew, let problem { log.warning("audit.heads_failing", [.error: problem]) }
        if isNew, problem == nil { log.notice("audit.heads_recovered") }
        return problem == nil
    }
}
