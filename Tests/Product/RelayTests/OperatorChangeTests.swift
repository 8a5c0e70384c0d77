import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

/// An operator's locks, suspensions and revocations, which only an operator can undo.
@Suite struct OperatorChangeTests {
    private static let websites = ["answers": "website", "further-factors": "website"]

    private func stoppedBy(_ device: DeviceID, _ rig: RelayRig) async throws -> ChangeAuthor? {
        let store = rig.store
        return try await rig.on { _ in try await store.run(Accounts.device(device)) }?.stoppedBy
    }

    private func isForbidden(_ work: () async throws -> Void) async -> Bool {
        do {
            try await work()
            return false
        } catch let Refusal.forbidden(why) {
            return why.english.contains("operator")
        } catch {
            Issue.record("\(error)")
            return false
        }
    }

    // MARK: Phones

    @Test(arguments: StoreKind.all) func websiteCannotResumeAPhoneSuspendedByAnOperator(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop("shop", ["number": "0"]), rig)
        let phone = try TestPhone(pushToken: "push")
        let device = try await ada.bound(phone, ada.code).id
        let put: @Sendable (DeviceSwitch, String?) async throws -> Void = { state, name in
            _ = try await rig.on { relay in
                try await relay.change(device, ofUser: "ada", name: name, state: state, by: ada.website)
            }
        }
        // The website can lift its own suspension, …
        try await put(.suspended, nil)
        #expect(try await stoppedBy(device, rig) == .website)
        try await put(.active, nil)
        #expect(try await stoppedBy(device, rig) == nil)
        // … until an operator takes it over.
        try await put(.suspended, nil)
        #expect(try await rig.byOperator(.suspended, device))
        try await put(.suspended, "Old")
        #expect(try await stoppedBy(device, rig) == .operator)
        #expect(await isForbidden { try await put(.active, nil) })
        #expect(await isForbidden { try await put(.active, "New") })
        // Nothing of a refused request is applied, not even the name.
        #expect(try await ada.devices().map(\.name) == ["Old"])
        #expect(try rig.devices(.suspended) == 1)
        await #expect(throws: Refusal.unauthenticated) { try await ada.credential(phone, device) }
        let resumed = "SELECT count(*) FROM audit WHERE event = 'device.resumed' AND outcome ="
        #expect(try rig.count("\(resumed) 'website'") == 1)

        #expect(try await rig.byOperator(.active, device))
        #expect(try await stoppedBy(device, rig) == nil)
        #expect(try rig.count("\(resumed) 'operator'") == 1)
        _ = try await ada.credential(phone, device)
        try await put(.suspended, nil)
        try await put(.active, nil)
    }

    @Test(arguments: StoreKind.all, [DeviceState.suspended, .revoked])
    func websiteCannotRebindAPhoneUnboundByAnOperator(kind: StoreKind, state: DeviceState) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop("shop", Self.websites), rig)
        let bind: @Sendable (String) async throws -> DeviceID = { token in
            try await rig.on { relay in
                try await relay.bind(
                    token: ada.token, pushToken: token, by: ada.website, as: relay.operations.new())
            }
        }
        let device = try await bind("one")
        let unbind: @Sendable () async throws -> Void = {
            try await rig.on { relay in try await relay.unbind(device, ofUser: "ada", by: ada.website) }
        }
        // The website may bind a phone again that it has unbound itself.
        try await unbind()
        #expect(try await stoppedBy(device, rig) == .website)
        #expect(try await bind("two") == device)
        #expect(try await stoppedBy(device, rig) == nil)

        #expect(try await rig.byOperator(state, device))
        let events = "SELECT count(*) FROM audit WHERE event IN ('device.bound', 'device.changed')"
        let before = try rig.count(events)
        #expect(await isForbidden { _ = try await bind("three") })
        // To unbind the phone first does not help.
        try await unbind()
        #expect(try await stoppedBy(device, rig) == .operator)
        #expect(await isForbidden { _ = try await bind("three") })
        #expect(try rig.devices(.active) == 0)
        #expect(try rig.count("SELECT count(*) FROM device WHERE push_token = 'three'") == 0)
        #expect(try rig.count(events) == before)

        // The operator permits it, because the phone has no key that could be replaced.
        #expect(try await rig.byOperator(.active, device))
        #expect(try await stoppedBy(device, rig) == nil)
        #expect(try rig.devices(.active) == 0)
        #expect(try await bind("four") == device)
        #expect(try rig.count("SELECT count(*) FROM device WHERE state = 'active' AND push_token = 'four'") == 1)
    }

    @Test(arguments: StoreKind.all) func operatorCannotRestoreAnUnboundKey(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop(), rig)
        let device = try await ada.bound(try TestPhone(pushToken: "push"), ada.code).id
        #expect(try await rig.byOperator(.revoked, device))
        #expect(try await !rig.byOperator(.active, device))
        #expect(try await stoppedBy(device, rig) == .operator)
    }

    // MARK: Users

    private func state(_ fixture: TwoWebsitesFixture) async throws -> (UserState, ChangeAuthor?) {
        let store = fixture.rig.store
        let user = try await fixture.rig.on { _ in try await store.run(Accounts.user("ada", of: "shop")) }
        return (try #require(user).state, user?.stoppedBy)
    }

    private func unlock(_ fixture: TwoWebsitesFixture) async throws {
        try await fixture.rig.on { relay in
            try await relay.unlock(username: "ada", by: fixture.shop, as: relay.operations.new())
        }
    }

    private func failed(_ fixture: TwoWebsitesFixture) async throws {
        let asked = try await fixture.ask()
        _ = try await fixture.rig.decide(.approve, asked.challenge, number: "11", by: fixture.first)
    }

    @Test(arguments: StoreKind.all) func websiteCannotLiftAnOperatorLock(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["guesses": "1", "further-factors": "website"])
        #expect(try await fixture.lock())
        #expect(try await state(fixture) == (.locked, .operator))
        #expect(await isForbidden { try await unlock(fixture) })
        #expect(try await state(fixture) == (.locked, .operator))
        try await fixture.unlock()
        #expect(try await state(fixture) == (.active, nil))
        // The website can lift a lock that the user caused …
        try await failed(fixture)
        #expect(try await state(fixture) == (.locked, .phone))
        try await unlock(fixture)
        #expect(try await state(fixture) == (.active, nil))
        // … until an operator takes it over, once.
        try await failed(fixture)
        #expect(try await fixture.lock())
        #expect(try await !fixture.lock())
        #expect(await isForbidden { try await unlock(fixture) })
        let unlocked = "SELECT count(*) FROM audit WHERE event = 'user.unlocked' AND outcome ="
        #expect(try fixture.rig.count("\(unlocked) 'website'") == 1)
        #expect(try fixture.rig.count("\(unlocked) 'operator'") == 1)
    }

    /// Under `further-factors: website` the website may lift a freeze. This must not lift an operator's lock.
    @Test(arguments: StoreKind.all, [true, false])
    func fraudReportDoesNotLiftAnOperatorLock(kind: StoreKind, lockedFirst: Bool) async throws {
        let fixture = try await TwoWebsitesFixture(kind, policies: ["further-factors": "website"])
        let asked = try await fixture.ask()
        _ = try await fixture.rig.decide(.deny, asked.challenge, by: fixture.first)
        if lockedFirst { #expect(try await fixture.lock()) }
        // The report counts for a login that has ended.
        await #expect(throws: Refusal.alreadyDecided(result: "failure")) {
            try await fixture.rig.decide(.fraud, asked.challenge, by: fixture.first)
        }
        if !lockedFirst {
            #expect(try await state(fixture) == (.frozen, .phone))
            #expect(try await fixture.lock())
        }
        #expect(try await state(fixture) == (.frozen, .operator))
        #expect(await isForbidden { try await unlock(fixture) })
        #expect(try await state(fixture) == (.frozen, .operator))
        try await fixture.unlock()
        #expect(try await state(fixture) == (.active, nil))
    }
}
