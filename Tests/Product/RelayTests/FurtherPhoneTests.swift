import Crypto
import Domain
import JSON
import Relay
import TestSupport
import Testing
import World

/// A further phone, which waits until the user has approved it.
@Suite(.mayBlock) struct FurtherPhoneTests {
    /// A user with a phone, and a code from before that phone was bound.
    private struct Fixture {
        let person: Person
        let first: PhoneCredential
        let code: String
        let second: TestPhone

        static func set(_ kind: StoreKind, _ policies: [String: String] = [:]) async throws -> Fixture {
            let rig = try await RelayRig(kind)
            let person = try await Person.registered("ada", at: try await rig.shop("shop", policies), rig)
            let code = try await person.furtherCode()
            let first = try await person.bound(try TestPhone(pushToken: "first"), person.code)
            rig.time.advance(by: .seconds(1))
            return Fixture(person: person, first: first, code: code, second: try TestPhone(pushToken: "second"))
        }

        func verify() async -> Bind { await person.bind(second, code) }
    }

    @Test(arguments: StoreKind.all) func furtherPhoneWaitsForApproval(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let (person, rig) = (fixture.person, fixture.person.rig)
        let waiting = await fixture.verify()
        let number = try #require(waiting.number)
        #expect(number.utf8.count == 2)
        guard case .success(.waiting(let device, _)) = waiting else { return }
        // A repetition gets the same answer, and the user is asked only once.
        for _ in 0..<3 { #expect(await fixture.verify() == waiting) }
        await rig.settled()
        #expect(rig.pushes.sent.map(\.deviceToken) == ["first"])
        #expect(try rig.count("SELECT count(*) FROM challenge") == 1)
        let states = try await person.devices().map(\.state)
        #expect(states == [.active, .waiting])
        // A waiting phone can do nothing else.
        await #expect(throws: Refusal.unauthenticated) { try await person.credential(fixture.second, device) }

        // The challenge shows the user which phone it is.
        let challenge = try person.lastAsked()
        let context = try #require(try JSONReader.read(try await person.reported(challenge).context).object)
        #expect(context["action"] == "enrol")
        #expect(context["device"]?.string == device.text)
        #expect(context["ip"] == "192.0.2.1")
        #expect(
            context["details"] == [
                ["label": "factor", "value": "push"], ["label": "name", "value": "Phone"],
                ["label": "key", "value": .string(fixture.second.key.publicKey.thumbprint)],
            ])

        #expect(try await person.decide(challenge, .approve, number, by: fixture.first) == .success)
        let bound = try #require(await fixture.verify().bound)
        #expect(bound.device == device && !bound.revocationCode.isEmpty)
        #expect(bound.certificate?.hasPrefix("-----BEGIN CERTIFICATE-----") == true)
        let again = await fixture.verify().bound
        #expect(again?.device == device && again?.revocationCode == bound.revocationCode)
        let credential = try await person.credential(fixture.second, device)

        // Both phones are asked now, and either may answer.
        let asked = try await person.login()
        await rig.settled()
        #expect(Set(rig.pushes.sent.suffix(2).map(\.deviceToken)) == ["first", "second"])
        #expect(try await person.decide(asked.challenge, .approve, asked.number, by: credential) == .success)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'device.waiting'") == 1)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'device.bound'") == 2)
    }

    @Test(arguments: StoreKind.all, ["deny", "fraud", "number", "cancel"])
    func furtherPhoneIsRefusedAfterADenial(kind: StoreKind, how: String) async throws {
        let fixture = try await Fixture.set(kind)
        let (person, rig) = (fixture.person, fixture.person.rig)
        let number = try #require(await fixture.verify().number)
        await rig.settled()
        let challenge = try person.lastAsked()
        switch how {
        case "number":
            let wrong = number == "00" ? "01" : "00"
            #expect(try await person.decide(challenge, .approve, wrong, by: fixture.first) == .failure)
        case "cancel":
            let website = person.website
            try await rig.on { relay in try await relay.cancel(challenge, by: website) }
        default:
            let decision = try #require(Decision(rawValue: how))
            #expect(try await person.decide(challenge, decision, by: fixture.first) == .failure)
        }
        // The code is still valid, but does not help.
        #expect(await fixture.verify() == .failure(.unauthenticated))
        #expect(try await person.devices().map(\.state) == [.active])
        #expect(try rig.count("SELECT count(*) FROM challenge") == 1)
    }

    @Test(arguments: StoreKind.all) func approvalIsRequestedAgainWhileTheCodeIsValid(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind, ["lifetime": "60"])
        let (person, rig) = (fixture.person, fixture.person.rig)
        #expect(await fixture.verify().isWaiting)
        await rig.settled()
        let first = try person.lastAsked()
        // A login supersedes the approval. While the login is open, the relay does not ask again.
        let asked = try await person.login()
        await rig.settled()
        #expect(try await person.reported(first).reason == .superseded)
        let between = await fixture.verify()
        #expect(between.isWaiting && between.number == nil)
        #expect(try await person.reported(asked.challenge).result == .wait)
        // When the login has ended, the relay asks the user about the phone again.
        try await person.decide(asked.challenge, .deny, by: fixture.first)
        #expect(await fixture.verify().number != nil)
        await rig.settled()
        let second = try person.lastAsked()
        #expect(second != first && second != asked.challenge)
        // Without an answer, the relay asks again.
        rig.time.advance(by: .seconds(60))
        let number = try #require(await fixture.verify().number)
        await rig.settled()
        let third = try person.lastAsked()
        #expect(third != second)
        try await person.decide(third, .approve, number, by: fixture.first)
        #expect(await fixture.verify().bound != nil)
    }

    /// The approval was not denied, so the phone stays listed, and no other enrolment takes its row.
    @Test(arguments: StoreKind.all, ["superseded", "expired"])
    func waitingPhoneIsListedWhileItsCodeIsValid(kind: StoreKind, how: String) async throws {
        let fixture = try await Fixture.set(kind, ["lifetime": "60", "number": "0", "devices": "3"])
        let (person, rig) = (fixture.person, fixture.person.rig)
        let other = try await rig.operatorsCode(for: "ada", of: "shop")
        guard case .success(.waiting(let device, _)) = await fixture.verify() else { throw RigFailure("not waiting") }
        await rig.settled()
        let approval = try person.lastAsked()
        if how == "expired" {
            rig.time.advance(by: .seconds(60))
            // A request has recorded the expiry.
            #expect(try await person.reported(approval).reason == .expired)
        } else {
            let asked = try await person.login()
            try await person.decide(asked.challenge, .deny, by: fixture.first)
            #expect(try await person.reported(approval).reason == .superseded)
        }
        #expect(try await person.devices().map(\.state) == [.active, .waiting])
        _ = try await person.bound(try TestPhone(pushToken: "third"), other)
        #expect(try await person.devices().contains { $0.id == device && $0.state == .waiting })
        #expect(await fixture.verify().isWaiting)
        await rig.settled()
        try await person.decide(try person.lastAsked(), .approve, by: fixture.first)
        #expect(await fixture.verify().bound?.device == device)
    }

    @Test(arguments: StoreKind.all) func waitingPhoneIsRemovedWithItsCode(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind, ["lifetime": "60"])
        let (person, rig) = (fixture.person, fixture.person.rig)
        #expect(await fixture.verify().isWaiting)
        let asked = try await person.login()
        try await person.decide(asked.challenge, .deny, by: fixture.first)
        rig.time.advance(by: .seconds(599))
        #expect(try await person.devices().map(\.state) == [.active, .waiting])
        rig.time.advance(by: .seconds(1))
        #expect(try await person.devices().map(\.state) == [.active])
        // The website can no longer change it, and the next binding deletes it.
        _ = try await person.bound(
            try TestPhone(pushToken: "third"), try await rig.operatorsCode(for: "ada", of: "shop"))
        #expect(try rig.devices(.waiting) == 0)
    }

    @Test(arguments: StoreKind.all) func waitingPhoneIsRefusedAfterItsCodeExpired(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let rig = fixture.person.rig
        #expect(await fixture.verify().isWaiting)
        rig.time.advance(by: .seconds(600))
        #expect(await fixture.verify() == .failure(.unauthenticated))
    }

    @Test(arguments: StoreKind.all) func approvalRequestsForAPhoneAreLimited(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind, ["lifetime": "60"])
        let rig = fixture.person.rig
        for _ in 0..<5 {
            #expect(await fixture.verify().isWaiting)
            rig.time.advance(by: .seconds(60))
        }
        #expect(await fixture.verify() == .failure(.unauthenticated))
        #expect(try rig.count("SELECT count(*) FROM challenge") == 5)
    }

    @Test(arguments: StoreKind.all) func approvalOutlivesTheActivationCode(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind, ["lifetime": "600"])
        let (person, rig) = (fixture.person, fixture.person.rig)
        let number = try #require(await fixture.verify().number)
        await rig.settled()
        rig.time.advance(by: .seconds(598))
        try await person.decide(try person.lastAsked(), .approve, number, by: fixture.first)
        rig.time.advance(by: .seconds(3600))
        #expect(await fixture.verify().bound != nil)
    }

    @Test(arguments: StoreKind.all) func userWithoutPhonesCannotApprove(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let rig = fixture.person.rig
        try await rig.on { relay in try await relay.unbind(by: fixture.first) }
        #expect(await fixture.verify() == .failure(.unauthenticated))
        #expect(try rig.count("SELECT count(*) FROM challenge WHERE reason = 'undeliverable'") == 1)
    }

    @Test(arguments: StoreKind.all, [UserState.frozen, .locked])
    func lockedUserCannotBindAFurtherPhone(kind: StoreKind, state: UserState) async throws {
        let fixture = try await Fixture.set(kind, ["further-factors": "website"])
        let rig = fixture.person.rig
        try rig.execute("UPDATE user SET state = '\(state.rawValue)'")
        #expect(await fixture.verify() == .failure(.unauthenticated))
        try rig.execute("UPDATE user SET state = 'active'")
        #expect(await fixture.verify().bound != nil)
    }

    @Test(arguments: StoreKind.all, ["further-factors", "answers"])
    func furtherPhoneNeedsNoApprovalWhenTheWebsiteVouches(kind: StoreKind, policy: String) async throws {
        let fixture = try await Fixture.set(kind, [policy: "website"])
        #expect(await fixture.verify().bound != nil)
        #expect(try fixture.person.rig.count("SELECT count(*) FROM challenge") == 0)
    }

    @Test(arguments: StoreKind.all) func secondOfTwoFirstPhonesWaits(kind: StoreKind) async throws {
        // Both codes are from before, and both phones arrive at the same time: the second needs the first one's
        // approval.
        for _ in 0..<10 {
            let rig = try await RelayRig(kind)
            let person = try await Person.registered("ada", at: try await rig.shop(), rig)
            let codes = [person.code, try await person.furtherCode()]
            let binds = await withTaskGroup(of: Bind.self) { group in
                for code in codes {
                    group.addTask {
                        guard let phone = try? TestPhone(pushToken: "push-\(code)") else { return .failure(.broken) }
                        return await person.bind(phone, code)
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(binds.filter { $0.bound != nil }.count == 1, "\(binds)")
            #expect(binds.filter(\.isWaiting).count == 1, "\(binds)")
        }
    }
}
