import Domain
import Synchronization
import TestSupport
import Testing

@testable import Relay
@testable import Storage

/// Two relays on one database: one forgets a user while the other binds a phone to it.
@Suite(.mayBlock) struct ForgetTests {
    private static let lock = Statement("UPDATE activation SET used_at = NULL WHERE digest = ?")
    private static let left = Statement("SELECT count(*) FROM device WHERE user_id NOT IN (SELECT id FROM user)")

    @Test(.timeLimit(.minutes(15))) func aForgottenUserLeavesNoPhoneBehind() async throws {
        let relays = try await TwoRelays()
        let (first, second) = (relays.first, relays.second)
        let operations = relays.operations
        // A further code, in front of the one that the phone has: whoever holds its row halts the forgetting after the
        // phones and before the codes.
        let early = [UInt8](repeating: 0, count: 32)
        try await Sample.addCode(early, to: 1, on: first, as: operations.new())
        try relays.hold(Step(Self.lock, .blob(early)))

        async let forgotten: Void = Sample.forget(1, on: first, as: operations.new())
        try await second.untilRunning("DELETE FROM activation%")
        let isBound = Atomic<Bool>(false)
        async let bound: Void = {
            try? await Sample.bind(1, on: second, as: operations.new())
            isBound.store(true, ordering: .sequentiallyConsistent)
        }()
        try await second.untilRunning("UPDATE user%") { isBound.load(ordering: .sequentiallyConsistent) }
        try relays.holder.commit()
        await bound
        try await forgotten
        #expect(try await first.run(Script("left", reads: [Step(Self.left)])).row(0).integer(0) == 0)
    }
}
