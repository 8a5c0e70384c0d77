import Relay

@testable import Storage

extension Sample {
    /// Reads the changes, as the change feed does.
    static func runWatch(on store: Store) async throws {
        let newest = try await store.newestChange()
        _ = try await store.changes(after: newest - 5, limit: 1000)
        _ = try await store.countChanges(after: newest - 5, upTo: newest)
        _ = try await store.revocations(after: newest - 5)
        _ = try await store.keys(of: website, at: now)
        _ = try await store.endedKeys(after: now, until: now)
    }
}
