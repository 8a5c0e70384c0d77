import Domain
import Relay
import TestSupport
import Testing
import World

@testable import Storage

/// What is kept for repeated requests goes when it is old, however much of it there is.
@Suite(.mayBlock) struct TidyTests {
    private static let now = Timestamp(seconds: 1_800_000_000)
    private static let insert = Statement(
        """
        INSERT INTO idempotency (website_id, digest, fingerprint, state, operation, created_at)
        VALUES (?, ?, ?, 'done', ?, ?)
        """)
    private static let left = Statement("SELECT created_at FROM idempotency")

    private func answer(_ number: Int, at moment: Timestamp) -> Step {
        let digest = (0..<32).map { $0 < 2 ? UInt8(number >> (8 * $0) & 255) : 7 }
        let id = SQLValue.blob(Array(digest[..<16]))
        return Step(Self.insert, id, .blob(digest), .blob(digest), id, .moment(moment))
    }

    @Test(arguments: Engine.allCases) func dropsAllThatIsOldAndNothingElse(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        defer { withExtendedLifetime(database) {} }
        let store = try database.open()
        defer { store.close() }
        // More than one transaction may take.
        let old = (0..<1100).map { answer($0, at: Self.now - .seconds(1)) }
        _ = try await store.run(Script("fill", writes: old + [answer(1100, at: Self.now)]))
        try await store.dropKept(before: Self.now)
        let rows = try await store.run(Script("left", reads: [Step(Self.left)]))
        #expect(rows.map(\.count) == [1])
        #expect(try rows.row(0).moment(0) == Self.now)
    }
}
