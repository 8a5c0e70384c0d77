import Bytes
import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// The confirmation of addresses. Only an address that the website vouches for is active without a code.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AddressTests {
    private static let mail = "ada@example.com"
    private static let number = "+4366012345678"

    private func person(
        _ kind: StoreKind, _ policies: [String: String] = [:], email: String? = nil, phone: String? = nil
    ) async throws -> Person {
        let rig = try await RelayRig(kind)
        return try await register("ada", at: try await rig.shop("shop", policies), rig, email: email, phone: phone)
    }

    private func register(
        _ username: String, at website: Website, _ rig: RelayRig, email: String? = nil, phone: String? = nil
    ) async throws -> Person {
        let (token, activation) = try await rig.on { relay in
            try await relay.register(
                Registration(username: username, email: email, phone: phone, displayName: nil, language: "de"),
                by: website, as: relay.operations.new())
        }
        return Person(rig: rig, website: website, username: username, token: token, code: try activation.code)
    }

    private func states(_ person: Person) async throws -> [String] {
        try await person.factors().map { "\($0.kind.rawValue) \($0.state.rawValue) \($0.address ?? "")" }
    }

    @Test(arguments: StoreKind.all) func vouchedAddressIsActiveAtOnce(kind: StoreKind) async throws {
        let ada = try await person(kind, email: Self.mail, phone: Self.number)
        #expect(try await states(ada) == ["sms active \(Self.number)", "mail active \(Self.mail)"])
        await ada.rig.settled()
        #expect(ada.rig.mails.sent.isEmpty && ada.rig.texts.sent.isEmpty)
        // Vouched addresses do not prove the user, so a first app needs no approval.
        #expect(try await !ada.isProved)
    }

    @Test(arguments: StoreKind.all) func unconfirmedAddressesGetACode(kind: StoreKind) async throws {
        let ada = try await person(kind, ["addresses": "confirmed"], email: Self.mail, phone: Self.number)
        #expect(try await states(ada) == ["sms waiting \(Self.number)", "mail waiting \(Self.mail)"])
        let (mail, text) = (await ada.rig.mails.next(), await ada.rig.texts.next())
        #expect(mail.to == Self.mail && text.to == Self.number)
        #expect(mail.language == "de")
        let code = try addressCode(mail)
        #expect(try await !ada.confirm(Self.mail, ada.wrong(code)))
        #expect(await refusal { try await ada.confirm(Self.mail, code) } == .limited(retryAfter: .seconds(5)))
        // All codes share one delay, and a right code clears no failures of another factor.
        let other = try addressCode(text)
        #expect(await refusal { try await ada.confirm(Self.number, other) } == .limited(retryAfter: .seconds(5)))
        ada.rig.time.advance(by: .seconds(5))
        #expect(try await ada.confirm(Self.number, other))
        #expect(try ada.rig.count("SELECT code_failures FROM user") == 1)
        #expect(try await ada.confirm(Self.mail, code))
        #expect(try ada.rig.count("SELECT code_failures FROM user") == 0)
        #expect(try await states(ada) == ["sms active \(Self.number)", "mail active \(Self.mail)"])
        guard case .conflict = await refusal({ try await ada.confirm(Self.mail, code) }) else {
            throw RigFailure("confirmed twice")
        }
        #expect(
            try ada.rig.count(
                "SELECT count(*) FROM sent_code WHERE expires_at > (SELECT max(confirmed_at) FROM factor)") == 0)
    }

    @Test(arguments: StoreKind.all) func oldAddressStaysActiveUntilTheNewIsConfirmed(kind: StoreKind) async throws {
        let ada = try await person(kind, email: Self.mail)
        let other = "ada@example.org"
        let changed = try await ada.change { $0.addresses.updateValue(other, forKey: .mail) }
        #expect(changed.waiting.map(\.text) == [other] && changed.user.email == Self.mail)
        #expect(try await states(ada) == ["mail active \(Self.mail)", "mail waiting \(other)"])
        let code = try addressCode(await ada.rig.mails.next())
        #expect(try await ada.confirm(other, code))
        #expect(try await states(ada) == ["mail active \(other)"])
        #expect(try ada.rig.text("SELECT email FROM user") == other)
        // An active address needs no code.
        #expect(try await ada.change { $0.addresses.updateValue(other, forKey: .mail) }.waiting.isEmpty)
        let gone = try await ada.change {
            $0.addresses.updateValue(nil, forKey: .mail)
            $0.displayName = "Ada"
            $0.language = .some(nil)
        }
        #expect(gone.user.email == nil && gone.user.displayName == "Ada" && gone.user.language == nil)
        #expect(try await states(ada).isEmpty)
    }

    /// Otherwise an attacker could guess codes for another person's mailbox without end, and send mails there
    /// without end.
    @Test(arguments: StoreKind.all) func codesSentToARemovedAddressStayCounted(kind: StoreKind) async throws {
        let ada = try await person(kind)
        for round in 1...Relay.addressCodes {
            _ = try await ada.change { $0.addresses.updateValue(Self.mail, forKey: .mail) }
            let code = try addressCode(await ada.rig.mails.next())
            if round == 1 { #expect(try await !ada.confirm(Self.mail, ada.wrong(code))) }
            #expect(try await ada.factors().map(\.failures) == [1])
            #expect(try await ada.change { $0.addresses.updateValue(nil, forKey: .mail) }.waiting.isEmpty)
            #expect(try await ada.factors().isEmpty)
            guard case .conflict = await refusal({ try await ada.confirm(Self.mail, code) }) else {
                throw RigFailure("it waits still")
            }
        }
        let limited = await refusal { try await ada.change { $0.addresses.updateValue(Self.mail, forKey: .mail) } }
        #expect(limited == .limited(retryAfter: Relay.addressWindow))
        #expect(ada.rig.registry.number("twoefay_limits_reached_total{limit=\"sending\"}") == 1)
        ada.rig.time.advance(by: Relay.addressWindow)
        try await ada.sendCode(to: Self.mail)
        #expect(try await ada.confirm(Self.mail, try addressCode(await ada.rig.mails.next())))
        #expect(try await ada.factors().map(\.failures) == [0])
    }

    @Test(arguments: StoreKind.all) func codesSentToAConfirmedAddressStayCounted(kind: StoreKind) async throws {
        let ada = try await person(kind)
        _ = try await ada.change { $0.addresses.updateValue(Self.mail, forKey: .mail) }
        #expect(try await ada.confirm(Self.mail, try addressCode(await ada.rig.mails.next())))
        let other = "ada@example.org"
        _ = try await ada.change { $0.addresses.updateValue(other, forKey: .mail) }
        for _ in 3...Relay.addressCodes { try await ada.sendCode(to: other) }
        #expect(await refusal { try await ada.sendCode(to: other) } == .limited(retryAfter: Relay.addressWindow))
    }

    /// A person who can read one mailbox must not be able to confirm another one with a code from it.
    @Test(arguments: StoreKind.all) func codeForAnotherAddressConfirmsNothing(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let (first, second) = ("a@example.org", "b@example.org")
        _ = try await ada.change { $0.addresses.updateValue(first, forKey: .mail) }
        let old = try addressCode(await ada.rig.mails.next())
        _ = try await ada.change { $0.addresses.updateValue(second, forKey: .mail) }
        let new = try addressCode(await ada.rig.mails.next())
        #expect(old != new)
        #expect(try await !ada.confirm(second, old))
        ada.rig.time.advance(by: .seconds(5))
        #expect(try await ada.confirm(second, new))
    }

    @Test(arguments: StoreKind.all) func earlierCodeStaysValidAfterResending(kind: StoreKind) async throws {
        let ada = try await person(kind, ["addresses": "confirmed"], email: Self.mail)
        let first = try addressCode(await ada.rig.mails.next())
        for _ in 2...5 {
            ada.rig.time.advance(by: .seconds(10))
            try await ada.sendCode(to: Self.mail)
            _ = await ada.rig.mails.next()
        }
        // Five codes in five minutes; the first was sent forty seconds ago.
        #expect(await refusal { try await ada.sendCode(to: Self.mail) } == .limited(retryAfter: .seconds(260)))
        let again = await refusal { try await ada.change { $0.addresses.updateValue(Self.mail, forKey: .mail) } }
        #expect(again == .limited(retryAfter: .seconds(260)))
        ada.rig.time.advance(by: .seconds(260))
        try await ada.sendCode(to: Self.mail)
        let last = try addressCode(await ada.rig.mails.next())
        #expect(first != last)
        #expect(try await ada.confirm(Self.mail, last))
    }

    @Test(arguments: StoreKind.all) func confirmationCodeExpiresAfterTenMinutes(kind: StoreKind) async throws {
        let ada = try await person(kind, ["addresses": "confirmed"], email: Self.mail)
        let code = try addressCode(await ada.rig.mails.next())
        ada.rig.time.advance(by: .seconds(600))
        #expect(try await !ada.confirm(Self.mail, code))
        // The address still waits for its code.
        ada.rig.time.advance(by: .seconds(5))
        try await ada.sendCode(to: Self.mail)
        #expect(try await ada.confirm(Self.mail, try addressCode(await ada.rig.mails.next())))
    }

    @Test(arguments: StoreKind.all) func addressIsUniqueWithinAWebsite(kind: StoreKind) async throws {
        let ada = try await person(kind, email: Self.mail)
        let bob = try await register("bob", at: ada.website, ada.rig)
        let taken = Refusal.conflict([Relay.takenFault(.mail)])
        #expect(await refusal { try await bob.change { $0.addresses.updateValue(Self.mail, forKey: .mail) } } == taken)
        // Two users add the same address. The first to confirm it gets it.
        let both = "both@example.org"
        var codes: [String] = []
        for person in [ada, bob] {
            _ = try await person.change { $0.addresses.updateValue(both, forKey: .mail) }
            codes.append(try addressCode(await ada.rig.mails.next()))
        }
        #expect(try await ada.confirm(both, codes[0]))
        #expect(await refusal { try await bob.confirm(both, codes[1]) } == taken)
        #expect(try await states(bob) == ["mail waiting \(both)"])
        // At another website the address is free.
        let carl = try await register("carl", at: try await ada.rig.shop("bank"), ada.rig)
        #expect(try await carl.change { $0.addresses.updateValue(both, forKey: .mail) }.waiting.count == 1)
    }

    @Test(arguments: StoreKind.all) func concurrentConfirmationsCountOnce(kind: StoreKind) async throws {
        let ada = try await person(kind, ["addresses": "confirmed"], email: Self.mail)
        let code = try addressCode(await ada.rig.mails.next())
        let results = await withTaskGroup(of: Bool?.self) { group in
            for _ in 0..<30 { group.addTask { try? await ada.confirm(Self.mail, code) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(results.filter { $0 == true }.count == 1)
        #expect(try await ada.factors().first?.failures == 0)
    }

    @Test(arguments: StoreKind.all) func userWithAFactorMustApproveNewAddresses(kind: StoreKind) async throws {
        let ada = try await person(kind)
        let phone = try await ada.bound(try TestPhone(pushToken: "first"), ada.code)
        let first = await refusal { try await ada.change { $0.addresses.updateValue(Self.mail, forKey: .mail) } }
        guard case .approvalRequired(let challenge, let number) = first else { throw RigFailure("not asked") }
        try await ada.decide(challenge, .approve, number, by: phone)
        let elsewhere = await refusal {
            try await ada.change(challenge) { $0.addresses.updateValue("eve@example.com", forKey: .mail) }
        }
        #expect(elsewhere == Relay.noApproval)
        let changed = try await ada.change(challenge) { $0.addresses.updateValue(Self.mail, forKey: .mail) }
        #expect(changed.waiting.count == 1)
        #expect(try await ada.confirm(Self.mail, try addressCode(await ada.rig.mails.next())))
        // A display name is not a factor.
        #expect(try await ada.change { $0.displayName = "Ada" }.user.displayName == "Ada")
    }

    @Test(arguments: StoreKind.all) func addressCodesBySMSRespectTheLimits(kind: StoreKind) async throws {
        let ada = try await person(kind, ["addresses": "confirmed"], phone: Self.number)
        let limits = SMSLimits()
        _ = await ada.rig.texts.next()
        for _ in 1..<limits.userHour {
            ada.rig.time.advance(by: .seconds(300))
            try await ada.sendCode(to: Self.number)
            _ = await ada.rig.texts.next()
        }
        ada.rig.time.advance(by: .seconds(300))
        let refused = await refusal { try await ada.sendCode(to: Self.number) }
        #expect(refused == .limited(retryAfter: Relay.textPause))
        #expect(ada.rig.texts.sent.count == limits.userHour)
    }
}
