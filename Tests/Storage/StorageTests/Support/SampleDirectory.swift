import Directory
import Domain
import Storage
import World

@testable import Relay

extension Sample {
    /// Syncs users with a directory.
    static func runDirectory(on store: Store, _ operation: () -> Domain.Operation) async throws {
        let run: OperationID = id(9100)
        try await store.run(DirectoryRuns.begin("staff", run, at: now))
        _ = try await store.run(DirectoryRuns.beginIfDue("staff", run, by: relay, before: now, at: now))
        let record = DirectoryRecord(
            id: "entry", username: "user-350", email: "350@example.com", phone: "+4912345350")
        let found = try await store.run(DirectoryUsers.holders(of: [record], in: website))
        let writes = DirectoryWrites(source: "staff", website: website, run: run, at: now)
        if let user = found.first {
            let update = DirectoryUpdate(user: user, record: record, mapping: .standard)
            _ = try await store.run(writes.update(update, factors: [], as: operation()))
        }
        let added = DirectoryRecord(id: "other", username: "added")
        _ = try await store.run(writes.add(added, token: id(9101), factors: [], as: operation()))
        for user in try await store.run(DirectoryUsers.owned(by: "staff", of: website, after: "")) {
            _ = try await store.run(writes.disable(user, as: operation()))
            _ = try await store.run(Locks.enable(user.user, at: now, as: operation()))
        }
        _ = try await store.run(DirectoryRuns.end("staff", run, .success(DirectoryRuns.Counts()), at: now))
        _ = try await store.run(DirectoryRuns.end("staff", run, .failure(DirectoryFault("gone")), at: now))
        _ = try await store.run(DirectoryRuns.isStillNewest("staff", run))
        try await store.run(DirectoryRuns.release("staff", by: relay))
        _ = try await store.run(DirectoryRuns.all)
    }
}
