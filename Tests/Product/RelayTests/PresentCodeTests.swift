import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// An active app is replaced only by somebody who has it, or who has a phone of the user.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PresentCodeTests {
    private func person(_ kind: StoreKind, _ policies: [String: String]) async throws -> Person {
        let rig = try await RelayRig(kind)
        return try await Person.registered("ada", at: try await rig.shop("shop", policies), rig)
    }

    private func replace(
        _ ada: Person, _ code: String?, approval: ChallengeID? = nil, as operation: Domain.Operation? = nil
    ) async throws -> TOTPSetup {
        let operation = operation ?? ada.rig.relay.operations.new()
        return try await ada.rig.on { relay in
            try await relay.addTOTP(
                username: "ada", shape: CodeShape(), code: code, approval: approval, by: ada.website, as: operation)
        }
    }

    @Test(arguments: StoreKind.all) func websiteAloneReplacesNoApp(kind: StoreKind) async throws {
        let ada = try await person(kind, ["further-factors": "website"])
        let secret = try await ada.withTOTP()
        ada.rig.time.advance(by: .seconds(60))
        guard case .approvalRequired(let asked, _)? = await refusal({ try await replace(ada, nil) }) else {
            Issue.record("the website alone replaces the app")
            return
        }
        // Without a phone, a code of the app approves it.
        #expect(try await ada.reported(asked).result == .wait)
        guard case .invalid? = await refusal({ try await replace(ada, ada.wrong(try ada.code(secret))) }) else {
            Issue.record("a wrong code replaces the app")
            return
        }
        #expect(try ada.rig.count("SELECT code_failures AS value FROM user") == 1)
        ada.rig.time.advance(by: .seconds(5))
        let code = try ada.code(secret)
        let operation = ada.rig.relay.operations.new(isRepeatable: true)
        let setup = try await replace(ada, code, as: operation)
        #expect(try await replace(ada, code, as: ada.rig.relay.operations.again(operation.id)).secret == setup.secret)
        // The code works once.
        ada.rig.time.advance(by: .seconds(5))
        #expect(await refusal { try await replace(ada, code) } != nil)
        ada.rig.time.advance(by: .seconds(60))
        #expect(try await ada.confirm(try ada.code(setup.secret)))
        #expect(try await ada.factors().map(\.kind) == [.totp])
    }

    /// The app's owner has lost it; that is what recoveries are for.
    @Test(arguments: StoreKind.all) func recoveryCodeReplacesNoApp(kind: StoreKind) async throws {
        let ada = try await person(kind, [:])
        let codes = try await ada.addRecoveryCodes()
        let secret = try await ada.withTOTP()
        ada.rig.time.advance(by: .seconds(60))
        guard case .approvalRequired(let asked, _)? = await refusal({ try await replace(ada, nil) }) else {
            Issue.record("nobody is asked")
            return
        }
        let submit = { (code: String) in
            try await ada.rig.on { relay in
                try await relay.backup(asked, of: nil, code: code, by: ada.website, as: relay.operations.new())
            }.result
        }
        #expect(try await submit(codes[0]) != .success)
        ada.rig.time.advance(by: .seconds(5))
        #expect(try await submit(try ada.code(secret)) == .success)
        _ = try await replace(ada, nil, approval: asked)
    }
}
