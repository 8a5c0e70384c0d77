import Domain
import Log
import Synchronization
import World

/// The store port that brings personal values into the form of the setting `seal`.
///
/// Purpose: after a change of the setting or of the master key, rows have values in other forms. A
/// relay rewrites them in the background, while requests go on. Every row can be read and found in
/// every form, so nothing waits for the end.
///
/// Invariants:
/// - One relay rewrites at a time: a row of `task_lease` names it, and every change is conditional
///   on that row. So relays with different settings do not undo each other's work.
/// - A row changes only if it is genuine and still has the values that were read. So nobody who can
///   write the store gets a seal of a value that they choose. Receipts are an exception: the MAC
///   covers those of approvals alone. Others hold a signature of the phone, which nobody can guess,
///   so equal seals tell nothing.
/// - Statements compare addresses with every form of a parameter, never with another column. So the
///   rows of one user may have different forms.
///
/// Failure modes: the table `personal_sealing` says how far the run has come. If the relay stops,
/// it or another relay continues there. Values that cannot be opened, those of rows that are not
/// genuine, and addresses that another user has in the wanted form, stay, are counted, and are logged
/// as `personal.stuck`. A relay may write values in the
/// other form after the run has passed: it has another setting, or a script was under way when the
/// setting changed. Another run begins a minute after one that changed rows, after the reload of any
/// relay, and once a day. A run that fails is logged, and goes on a minute later.
///
/// `SealedStoreTests.swift` tests it.
public protocol PersonalSealingStore: Sendable {
    /// Rewrites the values of some rows.
    ///
    /// - Returns: nil if nothing is to be done, or if another relay does it.
    func sealSomePersonalValues(
        by relay: RelayID, at now: Timestamp
    ) async throws(StoreFailure) -> PersonalSealingRun?
    /// Lets the next run begin at once. One that is under way begins again.
    func checkPersonalValuesAgain() async throws(StoreFailure)
}

/// A run over all personal values of the store.
public struct PersonalSealingRun: Sendable, Equatable {
    /// Whether the run seals the values. Otherwise it opens them.
    public let seals: Bool
    /// The id of the sealing key.
    public let keyID: String
    /// The number of rows that the run has read.
    public let checked: Int64
    /// The number of rows that it has rewritten.
    public let changed: Int64
    /// The number of values that it could not open, that are in rows which are not genuine, or that
    /// another user has.
    public let stuck: Int64
    public let startedAt: Timestamp
    /// The end of the run; nil while it goes on.
    public let endedAt: Timestamp?

    public init(
        seals: Bool, keyID: String, checked: Int64, changed: Int64, stuck: Int64, startedAt: Timestamp,
        endedAt: Timestamp?
    ) {
        self.seals = seals
        self.keyID = keyID
        self.checked = checked
        self.changed = changed
        self.stuck = stuck
        self.startedAt = startedAt
        self.endedAt = endedAt
    }
}

extension Relay {
    /// The number of batches between two lines of the log.
    private static let batchesOfLine = 100

    /// Brings personal values into the form of the setting. The daemon calls it every minute, and
    /// after a reload. A second call while one runs does nothing.
    ///
    /// - Parameter afresh: whether a run over all rows begins, also if the last one has just ended.
    public func sealPersonalValues(afresh: Bool = false) async {
        if afresh {
            _ = try? await withStore("personal") { () async throws(StoreFailure) in
                try await store.checkPersonalValuesAgain()
            }
        }
        let isFirst = isSealing.withLock { isSealing in
            defer { isSealing = true }
            return !isSealing
        }
        guard isFirst else { return }
        await sealAll()
        isSealing.withLock { $0 = false }
    }

    private func sealAll() async {
        var batches = 0
        while let run = await sealSome() {
            batches += 1
            let fields: LogFields = [
                .state: run.seals ? "sealed" : "opened", .keyID: run.keyID, .changed: Int(run.changed),
                .count: Int(run.checked),
            ]
            guard run.endedAt != nil else {
                if batches.isMultiple(of: Self.batchesOfLine) { log.info("personal.resealing", fields) }
                continue
            }
            if run.stuck > 0 { log.error("personal.stuck", [.count: Int(run.stuck)]) }
            if run.changed > 0 { log.notice("personal.resealed", fields) }
        }
    }

    private func sealSome() async -> PersonalSealingRun? {
        do throws(StoreFailure) {
            return try await store.sealSomePersonalValues(by: id, at: time.now())
        } catch {
            _ = report("personal", error)
            log.error("personal.failed", [.reason: "the run goes on at the same place in a minute"])
            return nil
        }
    }
}
