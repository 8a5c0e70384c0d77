import Bytes
import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Recovery codes: shown once, replaced by new ones, and able to lift a lock or freeze that the user's own answers
/// caused.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct RecoveryUnlockTests {
    private func person(_ kind: StoreKind, _ policies: [String: String] = [:]) async throws -> Person {
        let rig = try await RelayRig(kind)
        return try await Person.registered("ada", at: try await rig.shop("shop", policies), rig)
    }

    private func stop(_ ada: Person, _ state: UserState, by doer: ChangeAuthor = .phone) throws {
        try ada.rig.execute("UPDATE user SET state = '\(state.rawValue)', stopped_by = '\(doer.rawValue)'")
    }

    private func state(_ ada: Person) async throws -> UserState {
        try await ada.rig.on { relay in try await relay.user(named: ada.username, of: ada.website).state }
    }

    @Test(arguments: StoreKind.all) func tenRecoveryCodesReplaceEarlierOnes(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let operation = ada.rig.relay.operations.new(isRepeatable: true)
        let first = try await ada.addRecoveryCodes(as: operation)
        #expect(Set(first).count == 10)
        #expect(first.allSatisfy { $0.utf8.count == 19 })
        #expect(try await ada.addRecoveryCodes(as: ada.rig.relay.operations.again(operation.id)) == first)
        #expect(try await ada.factors().map(\.kind) == [.recovery])
        let second = try await ada.addRecoveryCodes()
        #expect(Set(first).isDisjoint(with: second))
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code") == 10)
        #expect(try ada.rig.count("SELECT count(*) FROM factor") == 1)
        // They are no factor that makes further factors require an approval.
        #expect(try await !ada.isProved)
        try stop(ada, .frozen)
        #expect(try await !ada.unlock(by: first[0]))
        ada.rig.time.advance(by: .seconds(5))
        #expect(try await ada.unlock(by: second[0]))
        try await ada.drop(.recovery)
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code") == 0)
    }

    @Test(arguments: StoreKind.all, [UserState.frozen, .locked])
    func recoveryCodeUnlocksTheUser(kind: StoreKind, state: UserState) async throws {
        let ada = try await person(kind)
        let codes = try await ada.addRecoveryCodes()
        try stop(ada, state)
        try ada.rig.execute("UPDATE factor SET failures = 4")
        try ada.rig.execute("UPDATE user SET code_failures = 4")
        let operation = ada.rig.relay.operations.new()
        #expect(try await ada.unlock(by: codes[3].uppercased(), as: operation))
        #expect(try await self.state(ada) == .active)
        #expect(try ada.rig.count("SELECT sum(failures) FROM factor") == 0)
        #expect(try ada.rig.count("SELECT code_failures FROM user") == 0)
        let noted = "SELECT count(*) FROM audit WHERE event = 'user.unlocked' AND outcome = 'code'"
        #expect(try ada.rig.count(noted) == 1)
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code WHERE used_at IS NOT NULL") == 1)
        // The code is used up; a repetition of the request returns the first result.
        try stop(ada, state)
        #expect(try await ada.unlock(by: codes[3], as: ada.rig.relay.operations.again(operation.id)))
        #expect(try await self.state(ada) == state)
        #expect(try await !ada.unlock(by: codes[3]))
        #expect(await refusal { try await ada.unlock(by: codes[4]) } == .limited(retryAfter: .seconds(5)))
        ada.rig.time.advance(by: .seconds(5))
        #expect(try await ada.unlock(by: codes[4]))
    }

    @Test(arguments: StoreKind.all) func concurrentUnlocksUseOneRecoveryCode(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let codes = try await ada.addRecoveryCodes()
        try stop(ada, .frozen)
        let lifted = await withTaskGroup(of: Bool?.self) { group in
            for _ in 0..<12 { group.addTask { try? await ada.unlock(by: codes[0]) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        // Later requests find nothing to unlock.
        #expect(lifted.allSatisfy { $0 == true })
        #expect(try ada.rig.count("SELECT count(*) FROM audit WHERE event = 'user.unlocked'") == 1)
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code WHERE used_at IS NOT NULL") == 1)
    }

    @Test(arguments: StoreKind.all) func recoveryCodeDoesNotLiftAnOperatorLock(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let codes = try await ada.addRecoveryCodes()
        try stop(ada, .locked, by: .operator)
        guard case .forbidden = await refusal({ try await ada.unlock(by: codes[0]) }) else {
            throw RigFailure("lifted")
        }
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code WHERE used_at IS NOT NULL") == 0)
    }

    @Test(arguments: StoreKind.all) func unlockWithoutRecoveryCodesIsRefused(kind: StoreKind) async throws {
        let ada = try await person(kind)
        try stop(ada, .frozen)
        guard case .conflict(let faults) = await refusal({ try await ada.unlock(by: "mzxw-6ytb-ojrg-c6tr") }) else {
            throw RigFailure("there were codes")
        }
        #expect(faults.map(\.parameter) == ["otp"])
    }

    @Test(arguments: StoreKind.all) func newRecoveryCodesNeedApproval(kind: StoreKind) async throws {
        let ada = try await person(kind)
        _ = try await ada.withTOTP()
        guard case .approvalRequired = await refusal({ try await ada.addRecoveryCodes() }) else {
            throw RigFailure("not asked")
        }
        #expect(try ada.rig.count("SELECT count(*) FROM recovery_code") == 0)
    }

    @Test(arguments: StoreKind.all) func deletingAUserRemovesRecoveryCodes(kind: StoreKind) async throws {
        let ada = try await person(kind)
        _ = try await ada.addRecoveryCodes()
        _ = try await ada.withTOTP()
        try ada.rig.execute(
            """
            INSERT INTO sent_code (factor_id, counter, sent_at, expires_at)
            SELECT id, 0, created_at, created_at FROM factor WHERE kind = 'totp'
            """)
        try await ada.rig.on { relay in try await relay.forget(username: "ada", by: ada.website) }
        for table in ["factor", "recovery_code", "sent_code"] {
            #expect(try ada.rig.count("SELECT count(*) FROM \(table)") == 0, "\(table)")
        }
    }
}
