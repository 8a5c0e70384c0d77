import Domain
import Synchronization
import TestSupport
import Testing

@testable import Relay
@testable import Storage

/// Two relays on one database: a phone approves at one while the other unbinds the phone.
@Suite(.mayBlock) struct RevokeTests {
    private static let lock = Statement("UPDATE step SET at = at WHERE challenge_id = ?")
    private static let hold = Statement("UPDATE user SET state = state WHERE id = ?")
    private static let isRevoked = Statement("SELECT count(*) FROM device WHERE id = ? AND state = 'revoked'")
    private static let approvals = Statement("SELECT count(*) FROM challenge WHERE id = ? AND decision = 'approve'")
    private static let revoke = Statement("UPDATE device SET state = 'revoked' WHERE id = ?")

    @Test(.timeLimit(.minutes(2))) func noApprovalCommitsAfterItsPhoneIsRevoked() async throws {
        let relays = try await TwoRelays()
        let (first, second) = (relays.first, relays.second)
        let operations = relays.operations
        let phone: DeviceID = Sample.id(1)
        // The lock on the step's row stops the approval after it has ended the challenge and before the commit.
        try relays.hold(BoundStatement(Self.lock, .id(phone)))

        async let approved = Sample.approve(1, on: first, as: operations.new())
        try await second.untilRunning("UPDATE step%")
        let isRevoked = Atomic<Bool>(false)
        async let revoked: Void = {
            let script = Script(
                "revoke", writes: [BoundStatement(Self.hold, .id(phone)), BoundStatement(Self.revoke, .id(phone))])
            _ = try await second.run(script)
            isRevoked.store(true, ordering: .sequentiallyConsistent)
        }()
        try await second.untilRunning("UPDATE user%") { isRevoked.load(ordering: .sequentiallyConsistent) }
        let wasRevokedFirst = isRevoked.load(ordering: .sequentiallyConsistent)
        try relays.holder.commit()
        let isApproved = try await approved != nil
        try await revoked
        // An approval that has waited too long starts again, and may then find its phone revoked. That is not an
        // approval.
        #expect(!(isApproved && wasRevokedFirst))
        // In either order, the phone is revoked, and the challenge has the result that was answered.
        let reads = [BoundStatement(Self.isRevoked, .id(phone)), BoundStatement(Self.approvals, .id(phone))]
        let rows = try await second.run(Script("test", reads: reads))
        #expect(try rows.row(0).integer(0) == 1)
        #expect(try rows.row(1).integer(0) == (isApproved ? 1 : 0))
    }
}
