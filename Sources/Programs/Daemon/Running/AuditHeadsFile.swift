import Bytes
import EventLoop
import Log
import Relay
import Storage
import Synchronization
import World

/// Appends the heads of all writers of the audit to a file outside of the store, so that nobody can
/// delete the end of a chain without notice (docs/operators/audit.md).
///
/// Invariant: a head is written once, when it is new since the last round, and is on the disk then.
/// After a start, and when a new file has begun, all heads are written. No event loop waits for the
/// file, and no task waits for it longer than `limit`.
///
/// Failures: the file cannot be written, or hangs. The log says so, and the next round tries the same
/// heads again. A line that was cut, by a full disk or the end of a process, is ended by the line
/// break before the next one.
///
/// `AuditHeadsFileTests.swift` tests it.
final class AuditHeadsFile: Sendable {
    static let pause = Duration.seconds(5)
    /// The longest wait for the disk.
    private static let limit = Duration.seconds(2)

    fileprivate enum Outcome: Sendable { case appended, created, failed(String) }

    private let path: String
    private let feed: AuditHeadFeed
    private let log: Log
    private let worker: WorkerThread
    private let isFailing = Mutex(false)
    /// Whether the worker has not ended its last write.
    private let isBusy = Mutex(false)

    /// Opens the file that the settings name; nil if they name none.
    static func open(_ settings: Settings, _ store: Store, log: Log) throws(Failure) -> AuditHeadsFile? {
        guard let file = settings.auditHeads else { return nil }
        let path = settings.path(of: file)
        do {
            _ = try Files.appendDurably([], to: path)
            let feed = AuditHeadFeed(store, time: SystemTime())
            return AuditHeadsFile(path, feed, worker: try WorkerThread(name: "audit-heads"), log: log)
        } catch {
            throw Failure(
                .failed, "audit.heads: \((error as? Files.Problem)?.text ?? "\(error)")",
                next: "Create its directory, and let the account of the relay write to it.")
        }
    }

    private init(_ path: String, _ feed: AuditHeadFeed, worker: WorkerThread, log: Log) {
        self.path = path
        self.feed = feed
        self.worker = worker
        self.log = log
    }

    /// Appends the heads that are new. It must be called on a loop.
    func append() async {
        do throws(StoreFailure) {
            for fault in try await feed.round(write) {
                log.error(
                    "audit.tampered", [.row: "audit_writer \(Hex.encode(fault.writer))", .reason: fault.reason])
            }
        } catch {
            // The lane reports a store that does not answer. An answer that cannot be read is a fault.
            if case .internal(let text) = error { log.error("audit.heads_unread", [.error: text]) }
        }
    }

    func close() {
        worker.stop()
        worker.join(within: Self.limit)
    }

    private func write(_ heads: [AuditHead]) async -> Bool {
        let outcome = await append(Array(("\n" + heads.map { $0.line + "\n" }.joined()).utf8))
        var problem: String?
        switch outcome {
        case .appended: break
        case .created: feed.beginAgain()
        case .failed(let text): problem = text
        }
        let isNew = isFailing.withLock { isFailing in
            defer { isFailing = problem != nil }
            return isFailing != (problem != nil)
        }
        if isNew, let problem { log.warning("audit.heads_failing", [.error: problem]) }
        if isNew, problem == nil { log.notice("audit.heads_recovered") }
        return problem == nil
    }

    /// Appends on the thread of the file, and waits for it, but not longer than `limit`.
    private func append(_ bytes: [UInt8]) async -> Outcome {
        guard let loop = EventLoop.current else { return .failed("no loop") }
        let isFree = isBusy.withLock { isBusy in
            defer { isBusy = true }
            return !isBusy
        }
        guard isFree else { return .failed("\(path): the last write has not ended") }
        return await withUnsafeContinuation { continuation in
            let answer = Answer(continuation)
            let timer = loop.schedule(after: Self.limit) { [path] in
                answer.give(.failed("\(path): the write has not ended within \(Self.limit.components.seconds) s"))
            }
            worker.post { [path, self] in
                let outcome: Outcome
                do throws(Files.Problem) {
                    outcome = try Files.appendDurably(bytes, to: path) ? .created : .appended
                } catch {
                    outcome = .failed(error.text)
                }
                self.isBusy.withLock { $0 = false }
                loop.post {
                    loop.cancel(timer)
                    answer.give(outcome)
                }
            }
        }
    }
}

/// The answer to a write, which is given once: by the worker, or when the time is over.
private final class Answer: Sendable {
    private let waiting: Mutex<UnsafeContinuation<AuditHeadsFile.Outcome, Never>?>

    init(_ continuation: UnsafeContinuation<AuditHeadsFile.Outcome, Never>) { waiting = Mutex(continuation) }

    func give(_ outcome: AuditHeadsFile.Outcome) {
        let continuation = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        continuation?.resume(returning: outcome)
    }
}
