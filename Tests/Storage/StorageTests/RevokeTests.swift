import Domain
import Synchronization
import TestSupport
import Testing

@testable import Relay
@testable import Storage

/// Two relays on one database: a phone approves at one while the other unbinds the phone.
@Suite(.mayBlock) struct RevokeTests {
    private static let lock = Statement("UPDATE step SET at = at WHERE challenge_id = :challenge")
    private static let hold = Statement("UPDATE user SET state = state WHERE id = :user")
    private static let isRevoked = Statement(
        "SELECT count(*) AS count FROM device WHERE id = :device AND state = 'revoked'")
    private static let approvals = Statement(
        "SELECT count(*) AS count FROM challenge WHERE id = :challenge AND decision = 'approve'")
    private static let revoke = Statement("UPDATE device SET state = 'revoked' WHERE id = :device")

    @Test(.timeLimit(.minutes(2))) func noApprovalCommitsAfterItsPhoneIsRevoked() async throws {
        let relays = try await TwoRelays()
        let (first, second) = (relays.first, relays.second)
        let operations = relays.operations
        let phone: DeviceID = Sample.id(1)
        // The lock on the step's row stops the approval after it has ended the challenge and before the commit.
        try relays.hold(Self.lock(challenge: .id(phone)))

        async let approved = Sample.approve(1, on: first, as: operations.new())
        try await second.untilRunning("UPDATE step%")
        let isRevoked = Atomic<Bool>(false)
        async let revoked: Void = {
            let script = Script(
                "revoke", writes: [Self.hold(user: .id(phone)), Self.revoke(device: .id(phone))])
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
        let reads = [Self.isRevoked(device: .id(phone)), Self.approvals(challenge: .id(phone))]
        let rows = try await second.run(Script("test", reads: reads))
        #expect(try rows.row(0).integer("count") == 1)
        #expect(try rows.row(1).integer("count") == (isApproved ? 1 : 0))
    }
}
