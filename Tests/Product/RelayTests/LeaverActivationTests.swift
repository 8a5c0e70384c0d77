import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Users who left the directory get no activation, and no code binds a phone to them.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct LeaverActivationTests {
    private func leaver(_ kind: StoreKind, _ policies: [String: String] = [:]) async throws -> Person {
        let rig = try await RelayRig(kind)
        return try await Person.registered("ada", at: try await rig.shop("shop", policies), rig)
    }

    @Test(arguments: StoreKind.all) func leaverGetsNoActivation(kind: StoreKind) async throws {
        let ada = try await leaver(kind)
        try ada.rig.stop(.disabled)
        #expect(await ada.refusedCode() == .disabled)
        await #expect(throws: RigFailure.self) { try await ada.rig.operatorsCode(for: "ada", of: "shop") }
        #expect(try ada.rig.count("SELECT count(*) FROM activation") == 1)
    }

    /// A sync can disable the user after the relay has read the row.
    @Test(arguments: StoreKind.all) func userDisabledMeanwhileGetsNoActivation(kind: StoreKind) async throws {
        let ada = try await leaver(kind)
        let (rig, now) = (ada.rig, ada.rig.time.now())
        let user = try await rig.on { relay in try await relay.user(named: "ada", of: ada.website) }
        try rig.stop(.disabled)
        let new = NewActivation(
            ActivationCode(OperationSecret(drawnFrom: SystemRandomness())), for: user.id, approval: nil, at: now)
        let outcome = try await rig.on { relay in
            try await rig.store.activate(new, website: ada.website.id, secret: nil, as: relay.operations.new())
        }
        #expect(outcome == .disabled)
        #expect(try rig.count("SELECT count(*) FROM activation") == 1)
    }

    /// While a user is locked, only a code of an operator binds a phone. A leaver's phone is bound
    /// by no code, even if its operator made it before the user left.
    @Test(arguments: StoreKind.all, [UserState.locked, .frozen, .disabled])
    func codeBindsNoPhoneToALeaver(kind: StoreKind, state: UserState) async throws {
        let ada = try await leaver(kind)
        let code = try await ada.rig.operatorsCode(for: "ada", of: "shop")
        try ada.rig.stop(state)
        let phone = try TestPhone(pushToken: "ada")
        #expect(await ada.bind(phone, ada.code) == .failure(.unauthenticated))
        #expect((await ada.bind(phone, code, from: "198.51.100.1").bound != nil) == (state != .disabled))
        #expect(try ada.rig.devices(.active) == (state == .disabled ? 0 : 1))
    }
}
