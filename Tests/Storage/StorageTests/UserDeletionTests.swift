import Bytes
import Domain
import Synchronization
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// The deletion of a user, with all data of the user.
@Suite(.mayBlock) struct UserDeletionTests {
    private static let lock = Statement("UPDATE activation SET used_at = NULL WHERE digest = :digest")
    private static let left = Statement(
        "SELECT count(*) AS count FROM device WHERE user_id NOT IN (SELECT id FROM user)")

    private static let expire = Statement("UPDATE challenge SET expires_at = :expiresAt WHERE id = :challenge")
    private static let deny = Statement(
        "UPDATE challenge SET state = 'answered', decided_at = :now WHERE id = :challenge")
    private static let noted = Statement(
        "SELECT count(*) AS count FROM audit WHERE event = 'user.forgotten' AND user_id = challenge_id")

    private static let openAlso = Statement(
        """
        INSERT INTO challenge (id, website_id, user_id, state, policy, context, nonce, asked_at, expires_at, operation)
        SELECT :new, website_id, user_id, state, policy, context, nonce, asked_at, expires_at, operation
        FROM challenge WHERE id = :copied
        """)

    @Test(arguments: Engine.allCases) func deletingAUserEndsOpenChallenges(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try await Sample.fill(store, at: database.url)
        let operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
        let expired = Self.expire(expiresAt: .timestamp(Sample.now), challenge: .id(Sample.id(2) as ChallengeID))
        _ = try await store.run(Script("expire", writes: [expired]))
        #expect(try await Sample.approve(3, on: store, as: operations.new()) != nil)
        for (number, ended) in [(1, [Sample.id(1)]), (2, []), (3, [])] as [(Int, [ChallengeID])] {
            #expect(try await Sample.forget(number, on: store, as: operations.new()) == ended)
            #expect(try await Sample.forget(number, on: store, as: operations.new()) == nil)
        }
        // In the sample, the challenge of a user has the user's id.
        #expect(try await store.run(Script("noted", reads: [Self.noted()])).row(0).integer("count") == 1)
    }

    /// More challenges are open than the newest and one other, as if the relays' clocks differed. A repetition finds
    /// the same ones, and no challenge of another user, even if that user was deleted at the same time.
    @Test(arguments: Engine.allCases) func deletingAUserReturnsEachOpenChallenge(_ engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try database.open()
        defer { store.close() }
        try await Sample.fill(store, at: database.url)
        let operations = Operations(
            masterKey: Secret([UInt8](repeating: 1, count: 32)), randomness: SystemRandomness())
        func ids(of user: Int) -> [ChallengeID] { [0, 9000, 9500].map { Sample.id(user + $0) } }
        let others = [1, 2].flatMap { user in
            ids(of: user).dropFirst().map { Self.openAlso(new: .id($0), copied: .id(ids(of: user)[0])) }
        }
        _ = try await store.run(Script("open", writes: others))
        // The newest challenge of this user has ended already.
        #expect(try await Sample.approve(2, on: store, as: operations.new()) != nil)
        let operation = operations.new()
        #expect(try await Set(Sample.forget(1, on: store, as: operation) ?? []) == Set(ids(of: 1)))
        #expect(
            try await Set(Sample.forget(2, on: store, as: operations.new()) ?? []) == Set(ids(of: 2).dropFirst()))
        let again = operations.again(operation.id)
        #expect(try await Set(Sample.forget(1, on: store, as: again) ?? []) == Set(ids(of: 1)))
    }

    /// Two relays on one database: one deletes a user while the other ends the user's challenge.
    @Test(.timeLimit(.minutes(15))) func deletingAUserLeavesEndedChallenges() async throws {
        let relays = try await TwoRelays()
        try relays.hold(Self.deny(now: .timestamp(Sample.now), challenge: .id(Sample.id(1) as ChallengeID)))
        let (first, second, operation) = (relays.first, relays.second, relays.operations.new())
        async let forgotten = Sample.forget(1, on: first, as: operation)
        try await second.untilRunning("UPDATE challenge%")
        try relays.holder.commit()
        #expect(try await forgotten == [])
    }

    /// One relay deletes a user while the other binds a phone to the user.
    @Test(.timeLimit(.minutes(15))) func deletingAUserDeletesPhones() async throws {
        let relays = try await TwoRelays()
        let (first, second) = (relays.first, relays.second)
        let operations = relays.operations
        // Another code, which sorts before the phone's code. The lock on its row stops the deletion between the
        // phones and the codes.
        let early = [UInt8](repeating: 0, count: 32)
        try await Sample.addCode(early, to: 1, on: first, as: operations.new())
        try relays.hold(Self.lock(digest: .blob(early)))

        async let forgotten = Sample.forget(1, on: first, as: operations.new())
        try await second.untilRunning("DELETE FROM activation%")
        let isBound = Atomic<Bool>(false)
        async let bound: Void = {
            try? await Sample.bind(1, on: second, as: operations.new())
            isBound.store(true, ordering: .sequentiallyConsistent)
        }()
        try await second.untilRunning("UPDATE user%") { isBound.load(ordering: .sequentiallyConsistent) }
        try relays.holder.commit()
        await bound
        #expect(try await forgotten != nil)
        #expect(try await first.run(Script("left", reads: [Self.left()])).row(0).integer("count") == 0)
    }
}
