import Crypto
import DeliveryOutcomes
import Domain
import JSON
import Relay
import Synchronization
import TestSupport
import Testing
import World

/// The changes of bound phones, by every caller that may make them.
@Suite(.mayBlock) struct DeviceTests {
    fileprivate struct Fixture {
        let person: Person
        let phones: [(phone: TestPhone, credential: PhoneCredential, revocationCode: String)]
        var rig: RelayRig { person.rig }
        var shop: Website { person.website }

        static func set(_ kind: StoreKind, phones: Int = 2, _ policies: [String: String] = [:]) async throws -> Fixture
        {
            let rig = try await RelayRig(kind)
            let shop = try await rig.shop("shop", ["number": "0"].merging(policies) { $1 })
            let person = try await Person.registered("ada", at: shop, rig)
            // Codes from before the first binding, and codes that the website approved.
            var codes = [person.code]
            for _ in 1..<max(1, phones) { codes.append(try await person.furtherCode()) }
            try rig.execute("UPDATE activation SET approval = 'website'")
            var bound: [(TestPhone, PhoneCredential, String)] = []
            for (number, code) in codes.enumerated() {
                let phone = try TestPhone(pushToken: "push-\(number)")
                let binding = await person.bind(phone, code)
                guard let new = binding.bound else { throw RigFailure("\(binding)") }
                bound.append((phone, try await person.credential(phone, new.device), new.revocationCode))
                // Phones are listed by age.
                rig.time.advance(by: .seconds(1))
            }
            return Fixture(person: person, phones: bound)
        }

        func change(_ number: Int, name: String? = nil, _ state: DeviceSwitch? = nil) async throws -> DeviceView {
            let (id, shop) = (phones[number].credential.id, shop)
            return try await rig.on { relay in
                try await relay.change(id, ofUser: "ada", name: name, state: state, by: shop)
            }
        }

        func identify(_ number: Int) async -> Bool {
            let (phone, credential, _) = phones[number]
            return (try? await person.credential(phone, credential.id)) != nil
        }
    }

    /// The ways in which the first phone stops working. The audit names the author of each.
    enum Farewell: String, CaseIterable, Sendable {
        case suspended, website, phone, code

        fileprivate func take(_ fixture: Fixture) async throws {
            let (_, credential, code) = fixture.phones[0]
            let shop = fixture.shop
            switch self {
            case .suspended: _ = try await fixture.change(0, .suspended)
            case .website:
                try await fixture.rig.on { relay in try await relay.unbind(credential.id, ofUser: "ada", by: shop) }
            case .phone: try await fixture.rig.on { relay in try await relay.unbind(by: credential) }
            case .code: try await fixture.rig.on { relay in try await relay.revoke(code: code, from: "192.0.2.1") }
            }
        }
    }

    @Test(arguments: StoreKind.all, Farewell.allCases)
    func unboundPhoneStopsWorkingAtOnce(kind: StoreKind, farewell: Farewell) async throws {
        let fixture = try await Fixture.set(kind)
        let (person, rig) = (fixture.person, fixture.rig)
        let (lost, other) = (fixture.phones[0].credential, fixture.phones[1].credential)
        // The phone has a held request, and a push that the push service has not accepted yet.
        let woken = Mutex(false)
        let ticket = rig.relay.heldRequests.ticket(for: .phone(lost.id))
        ticket.arm { woken.withLock { $0 = true } }
        rig.pushes.answer(
            .retry(after: .seconds(5), reason: "busy"), .retry(after: .seconds(5), reason: "busy"))
        let asked = try await person.login()
        await rig.settled()
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE kind = 'push'") == 2)

        try await farewell.take(fixture)
        #expect(woken.withLock { $0 })
        #expect(await !fixture.identify(0))
        #expect(await fixture.identify(1))
        // Credentials that were looked up earlier are refused, too.
        await #expect(throws: Refusal.self) { try await person.decide(asked.challenge, .approve, by: lost) }
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE kind = 'push'") == 1)
        rig.time.advance(by: .seconds(10))
        try await rig.on { relay in await relay.processDueEntries() }
        await rig.settled()
        #expect(rig.pushes.sent.map(\.deviceToken).suffix(1) == ["push-1"] && rig.pushes.sent.count == 3)
        // The other phone continues to work.
        #expect(try await person.decide(asked.challenge, .approve, by: other) == .success)
        _ = try await person.login()
        await rig.settled()
        #expect(rig.pushes.sent.count == 4 && rig.pushes.sent.last?.deviceToken == "push-1")
        let state: DeviceState = farewell == .suspended ? .suspended : .revoked
        #expect(try await person.devices().map(\.state) == [state, .active])
        let event = farewell == .suspended ? "device.suspended" : "device.unbound"
        let doer = farewell == .suspended ? "website" : farewell.rawValue
        let audits = "SELECT count(*) FROM audit WHERE event = '\(event)' AND outcome = '\(doer)'"
        #expect(try rig.count(audits) == 1)
    }

    @Test(arguments: StoreKind.all, Farewell.allCases)
    func approvalsOfAnUnboundPhoneAreVoid(kind: StoreKind, farewell: Farewell) async throws {
        let fixture = try await Fixture.set(kind, phones: 2)
        let (person, rig) = (fixture.person, fixture.rig)
        let lost = fixture.phones[0].credential
        // The phone has approved an activation code …
        guard case .approvalRequired(let challenge, _) = await person.refusedCode() else { throw RigFailure("?") }
        try await person.decide(challenge, .approve, by: lost)
        let code = try await person.furtherCode(challenge)
        // … and is asked about another one.
        guard case .approvalRequired(let open, _) = await person.refusedCode() else { throw RigFailure("?") }
        await rig.settled()
        let woken = Mutex(0)
        let count: @Sendable () -> Void = { woken.withLock { $0 += 1 } }
        rig.relay.heldRequests.ticket(for: .challenge(open)).arm(count)
        rig.relay.heldRequests.ticket(for: .user(lost.user)).arm(count)
        try await farewell.take(fixture)
        #expect(try await person.reported(open).reason == .cancelled)
        #expect(woken.withLock { $0 } == 2)
        #expect(await person.bind(try TestPhone(pushToken: "thief"), code) == .failure(.unauthenticated))
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE challenge_id IS NOT NULL") == 0)
    }

    @Test(arguments: StoreKind.all) func phoneWaitingForAnUnboundPhonesApprovalIsRemoved(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let person = try await Person.registered("ada", at: try await rig.shop("shop", ["number": "0"]), rig)
        let code = try await person.furtherCode()
        let lost = try await person.bound(try TestPhone(pushToken: "lost"), person.code)
        let thief = try TestPhone(pushToken: "thief")
        #expect(await person.bind(thief, code).isWaiting)
        await rig.settled()
        try await person.decide(try person.lastAsked(), .approve, by: lost)
        // The user approved the phone, and it has not fetched the answer yet.
        try await rig.on { relay in try await relay.unbind(by: lost) }
        #expect(await person.bind(thief, code) == .failure(.unauthenticated))
        #expect(try await person.devices().map(\.state) == [.revoked])
    }

    @Test(arguments: StoreKind.all) func suspendedPhoneCanBeResumed(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind, phones: 1)
        #expect(try await fixture.change(0, .suspended).state == .suspended)
        #expect(try await fixture.change(0, .suspended).state == .suspended)
        let asked = try await fixture.person.login()
        #expect(try await fixture.person.reported(asked.challenge).reason == .undeliverable)
        #expect(try await fixture.change(0, .active).state == .active)
        #expect(await fixture.identify(0))
        let again = try await fixture.person.login()
        #expect(
            try await fixture.person.decide(again.challenge, .approve, by: fixture.phones[0].credential) == .success)
    }

    @Test(arguments: StoreKind.all) func websiteRenamesPhonesOfItsUsers(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        #expect(try await fixture.change(0, name: "Old").name == "Old")
        let both = try await fixture.change(0, name: "Older", .suspended)
        #expect(both.name == "Older" && both.state == .suspended)
        #expect(try await fixture.person.devices().map(\.name) == ["Older", "Phone"])
        #expect(await !fixture.identify(0))
    }

    @Test(arguments: StoreKind.all) func unboundOrWaitingPhoneCannotBeResumed(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let (person, rig, shop) = (fixture.person, fixture.rig, fixture.shop)
        for _ in 0..<2 { try await Farewell.website.take(fixture) }
        await #expect(
            throws: Refusal.conflict([
                FieldFault("device", .state, LocalizedText("is revoked", de: "hat den Zustand revoked"))
            ])
        ) {
            try await fixture.change(0, .active)
        }
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'device.unbound'") == 1)
        try rig.execute("UPDATE activation SET used_at = NULL, approval = NULL")
        let binding = await person.bind(try TestPhone(pushToken: "third"), person.code)
        guard case .success(.waiting(let waiting, _)) = binding else { throw RigFailure("\(binding)") }
        await #expect(
            throws: Refusal.conflict([
                FieldFault("device", .state, LocalizedText("is waiting", de: "hat den Zustand waiting"))
            ])
        ) {
            try await rig.on { relay in
                try await relay.change(waiting, ofUser: "ada", name: nil, state: .active, by: shop)
            }
        }
        // The waiting phone can be withdrawn. That is no unbinding, because it was never bound.
        try await rig.on { relay in try await relay.unbind(waiting, ofUser: "ada", by: shop) }
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'device.unbound'") == 1)
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'device.withdrawn'") == 1)
    }

    @Test(arguments: StoreKind.all) func foreignPhoneIsNotChanged(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind, phones: 1)
        let (rig, device) = (fixture.rig, fixture.phones[0].credential.id)
        let bob = try await Person.registered("bob", at: fixture.shop, rig)
        let eve = try await Person.registered("ada", at: try await rig.shop("bank"), rig)
        for (username, website) in [("bob", fixture.shop), ("nobody", fixture.shop), ("ada", eve.website)] {
            await #expect(throws: Refusal.notFound) {
                try await rig.on { relay in
                    try await relay.change(device, ofUser: username, name: "x", state: .suspended, by: website)
                }
            }
            await #expect(throws: Refusal.notFound) {
                try await rig.on { relay in try await relay.unbind(device, ofUser: username, by: website) }
            }
        }
        #expect(await fixture.identify(0))
        _ = bob
    }

    @Test(arguments: StoreKind.all) func revocationCodeUnbindsWithoutRevealingSuccess(kind: StoreKind)
        async throws
    {
        let fixture = try await Fixture.set(kind)
        let (rig, code) = (fixture.rig, fixture.phones[0].revocationCode)
        // A text that cannot be a code is refused, and does not count as an attempt.
        for _ in 0..<10 {
            for malformed in [
                "", "x", code + "A", code + "AAAA", String(code.dropLast()), String(code.dropLast()) + "=",
            ] {
                await #expect(throws: Refusal.self) {
                    try await rig.on { relay in try await relay.revoke(code: malformed, from: "192.0.2.7") }
                }
            }
        }
        let none = String(repeating: "A", count: code.utf8.count)
        try await rig.on { relay in try await relay.revoke(code: none, from: "192.0.2.6") }
        #expect(try rig.devices(.active) == 2)
        for _ in 0..<2 { try await rig.on { relay in try await relay.revoke(code: code, from: "192.0.2.7") } }
        #expect(try await fixture.person.devices().map(\.state) == [.revoked, .active])
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'device.unbound'") == 1)
        // A sender of many codes, right or wrong, is throttled; others are not.
        for _ in 0..<3 { try await rig.on { relay in try await relay.revoke(code: none, from: "192.0.2.7") } }
        let other = fixture.phones[1].revocationCode
        // A right activation code from that address does not end the throttling.
        let further = try await rig.operatorsCode(for: "ada", of: "shop")
        #expect(await fixture.person.bind(try TestPhone(pushToken: "third"), further, from: "192.0.2.7").bound != nil)
        await #expect(throws: Refusal.limited(retryAfter: .seconds(5))) {
            try await rig.on { relay in try await relay.revoke(code: other, from: "192.0.2.7") }
        }
        #expect(await fixture.identify(1))
        try await rig.on { relay in try await relay.revoke(code: other, from: "192.0.2.8") }
        #expect(await !fixture.identify(1))
    }

    @Test(arguments: StoreKind.all) func phoneChangesItsPushTokenAndRenewsItsCertificate(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let (rig, (phone, credential, _)) = (fixture.rig, fixture.phones[0])
        rig.time.advance(by: .seconds(3600))
        let token = try phone.movedTo(
            "moved", device: credential.id, origin: RelayRig.origin, website: "shop", at: rig.time.now())
        let pem = try await rig.on { relay in
            try await relay.change(pushToken: token, name: "Mine", renews: true, by: credential)
        }
        let certificate = try Certificate(pem: Array(try #require(pem).utf8))
        #expect(certificate.uris == ["twoefay:device:\(credential.id.text)"])
        #expect(certificate.spkiThumbprint == phone.key.publicKey.spkiThumbprint)
        #expect(certificate.notAfter <= rig.time.now() + .seconds(90 * 86_400))
        let nothing = try await rig.on { relay in
            try await relay.change(pushToken: nil, name: "Mine too", renews: false, by: credential)
        }
        #expect(nothing == nil)
        #expect(try await fixture.person.devices().first?.name == "Mine too")
        _ = try await fixture.person.login()
        await rig.settled()
        #expect(Set(rig.pushes.sent.map(\.deviceToken)) == ["moved", "push-1"])
        #expect(try rig.count("SELECT count(*) FROM audit WHERE event = 'device.changed' AND outcome = 'phone'") == 2)
        // Not after it was unbound: a credential that was looked up earlier is refused.
        try await rig.on { relay in try await relay.unbind(by: credential) }
        await #expect(throws: Refusal.unauthenticated) {
            try await rig.on { relay in
                try await relay.change(pushToken: token, name: nil, renews: true, by: credential)
            }
        }
    }

    @Test(arguments: StoreKind.all) func pushTokenChangeNeedsASignature(kind: StoreKind) async throws {
        let fixture = try await Fixture.set(kind)
        let (rig, (phone, credential, _)) = (fixture.rig, fixture.phones[0])
        let now = rig.time.now()
        func moved(
            _ signer: TestPhone? = nil, _ token: String = "moved", header: (inout JSONObject) -> Void = { _ in },
            claims: (inout JSONObject) -> Void = { _ in }
        ) throws -> String {
            try (signer ?? phone).movedTo(
                token, device: credential.id, origin: RelayRig.origin, website: "shop", at: now, header: header,
                claims: claims)
        }
        let right = try moved()
        let wrong: [(String, String)] = [
            ("another key", try moved(fixture.phones[1].phone)),
            ("another phone", try moved { $0["kid"] = .string(fixture.phones[1].credential.id.text) }),
            ("no phone", try moved { $0["kid"] = nil }),
            ("another kind", try moved { $0["typ"] = "twoefay-decision+jwt" }),
            ("another version", try moved(claims: { $0["v"] = 2 })),
            ("another website", try moved(claims: { $0["aud"] = .string("\(RelayRig.origin)#bank") })),
            ("another relay", try moved(claims: { $0["aud"] = "https://other.example#shop" })),
            ("no time", try moved(claims: { $0["iat"] = nil })),
            ("no token", try moved(claims: { $0["dev_token"] = nil })),
            ("a token that nobody gives", try moved(nil, "a b")),
            ("a long token", try moved(nil, String(repeating: "a", count: 2049))),
            ("cut", String(right.dropLast(2))), ("the token itself", "moved"), ("nothing", ""),
        ]
        for (what, token) in wrong {
            let refused = await #expect(throws: Refusal.self, "\(what)") {
                try await rig.on { relay in
                    try await relay.change(pushToken: token, name: "x", renews: false, by: credential)
                }
            }
            guard case .invalid(let faults) = refused else {
                Issue.record("\(what): \(String(describing: refused))")
                continue
            }
            #expect(faults.map(\.parameter) == ["dev_token"])
        }
        #expect(try rig.count("SELECT count(*) FROM device WHERE push_token = 'push-0' AND name = 'Phone'") == 1)
        _ = try await rig.on { relay in
            try await relay.change(pushToken: right, name: nil, renews: false, by: credential)
        }
        #expect(try rig.count("SELECT count(*) FROM device WHERE push_token = 'moved'") == 1)
    }
}
