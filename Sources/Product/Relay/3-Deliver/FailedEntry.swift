import Domain
import World

// A bad outbox entry stops only itself. A lease reads its entries together and, if that fails, each
// by itself. An entry that no relay wrote becomes a dead letter. If its user, website or challenge
// is not genuine or cannot be read, the entry waits, because an operator may repair that row.
//
// Tests: `RelayTests/ForgedEntryTests.swift`.

/// The entries of a lease: those that could be read, and those that could not.
public struct LeasedRows<Row: Sendable>: Sendable {
    public var rows: [Row]
    public var failed: [FailedEntry]

    public init(_ rows: [Row] = [], failed: [FailedEntry] = []) {
        self.rows = rows
        self.failed = failed
    }
}

/// A leased outbox entry that could not be read.
public struct FailedEntry: Sendable, Equatable {
    public let id: OutboxEntryID
    public let failure: StoreFailure

    public init(_ id: OutboxEntryID, _ failure: StoreFailure) {
        self.id = id
        self.failure = failure
    }
}

extension StoreFailure {
    /// Whether a single row may be the cause of the failure.
    public var mayBeOfOneRow: Bool {
        switch self {
        case .unavailable, .mismatched: false
        case .internal, .forged: true
        }
    }
}

extension Relay {
    /// Logs the entries that a lease could not read, and sets them aside.
    func setAside(_ failed: [FailedEntry], _ what: String) async {
        for entry in failed {
            _ = report(what, entry.failure)
            await setAside(entry.id)
        }
    }

    /// Does the work of a leased entry. If a row is the cause of a failure, the entry is set aside.
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

    /// Sets an entry aside. If the store does not answer, the entry is due again when its lease
    /// ends, and the relay then tries again.
    private func setAside(_ entry: OutboxEntryID) async {
        _ = try? await withStore("outbox") { () async throws(StoreFailure) in
            try await store.setAside(entry, by: id, at: time.now())
        }
    }
}
