import Domain
import World

// A bad row of the outbox stops only itself. A claim reads its rows together and, if that fails, each by itself. A row
// that no relay wrote is dead from then on. If it is another row that is not genuine or cannot be read (the user, the
// website, the challenge), the row of the outbox waits: an operator may repair that other row.

/// The rows of a claim: those that were read, and those that were not.
public struct ClaimedRows<Row: Sendable>: Sendable {
    public var rows: [Row]
    public var failed: [FailedEntry]

    public init(_ rows: [Row] = [], failed: [FailedEntry] = []) {
        self.rows = rows
        self.failed = failed
    }
}

/// A row of the outbox that was claimed and could not be read.
public struct FailedEntry: Sendable, Equatable {
    public let id: OutboxEntryID
    public let failure: StoreFailure

    public init(_ id: OutboxEntryID, _ failure: StoreFailure) {
        self.id = id
        self.failure = failure
    }
}

extension StoreFailure {
    /// Whether a single row may be the cause.
    public var mayBeOfOneRow: Bool {
        switch self {
        case .unavailable: false
        case .internal, .forged: true
        }
    }
}

extension Relay {
    /// Reports rows that a claim could not read, and sets them aside.
    func setAside(_ failed: [FailedEntry], _ what: String) async {
        for errand in failed {
            _ = report(what, errand.failure)
            await setAside(errand.id)
        }
    }

    /// Does what a claimed row asks for. If a row is the cause of a failure, the claimed row is set aside.
    func attending<Answer>(
        _ entry: OutboxEntryID, _ work: () async throws(Refusal) -> Answer
    ) async -> Answer? {
        do throws(Refusal) {
            return try await work()
        } catch {
            if error == .broken { await setAside(entry) }
            return nil
        }
    }

    /// If the store does not answer, the row comes again when its lease is over, and is set aside then.
    private func setAside(_ entry: OutboxEntryID) async {
        _ = try? await withStore("outbox") { () async throws(StoreFailure) in
            try await store.setAside(entry, by: id, at: time.now())
        }
    }
}
