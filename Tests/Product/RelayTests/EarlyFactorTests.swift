import Domain
import TestSupport
import Testing
import World

@testable import Relay

/// Factors that were started while no approval was required. A person who had the session for a minute must not be
/// able to complete one months later.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct EarlyFactorTests {
    private static let mail = "ada@example.com"
    private static let theirs = "eve@example.org"

    private func person(
        _ kind: StoreKind, _ policies: [String: String] = [:], email: String? = nil
    ) async throws -> Person {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["number": "0"].merging(policies) { $1 })
        return try await Person.registered("ada", at: shop, rig, email: email)
    }

    private func isConflict(_ refused: Refusal?, _ parameter: String) -> Bool {
        guard case .conflict(let faults) = refused else { return false }
        return faults.map(\.parameter) == [parameter] && faults[0].message.english.contains("start it again")
    }

    @Test(arguments: StoreKind.all) func waitingAddressNeedsApprovalOnceAPhoneIsBound(kind: StoreKind) async throws {
        let ada = try await person(kind)
        _ = try await ada.change { $0.addresses.updateValue(Self.theirs, forKey: .mail) }
        let early = try addressCode(await ada.rig.mails.next())
        let phone = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        #expect(isConflict(await refusal { try await ada.confirm(Self.theirs, early) }, "address"))
        #expect(isConflict(await refusal { try await ada.sendCode(to: Self.theirs) }, "address"))
        #expect(try await ada.factors().map(\.state) == [.waiting])
        #expect(try ada.rig.count("SELECT sum(failures) FROM factor") == 0)

        let asked = await refusal { try await ada.change { $0.addresses.updateValue(Self.theirs, forKey: .mail) } }
        guard case .approvalRequired(let challenge, _) = asked else { throw RigFailure("not asked") }
        try await ada.decide(challenge, .approve, by: phone)
        _ = try await ada.change(challenge) { $0.addresses.updateValue(Self.theirs, forKey: .mail) }
        #expect(try await ada.confirm(Self.theirs, try addressCode(await ada.rig.mails.next())))
    }

    @Test(arguments: StoreKind.all) func waitingTOTPNeedsApprovalOnceAPhoneIsBound(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let secret = try await ada.addTOTP().secret
        _ = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        #expect(isConflict(await refusal { try await ada.confirm(try ada.code(secret)) }, "totp"))
        #expect(try await ada.factors().map(\.state) == [.waiting])
    }

    /// The phone is bound between the read and the write, so the store checks again.
    @Test(arguments: StoreKind.all) func storeChecksTheApprovalRequirementAgain(kind: StoreKind) async throws {
        let ada = try await person(kind)
        _ = try await ada.addTOTP()
        let waiting = try #require(try await ada.factors().first)
        _ = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        for (hasWord, written) in [(false, CodeUseOutcome.changed), (true, .done)] {
            let came = try await ada.rig.on { relay in
                let user = try await relay.user(named: "ada", of: ada.website)
                return try await relay.store.confirm(
                    waiting, of: user.id, failures: 0, counter: 1, isVouchedFor: hasWord, at: ada.rig.time.now(),
                    as: relay.operations.new())
            }
            #expect(came == written)
        }
    }

    /// The website knew the address before the first factor was bound.
    @Test(arguments: StoreKind.all) func registeredAddressNeedsNoApproval(kind: StoreKind) async throws {
        let ada = try await person(kind, ["addresses": "confirmed"], email: Self.mail)
        let code = try addressCode(await ada.rig.mails.next())
        _ = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        #expect(try await ada.confirm(Self.mail, code))
    }

    @Test(arguments: StoreKind.all) func websiteCanVouchForWaitingFactors(kind: StoreKind) async throws {
        let ada = try await person(kind, ["further-factors": "website"])
        let secret = try await ada.addTOTP().secret
        _ = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        #expect(try await ada.confirm(try ada.code(secret)))
    }
}
