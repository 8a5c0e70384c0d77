import Domain
import Relay
import TestSupport
import Testing
import World

/// The limit of phones that the policy sets. No sequence of requests exceeds it.
@Suite(.mayBlock) struct DeviceLimitTests {
    private func person(_ kind: StoreKind, slots: Int, _ policies: [String: String] = [:]) async throws -> Person {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop(
            "shop", ["devices": String(slots), "further-factors": "website"].merging(policies) { $1 })
        return try await Person.registered("ada", at: shop, rig)
    }

    @Test(arguments: StoreKind.all) func phoneBeyondTheLimitIsAConflict(kind: StoreKind) async throws {
        let person = try await person(kind, slots: 2)
        let first = try await person.bound(try TestPhone(pushToken: "first"), person.code)
        _ = try await person.bound(try TestPhone(pushToken: "second"), try await person.furtherCode())
        let third = try TestPhone(pushToken: "third")
        let code = try await person.furtherCode()
        let full = Refusal.conflict([
            FieldFault(
                "id_token", .taken,
                LocalizedText(
                    "already has 2 phones, the maximum of the website's policy: unbind one first",
                    de:
                        "hat schon 2 Telefone, mehr erlaubt die Richtlinie der Website nicht: Entfernen Sie zuerst eines"
                )
            )
        ])
        for _ in 0..<8 { #expect(await person.bind(third, code) == .failure(full)) }
        // A suspended phone keeps its slot, because it may be resumed.
        _ = try await person.rig.on { relay in
            try await relay.change(
                first.id, ofUser: "ada", name: nil, state: .suspended, by: person.website)
        }
        #expect(await person.bind(third, code) == .failure(full))
        // The refused attempt has not used up the code.
        try await person.rig.on { relay in
            try await relay.unbind(first.id, ofUser: "ada", by: person.website)
        }
        #expect(await person.bind(third, code).bound != nil)
        #expect(try person.rig.devices(.active) == 2)
    }

    @Test(arguments: StoreKind.all) func sameKeyUsesOneSlot(kind: StoreKind) async throws {
        let person = try await person(kind, slots: 2)
        let phone = try TestPhone(pushToken: "push")
        let first = try #require(await person.bind(phone, person.code).bound)
        // Each activation code brings a new revocation code.
        var revocationCodes = [first.revocationCode]
        for _ in 0..<6 {
            let code = try await person.furtherCode()
            let again = try #require(await person.bind(phone, code).bound)
            #expect(again.device == first.device && !revocationCodes.contains(again.revocationCode))
            revocationCodes.append(again.revocationCode)
        }
        #expect(try person.rig.count("SELECT count(*) FROM device") == 1)
    }

    @Test(arguments: StoreKind.all) func failedEnrolmentUsesNoSlot(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["devices": "2", "number": "0", "lifetime": "60"])
        let person = try await Person.registered("ada", at: shop, rig)
        var codes: [String] = []
        for _ in 0..<4 { codes.append(try await person.furtherCode()) }
        let first = try await person.bound(try TestPhone(pushToken: "first"), person.code)
        // One approval is denied, one is not answered, …
        let denied = try TestPhone(pushToken: "denied")
        #expect(await person.bind(denied, codes[0]).isWaiting)
        await rig.settled()
        try await person.decide(try person.lastAsked(), .deny, by: first)
        let unanswered = try TestPhone(pushToken: "unanswered")
        #expect(await person.bind(unanswered, codes[1]).isWaiting)
        // … and keeps its slot while it may still be answered, …
        let other = try TestPhone(pushToken: "other")
        let refusal = await person.bind(other, codes[2]).refusal
        guard case .conflict = refusal else {
            Issue.record("\(String(describing: refusal))")
            return
        }
        rig.time.advance(by: .seconds(60))
        // … and then the next phone gets the slot.
        #expect(await person.bind(other, codes[2]).isWaiting)
        await rig.settled()
        try await person.decide(try person.lastAsked(), .approve, by: first)
        #expect(await person.bind(other, codes[2]).bound != nil)
        #expect(try rig.devices(.active) == 2)
        #expect(await person.bind(denied, codes[0]) == .failure(.unauthenticated))
        // The relay may ask again about the unanswered phone, but no slot is left.
        #expect(await person.bind(unanswered, codes[1]).isWaiting)
        await rig.settled()
        try await person.decide(try person.lastAsked(), .approve, by: first)
        let late = await person.bind(unanswered, codes[1]).refusal
        guard case .conflict = late else {
            Issue.record("\(String(describing: late))")
            return
        }
    }

    @Test(arguments: StoreKind.all) func concurrentPhonesFillOnlyTheLastSlot(kind: StoreKind) async throws {
        let person = try await person(kind, slots: 3)
        for number in 0..<2 {
            let code = number == 0 ? person.code : try await person.furtherCode()
            _ = try await person.bound(try TestPhone(pushToken: "phone-\(number)"), code)
        }
        var phones: [(TestPhone, String)] = []
        for number in 0..<10 {
            phones.append((try TestPhone(pushToken: "new-\(number)"), try await person.furtherCode()))
        }
        let binds = await race(phones, person)
        #expect(binds.filter { $0.bound != nil }.count == 1)
        for bind in binds where bind.bound == nil {
            guard case .conflict = bind.refusal else {
                Issue.record("\(bind)")
                continue
            }
        }
        #expect(try person.rig.devices(.active) == 3)
        #expect(try person.rig.count("SELECT count(*) FROM audit WHERE event = 'device.bound'") == 3)
    }

    @Test(arguments: StoreKind.all) func oneCodeBindsOneOfTwoPhones(kind: StoreKind) async throws {
        for _ in 0..<20 {
            let person = try await person(kind, slots: 5)
            let phones = try (0..<2).map { (try TestPhone(pushToken: "phone-\($0)"), person.code) }
            let binds = await race(phones, person)
            #expect(binds.filter { $0.bound != nil }.count == 1, "\(binds)")
            #expect(binds.contains(.failure(.unauthenticated)), "\(binds)")
            #expect(try person.rig.devices(.active) == 1)
        }
    }

    private func race(_ phones: [(TestPhone, String)], _ person: Person) async -> [Bind] {
        await withTaskGroup(of: Bind.self) { group in
            for (phone, code) in phones { group.addTask { await person.bind(phone, code) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }
}
