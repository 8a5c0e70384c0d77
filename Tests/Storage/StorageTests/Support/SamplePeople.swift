import Domain
import World

@testable import Relay
@testable import Storage

extension Sample {
    /// Runs the statements with which operators show users.
    static func runPeople(on store: Store, _ operation: () -> Domain.Operation) async throws {
        _ = try await store.run(Announcements.unsent(to: id(60)))
        _ = try await store.run(Accounts.unusedRecoveryCodes(of: id(60)))
    }
}
