import Bytes
import Crypto
import Domain
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// Guesses of sealed values, by somebody who reads a copy of the store or writes to it.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct SealedGuessTests {
    @Test(arguments: StoreKind.all) func digestOfAnApprovalTestsNoGuess(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind, seals: true)
        let shop = try await rig.shop("shop", ["number": "0"])
        let ada = try await Person.registered("ada", at: shop, rig)
        let phone = try await ada.bound(try TestPhone(pushToken: "ada"), ada.code)
        let address = "ada@example.org"
        let refused = await refusal { try await ada.change { $0.addresses.updateValue(address, forKey: .mail) } }
        guard case .approvalRequired(let challenge, _) = refused else {
            throw RigFailure("not asked: \(String(describing: refused))")
        }
        try await ada.decide(challenge, .approve, by: phone)
        let user = try await rig.on { relay in try await relay.user(named: "ada", of: shop).id }
        let guess = SHA256.hash(
            Array("twoefay approval factor".utf8) + user.bytes + Array("mail \(address)".utf8))
        #expect(!(try rig.shownByStore().contains(guess)))
        // A relay with a newer key accepts the approval, and only for this address.
        let (new, old) = (
            Sealer.Key(id: "2", key: Secret([UInt8](repeating: 9, count: 32))),
            Sealer.Key(id: "1", key: RelayRig.masterKey)
        )
        rig.relay.replace(try Sealer(keys: [new, old]))
        let other = await refusal {
            try await ada.change(challenge) { $0.addresses.updateValue("eve@example.org", forKey: .mail) }
        }
        #expect(other == Relay.noApproval)
        _ = try await ada.change(challenge) { $0.addresses.updateValue(address, forKey: .mail) }
    }

    @Test(arguments: StoreKind.all) func fingerprintOfARequestTestsNoGuess(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind, seals: true)
        let shop = try await rig.shop()
        let content = Array(#"{"username":"ada","email":"ada@example.org"}"#.utf8)
        func begin(_ content: [UInt8]) async throws -> IdempotencyOutcome {
            let request = IdempotentRequest(website: shop.id, route: "/register", key: "1", content: content)
            return try await rig.on { relay in try await relay.begin(request) }
        }
        guard case .run = try await begin(content) else { throw RigFailure("the request does not run") }
        #expect(!(try rig.shownByStore().contains(SHA256.hash(content))))
        let (new, old) = (
            Sealer.Key(id: "2", key: Secret([UInt8](repeating: 9, count: 32))),
            Sealer.Key(id: "1", key: RelayRig.masterKey)
        )
        rig.relay.replace(try Sealer(keys: [new, old]))
        guard case .stillRunning = try await begin(content) else { throw RigFailure("the request is another one") }
        guard case .mismatch = try await begin(content + [10]) else { throw RigFailure("another request is the same") }
    }

    @Test(arguments: StoreKind.all) func receiptTestsNoGuessOfTheContext(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: true)
        let (rig, shop) = (fixture.rig, fixture.shop)
        let bound = try await rig.enrolled("eve", at: shop)
        let asked = try await rig.on { relay in
            try await relay.login(
                LoginRequest(subject: .token(bound.user), ip: PersonalDataFixture.address), by: shop,
                as: relay.operations.new())
        }
        let by = (bound.phone, bound.credential)
        let context = try await rig.shown(asked.challenge, to: bound.credential).context
        let receipt = try await rig.signed(.approve, asked.challenge, number: asked.number, by: by)
        let claim = Array(Base64URL.encode(SHA256.hash(context)).utf8)
        func isShown() throws -> Bool { try rig.shownByStore().contains { $0.contains(claim) } }
        #expect(try await rig.post(PhoneAnswer(approves: true, signed: receipt), asked.challenge, by: by) == .success)
        #expect(!(try isShown()))
        // The website gets it as the phone has signed it, in either form.
        for seals in [true, false] {
            try await fixture.seal(seals)
            let found = try await rig.on { relay in try await relay.result(asked.challenge, to: shop) }
            #expect(found.receipt == receipt)
            #expect(try isShown() != seals)
        }
        #expect(rig.forgeries.isEmpty)
    }

    @Test(arguments: StoreKind.all) func changedContextIsCountedAsStuck(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: true)
        try await fixture.useEveryValue()
        try await fixture.seal(true)
        let rig = fixture.rig
        let context = try #require(
            try rig.store.runBlocking(Script("test", reads: [.value(of: "SELECT context FROM challenge")])).first?.first
        )
        var bytes = try context.blob("value")
        bytes[bytes.count - 1] ^= 1
        try rig.forge("UPDATE challenge SET context = x'\(Hex.encode(bytes))'")
        rig.time.advance(by: .seconds(86_400))
        #expect(try await fixture.seal(true).stuck == 1)
    }

    @Test(arguments: StoreKind.all) func operatorFindsUsersByAddress(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        let rig = fixture.rig
        try fixture.use(seals: true)
        let club = try await rig.shop("club")
        _ = try await Person.registered("eve", at: club, rig, email: PersonalDataFixture.mail)
        for seals in [true, false] {
            try await fixture.seal(seals)
            let mail = try rig.store.runBlocking(AddressHolders.find(PersonalDataFixture.mail))
            let holders = mail.filter { $0.place == "user.email" }.map { "\($0.website) \($0.username)" }
            #expect(holders == ["club eve", "shop ada"])
            let number = try rig.store.runBlocking(AddressHolders.find(PersonalDataFixture.number))
            #expect(Set(number.map(\.username)) == ["ada"] && number.contains { $0.place == "user.phone" })
            #expect(try rig.store.runBlocking(AddressHolders.find("nobody@example.com")).isEmpty)
        }
    }

    /// Somebody who writes to the store plants guesses, and compares their seals with those of
    /// others.
    @Test(arguments: StoreKind.all) func plantedValueIsNotSealed(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: true)
        try await fixture.seal(true)
        let rig = fixture.rig
        try rig.forge(
            """
            INSERT INTO outbox (id, kind, user_id, address, created_at, dead_at, attempts)
            SELECT token, 'mail', id, '\(PersonalDataFixture.number)', created_at, created_at, 0 FROM user
            WHERE username = 'bob'
            """)
        try rig.forge("UPDATE personal_sealing SET key_id = ''")
        let run = try await fixture.seal(true)
        #expect(run.stuck == 1)
        #expect(
            try rig.count("SELECT count(*) FROM outbox o JOIN user u ON u.phone = o.address WHERE u.username = 'ada'")
                == 0)
        #expect(try rig.count("SELECT count(*) FROM outbox WHERE address LIKE '+%'") == 1)
    }

    @Test(arguments: StoreKind.all) func valueThatDoesNotOpenKeepsNobodyFromStopping(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        let (rig, ada) = (fixture.rig, fixture.ada)
        let phones = [
            try await ada.bound(try TestPhone(pushToken: "one"), ada.code),
            try await rig.enrolled("eve", at: fixture.shop).credential,
        ]
        try rig.forge("UPDATE device SET push_token = 'sealed:'")
        try rig.forge("UPDATE user SET email = 'sealed:', phone = 'sealed:1:AAAA' WHERE username = 'ada'")
        try rig.forge("UPDATE factor SET address = 'sealed:'")
        let found = try rig.store.runBlocking(Accounts.user("ada", of: "shop"))
        #expect(found?.email == "sealed:" && found?.devices.map(\.view.pushToken) == ["sealed:"])
        #expect(try await rig.byOperator(.suspended, phones[1].id))
        #expect(try await rig.byOperator(.revoked, phones[1].id))
        try await rig.on { relay in
            try await relay.unbind(phones[0].id, ofUser: "ada", by: fixture.shop)
        }
        #expect(try rig.devices(.revoked) == 2)
    }
}
