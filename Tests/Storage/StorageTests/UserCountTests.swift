import Relay
import TestSupport
import Testing

@testable import Storage

@Suite(.mayBlock) struct UserCountTests {
    /// The bounds are within a part, at its end, and at the last user.
    @Test(arguments: Engine.allCases) func usersAreCountedInParts(engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try await Sample.fill(store, at: database.url)
        for part in [1, 150, 200, Sample.count, 1_000] {
            for most in [0, 1, 200, 399, Sample.count, .max] {
                let count = try await store.countUsers(of: Sample.website, upTo: most, inPartsOf: part)
                #expect(count == min(most, Sample.count), "\(most) in parts of \(part)")
            }
        }
        #expect(try await store.countUsers(of: Sample.website, upTo: .max) == Sample.count)
    }
}
