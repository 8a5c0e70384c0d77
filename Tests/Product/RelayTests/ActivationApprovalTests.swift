import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// An activation code for a further phone: the relay issues it after the user's approval, one for each approval.
@Suite(.mayBlock) struct ActivationApprovalTests {
    private func person(_ kind: StoreKind, _ policies: [String: String] = [:]) async throws -> (Person, PhoneCredential)
    {
        let rig = try await RelayRig(kind)
        let person = try await Person.registered("ada", at: try await rig.shop("shop", policies), rig)
        return (person, try await person.bound(try TestPhone(pushToken: "first"), person.code))
    }

    private func asked(_ refusal: Refusal?) throws -> (challenge: ChallengeID, number: String?) {
        guard case .approvalRequired(let challenge, let number) = refusal else {
            throw RigFailure("not asked: \(String(describing: refusal))")
        }
        return (challenge, number)
    }

    @Test(arguments: StoreKind.all) func furtherActivationNeedsUserApproval(kind: StoreKind) async throws {
        let (person, phone) = try await person(kind)
        let rig = person.rig
        let (challenge, number) = try asked(await person.refusedCode())
        #expect(number?.utf8.count == 2)
        await rig.settled()
        #expect(rig.pushes.sent.map(\.challenge) == [challenge])
        // The website waits for this challenge until it has ended.
        #expect(await person.refusedCode(challenge) == .approvalRequired(challenge, number: number))
        try await person.decide(challenge, .approve, number, by: phone)
        let operation = rig.relay.operations.new(isRepeatable: true)
        let code = try await person.furtherCode(challenge, as: operation)
        // A repetition of the request, and then another request: an approval is used once.
        #expect(try await person.furtherCode(challenge, as: rig.relay.operations.again(operation.id)) == code)
        #expect(await person.refusedCode(challenge) == Relay.noApproval)
        // The phone does not have to wait.
        #expect(await person.bind(try TestPhone(pushToken: "second"), code).bound != nil)
        let approvals = try rig.count("SELECT count(*) FROM activation WHERE approval = 'user'")
        #expect(approvals == 1)
        #expect(rig.pushes.sent.count == 1)
    }

    @Test(arguments: StoreKind.all) func repeatedActivationRequestOpensOneApproval(kind: StoreKind) async throws {
        let (person, _) = try await person(kind)
        let operation = person.rig.relay.operations.new()
        let first = await person.refusedCode(nil, as: operation)
        let again = await person.refusedCode(nil, as: person.rig.relay.operations.again(operation.id))
        #expect(try asked(first) == asked(again))
        await person.rig.settled()
        #expect(person.rig.pushes.sent.count == 1)
    }

    @Test(arguments: StoreKind.all) func approvalOfAnotherUserOrActionIsRefused(kind: StoreKind) async throws {
        let (ada, adas) = try await person(kind, ["number": "0", "lifetime": "600"])
        let rig = ada.rig
        let bob = try await Person.registered("bob", at: ada.website, rig)
        let bobs = try await bob.bound(try TestPhone(pushToken: "bob"), bob.code)
        let eve = try await Person.registered("eve", at: try await rig.shop("bank", ["number": "0"]), rig)
        let eves = try await eve.bound(try TestPhone(pushToken: "eve"), eve.code)
        var wrong: [(String, ChallengeID)] = [("nobody's", rig.relay.operations.draw())]
        for (person, phone) in [(bob, bobs), (eve, eves)] {
            let (challenge, _) = try asked(await person.refusedCode())
            try await person.decide(challenge, .approve, by: phone)
            wrong.append((person.username, challenge))
        }
        let login = try await ada.login()
        try await ada.decide(login.challenge, .approve, by: adas)
        wrong.append(("a login's", login.challenge))
        let (denied, _) = try asked(await ada.refusedCode())
        try await ada.decide(denied, .deny, by: adas)
        wrong.append(("denied", denied))
        let (late, _) = try asked(await ada.refusedCode())
        try await ada.decide(late, .approve, by: adas)
        for (what, challenge) in wrong { #expect(await ada.refusedCode(challenge) == Relay.noApproval, "\(what)") }
        rig.time.advance(by: .seconds(600))
        #expect(await ada.refusedCode(late) == Relay.noApproval)
        #expect(try rig.count("SELECT count(*) FROM activation WHERE approval = 'user'") == 0)
    }

    @Test(arguments: StoreKind.all) func oneApprovalGivesOneActivationCode(kind: StoreKind) async throws {
        let (person, phone) = try await person(kind, ["number": "0"])
        let (challenge, _) = try asked(await person.refusedCode())
        try await person.decide(challenge, .approve, by: phone)
        let refusals = await withTaskGroup(of: Refusal?.self) { group in
            for _ in 0..<8 { group.addTask { await person.refusedCode(challenge) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(refusals.filter { $0 == nil }.count == 1)
        #expect(refusals.filter { $0 == Relay.noApproval }.count == 7)
    }

    /// A thief used a stolen phone to approve a phone of their own, before the stolen phone was unbound.
    @Test(arguments: StoreKind.all) func approvalIsVoidOnceItsPhoneIsUnbound(kind: StoreKind) async throws {
        let (person, phone) = try await person(kind, ["number": "0"])
        let rig = person.rig
        let (challenge, _) = try asked(await person.refusedCode())
        try await person.decide(challenge, .approve, by: phone)
        try await rig.on { relay in try await relay.unbind(by: phone) }
        #expect(await person.refusedCode(challenge) == Relay.noApproval)
        #expect(try rig.count("SELECT count(*) FROM activation WHERE approval = 'user'") == 0)
    }

    @Test(arguments: StoreKind.all, [UserState.frozen, .locked])
    func lockedUserGetsNoActivationCode(kind: StoreKind, state: UserState) async throws {
        let (person, phone) = try await person(kind, ["number": "0"])
        let (challenge, _) = try asked(await person.refusedCode())
        try await person.decide(challenge, .approve, by: phone)
        try person.rig.execute("UPDATE user SET state = '\(state.rawValue)'")
        #expect(await person.refusedCode(challenge) == Relay.noApproval)
        try person.rig.execute("UPDATE user SET state = 'active'")
        #expect(await person.refusedCode(challenge) == nil)
    }

    @Test(arguments: StoreKind.all) func userWithoutPhonesNeedsAnOperator(kind: StoreKind) async throws {
        let (person, phone) = try await person(kind)
        let rig = person.rig
        try await rig.on { relay in try await relay.unbind(by: phone) }
        let (challenge, _) = try asked(await person.refusedCode())
        let reported = try await person.reported(challenge)
        #expect(reported.result == .failure && reported.reason == .undeliverable)
        #expect(await person.refusedCode(challenge) == Relay.noApproval)

        let store = rig.store
        let code = try await rig.operatorsCode(for: "ada", of: "shop")
        #expect(await person.bind(try TestPhone(pushToken: "new"), code).bound != nil)
        let audits = try rig.count(
            "SELECT count(*) FROM audit WHERE event = 'user.activation' AND outcome = 'operator'")
        #expect(audits == 1)
        for (username, website) in [("ada", "bank"), ("nobody", "shop")] {
            let other = try await rig.on { _ in try await store.run(Activations.subject(username, of: website)) }
            #expect(other == nil)
        }
    }

    @Test(arguments: StoreKind.all, ["further-factors", "answers"])
    func noApprovalIsNeededWhenTheWebsiteVouches(kind: StoreKind, policy: String) async throws {
        let (person, _) = try await person(kind, [policy: "website"])
        #expect(await person.refusedCode() == nil)
        #expect(try person.rig.count("SELECT count(*) FROM activation WHERE approval = 'website'") == 2)
    }
}
