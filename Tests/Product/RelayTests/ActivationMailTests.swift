import Bytes
import DeliveryOutcomes
import Domain
import Relay
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// Activation codes that the relay mails (policies `enrolment: letter` and `confirmed`).
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ActivationMailTests {
    private static let address = "ada@example.com"

    /// Ada at a shop with this ceremony, without a code.
    private struct Scene {
        let ada: Person
        let issued: IssuedActivation
        var rig: RelayRig { ada.rig }

        init(
            _ kind: StoreKind, _ ceremony: Ceremony, _ policies: [String: String] = [:], language: String? = nil,
            chosen: String? = nil, answer: DeliveryOutcome = .accepted(by: nil)
        ) async throws {
            let rig = try await RelayRig(kind)
            rig.mails.answerOtherwise { _ in answer }
            let shop = try await rig.shop(
                "shop", policies.merging(["enrolment": ceremony.rawValue, "factors": "push"]) { $1 })
            let (token, issued) = try await rig.on { relay in
                try await relay.register(
                    Registration(
                        username: "ada", email: ActivationMailTests.address, phone: nil, displayName: nil,
                        language: language), by: shop,
                    as: relay.operations.new().speaking(RequestedLanguages(chosen: chosen, accepted: "de-AT")))
            }
            self.issued = issued
            ada = Person(rig: rig, website: shop, username: "ada", token: token, code: "")
        }

        func mailed() async throws -> (code: String, link: String) {
            try #require(await rig.mails.next().activation)
        }

        /// Returns the code of the next activation mail; other mails are left out.
        func nextCode() async throws -> String {
            var mail = await rig.mails.next()
            while mail.activation == nil { mail = await rig.mails.next() }
            return try #require(mail.activation?.code)
        }

        /// Makes the bound phone approve another activation.
        func approved(by phone: PhoneCredential) async throws -> ChallengeID {
            guard case .approvalRequired(let asked, _)? = await ada.refusedCode() else {
                throw RigFailure("no approval is asked")
            }
            try await ada.decide(asked, .approve, try await ada.number(asked), by: phone)
            return asked
        }

        func activate(_ approval: ChallengeID) async throws -> IssuedActivation {
            let ada = ada
            return try await rig.on { relay in
                try await relay.activate(
                    username: "ada", approval: approval, by: ada.website, as: relay.operations.new())
            }
        }

        func resend() async throws -> IssuedActivation {
            let ada = ada
            return try await rig.on { relay in
                try await relay.activate(username: "ada", by: ada.website, as: relay.operations.new())
            }
        }

        /// Confirms the identity, as `twoefay user confirm-identity` does.
        func confirmIdentity(mails: Bool = true) async throws -> Bool {
            let (store, ada, now) = (rig.store, ada, rig.time.now())
            return try await rig.on { relay in
                let user = try await relay.user(named: "ada", of: ada.website)
                let operation = relay.operations.new()
                let drawn = OperationSecret(drawnFrom: SystemRandomness())
                var new = NewActivation(ActivationCode(drawn), for: user.id, approval: nil, at: now)
                new.mail = try ActivationMail(
                    drawn, for: user.id, of: ada.website.id, language: nil, sender: nil, at: now, as: operation,
                    by: try RelayRig.sealer(), SystemRandomness())
                return try await store.run(
                    Identities.confirm(
                        Identities.Check(user: user.id, by: "Ben Berg", document: "passport", at: now),
                        activation: mails ? new : nil, as: operation))
            }
        }

        func missing() async throws -> [EnrolmentStep] { try await ada.login().missing }
    }

    @Test(arguments: StoreKind.all) func relayMailsTheCodeAndTheWebsiteGetsNone(kind: StoreKind) async throws {
        let scene = try await Scene(kind, .letter)
        let expiry = scene.rig.time.now() + .seconds(600)
        #expect(scene.issued == .mailed(to: "a…@example.com", expiresAt: expiry))
        let mail = await scene.rig.mails.next()
        #expect(mail.to == Self.address && mail.language == "de-at,de" && mail.expiresAt == expiry)
        let (code, link) = try #require(mail.activation)
        #expect(code.utf8.count == 20)
        #expect(link.hasPrefix("twoefay://enrol?") && link.contains("&token=\(scene.ada.token.text)&code=\(code)&"))
        #expect(try await scene.missing() == [.factor])
        await scene.rig.settled()
        // The entry and its secret are deleted, so the store keeps no trace of the code.
        #expect(try scene.rig.count("SELECT count(*) FROM outbox WHERE event = 'activation'") == 0)
        #expect(try scene.rig.count("SELECT count(*) FROM operation_secret") == 0)
        _ = try await scene.ada.bound(try TestPhone(pushToken: "ada"), code)
        #expect(try await scene.missing() == [])
    }

    @Test(arguments: StoreKind.all) func languageOfTheUserIsPreferred(kind: StoreKind) async throws {
        let scene = try await Scene(kind, .letter, language: "en")
        #expect(await scene.rig.mails.next().language == "en,de-at,de")
        let other = try await Scene(kind, .letter, language: "en", chosen: "fr")
        #expect(await other.rig.mails.next().language == "fr,en,de-at,de")
    }

    /// The attack: somebody reads the mailbox later, and replays the activation mail.
    @Test(arguments: StoreKind.all) func replayedActivationMailBindsNoPhone(kind: StoreKind) async throws {
        let scene = try await Scene(kind, .letter)
        let (ada, thief) = (scene.ada, try TestPhone(pushToken: "thief"))
        var sender = 0
        func expectWorthless(_ code: String) async {
            sender += 1
            #expect(await ada.bind(thief, code, from: "198.51.100.\(sender)") == .failure(.unauthenticated))
        }
        // A mail that a newer one replaced.
        let first = try await scene.mailed().code
        _ = try await scene.resend()
        let second = try await scene.mailed().code
        #expect(first != second)
        await expectWorthless(first)
        // A mail whose code was used.
        let credential = try await ada.bound(try TestPhone(pushToken: "ada"), second)
        await expectWorthless(second)
        await expectWorthless(first)
        #expect(try scene.rig.devices(.active) == 1)
        // The answer to the bound phone's own request is not repeated to another key either.
        #expect(try await ada.devices().map(\.id) == [credential.id])
        // A mail that expired. The phone approves it, because it is for a further phone.
        _ = try await scene.activate(try await scene.approved(by: credential))
        let third = try await scene.nextCode()
        scene.rig.time.advance(by: .seconds(600))
        await expectWorthless(third)
        #expect(try scene.rig.devices(.active) == 1)
    }

    /// A refused request voids no code.
    @Test(arguments: StoreKind.all) func usedApprovalLeavesTheCodeThatItPaidFor(kind: StoreKind) async throws {
        let scene = try await Scene(kind, .letter)
        let phone = try await scene.ada.bound(try TestPhone(pushToken: "ada"), try await scene.nextCode())
        let approval = try await scene.approved(by: phone)
        _ = try await scene.activate(approval)
        let code = try await scene.nextCode()
        #expect(await refusal { try await scene.activate(approval) } == Relay.noApproval)
        _ = try await scene.ada.bound(try TestPhone(pushToken: "further"), code)
        #expect(try scene.rig.devices(.active) == 2)
    }

    /// The attack: a writer to the database makes a void code usable again.
    @Test(arguments: StoreKind.all) func voidCodeCannotBeRestored(kind: StoreKind) async throws {
        let scene = try await Scene(kind, .letter)
        let first = try await scene.nextCode()
        _ = try await scene.resend()
        try scene.rig.forge("UPDATE activation SET used_at = NULL")
        #expect(await scene.ada.bind(try TestPhone(pushToken: "thief"), first) == .failure(.broken))
        #expect(try scene.rig.devices(.active) == 0)
    }

    // MARK: The address

    /// The attack: somebody reads the mailbox that the user no longer has.
    @Test(arguments: StoreKind.all, [nil, "new@example.com"])
    func codeMailedToAFormerAddressIsVoid(kind: StoreKind, address: String?) async throws {
        let scene = try await Scene(kind, .letter)
        let (ada, thief) = (scene.ada, try TestPhone(pushToken: "thief"))
        let code = try await scene.nextCode()
        _ = try await ada.change { $0.addresses[.mail] = .some(address) }
        if let address {
            // Until the new address is confirmed, the code is in the user's mailbox.
            #expect(try scene.rig.count("SELECT count(*) FROM activation WHERE used_at IS NULL") == 1)
            #expect(try await ada.confirm(address, try addressCode(await scene.rig.mails.next())))
        }
        #expect(await ada.bind(thief, code) == .failure(.unauthenticated))
        try scene.rig.forge("UPDATE activation SET used_at = NULL")
        #expect(await ada.bind(thief, code, from: "198.51.100.1") == .failure(.broken))
        #expect(try scene.rig.devices(.active) == 0)
    }

    /// A mail that was not sent yet must not go to the former address, nor leave its secret behind.
    @Test(arguments: StoreKind.all) func unsentMailToAFormerAddressIsDropped(kind: StoreKind) async throws {
        let scene = try await Scene(kind, .letter, answer: .retry(after: nil, reason: "busy"))
        await scene.rig.settled()
        _ = try await scene.ada.change { $0.addresses[.mail] = .some(nil) }
        #expect(try scene.rig.count("SELECT count(*) FROM outbox WHERE event = 'activation'") == 0)
        #expect(try scene.rig.count("SELECT count(*) FROM operation_secret") == 0)
    }

    /// The person confirms the address of the registration, and then scans the code that came to
    /// it.
    @Test(arguments: StoreKind.all) func confirmedAddressKeepsTheCodeMailedToIt(kind: StoreKind) async throws {
        let scene = try await Scene(kind, .letter, ["addresses": "confirmed"])
        var (code, confirmation): (String?, String?)
        while code == nil || confirmation == nil {
            let mail = await scene.rig.mails.next()
            if let activation = mail.activation { code = activation.code } else { confirmation = try addressCode(mail) }
        }
        #expect(try await scene.ada.confirm(Self.address, try #require(confirmation)))
        _ = try await scene.ada.bound(try TestPhone(pushToken: "ada"), try #require(code))
    }

    /// A code that the website shows has nothing to do with the mailbox.
    @Test(arguments: StoreKind.all) func shownCodeOutlivesTheAddress(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop(), rig, email: Self.address)
        _ = try await ada.change { $0.addresses[.mail] = .some(nil) }
        _ = try await ada.bound(try TestPhone(pushToken: "ada"), ada.code)
    }

    // MARK: The secrets of mails

    /// The secret of a mail is deleted with its outbox entry, whatever deletes that.
    @Test(arguments: StoreKind.all) func secretIsDeletedWithTheEntry(kind: StoreKind) async throws {
        let scene = try await Scene(kind, .letter, answer: .retry(after: nil, reason: "busy"))
        await scene.rig.settled()
        #expect(try scene.rig.count("SELECT count(*) FROM operation_secret") == 1)
        _ = try await scene.resend()
        await scene.rig.settled()
        #expect(try scene.rig.count("SELECT count(*) FROM operation_secret") == 1)
        let ada = scene.ada
        try await scene.rig.on { relay in try await relay.forget(username: "ada", by: ada.website) }
        #expect(try scene.rig.count("SELECT count(*) FROM operation_secret") == 0)
    }

    /// A relay that dies after it sent the mail causes a second one, with the same id and the same
    /// code.
    @Test(arguments: StoreKind.all) func repeatedMailHasTheSameCode(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        rig.mails.answer(.retry(after: nil, reason: "busy"), .ambiguous("lost"), .accepted(by: nil))
        let shop = try await rig.shop("shop", ["enrolment": "letter"])
        _ = try await rig.on { relay in
            try await relay.register(
                Registration(
                    username: "ada", email: Self.address, phone: nil, displayName: nil, language: nil), by: shop,
                as: relay.operations.new())
        }
        var mails = [await rig.mails.next()]
        for _ in 0..<2 {
            await rig.settled()
            try await rig.round(after: .seconds(5))
            mails.append(await rig.mails.next())
        }
        await rig.settled()
        #expect(Set(mails.map(\.id)).count == 1)
        #expect(Set(mails.compactMap { $0.activation?.code }).count == 1)
        try await rig.round(after: .seconds(60))
        #expect(rig.mails.sent.count == 3)
    }

    @Test(arguments: StoreKind.all) func mailIsLimited(kind: StoreKind) async throws {
        let scene = try await Scene(kind, .letter)
        // A new code deletes the mail of the earlier one if that was not sent yet.
        await scene.rig.settled()
        for _ in 1..<ActivationMail.most {
            scene.rig.time.advance(by: .seconds(10))
            _ = try await scene.resend()
            await scene.rig.settled()
        }
        #expect(await refusal { try await scene.resend() } == .limited(retryAfter: .seconds(260)))
        #expect(scene.rig.registry.number("twoefay_limits_reached_total{limit=\"sending\"}") == 1)
        await scene.rig.settled()
        #expect(scene.rig.mails.sent.count == ActivationMail.most)
        // The newest code stays valid.
        let newest = try #require(scene.rig.mails.sent.last?.activation?.code)
        scene.rig.time.advance(by: .seconds(260))
        #expect(await scene.ada.bind(try TestPhone(pushToken: "ada"), newest).bound != nil)
    }

    @Test(arguments: StoreKind.all) func identityIsConfirmedBeforeTheCodeIsSent(kind: StoreKind) async throws {
        let scene = try await Scene(kind, .confirmed)
        let ada = scene.ada
        #expect(scene.issued == .awaitsIdentity)
        #expect(try await scene.missing() == [.identity, .factor])
        guard case .forbidden(let text)? = await refusal({ try await scene.resend() }) else {
            Issue.record("not refused")
            return
        }
        #expect(text.english.contains("twoefay user confirm-identity"))
        // No other factor of the user's own may be bound instead.
        let app = await refusal {
            try await ada.rig.on { relay in
                try await relay.addTOTP(
                    username: "ada", shape: CodeShape(), approval: nil, by: ada.website, as: relay.operations.new())
            }
        }
        let codes = await refusal {
            try await ada.rig.on { relay in
                try await relay.addRecoveryCodes(
                    username: "ada", approval: nil, by: ada.website, as: relay.operations.new())
            }
        }
        #expect(app == .forbidden(text) && codes == .forbidden(text))
        await ada.rig.settled()
        #expect(ada.rig.mails.sent.isEmpty)
        #expect(try ada.rig.count("SELECT count(*) FROM activation") == 0)

        #expect(try await scene.confirmIdentity())
        #expect(try await scene.missing() == [.factor])
        try await ada.rig.round(after: .seconds(1))
        let (code, _) = try await scene.mailed()
        #expect(
            try ada.rig.count(
                """
                SELECT count(*) FROM AuditTrail WHERE event = 'user.identity' AND outcome = 'mailed'
                AND note = 'Ben Berg: passport'
                """) == 1)
        _ = try await scene.resend()
        let newer = try await scene.mailed().code
        #expect(await ada.bind(try TestPhone(pushToken: "ada"), code) == .failure(.unauthenticated))
        _ = try await ada.bound(try TestPhone(pushToken: "ada"), newer)
    }

    /// A locked user may be unlocked later than the code expires, so nothing is mailed meanwhile.
    @Test(arguments: StoreKind.all, [UserState.locked, .frozen, .disabled])
    func identityOfAStoppedUserIsConfirmedWithoutAMail(kind: StoreKind, state: UserState) async throws {
        let scene = try await Scene(kind, .confirmed)
        try scene.rig.stop(state)
        #expect(try await !scene.confirmIdentity())
        #expect(try scene.rig.count("SELECT count(*) FROM user WHERE identity_confirmed_at IS NOT NULL") == 0)
        #expect(try await scene.confirmIdentity(mails: false) == (state != .disabled))
        try await scene.rig.round(after: .seconds(1))
        #expect(scene.rig.mails.sent.isEmpty)
        #expect(try scene.rig.count("SELECT count(*) FROM activation") == 0)
    }

    /// Somebody who can write to the database cannot confirm an identity.
    @Test(arguments: StoreKind.all) func forgedConfirmationIsRefused(kind: StoreKind) async throws {
        let scene = try await Scene(kind, .confirmed)
        try scene.rig.forge("UPDATE user SET identity_confirmed_at = '2026-01-01 00:00:00.000'")
        #expect(await refusal { try await scene.resend() } == .broken)
    }

    /// The secret of a mail opens only for its own entry, so an exchanged one sends nothing.
    @Test(arguments: StoreKind.all) func exchangedSecretIsNotMailed(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["enrolment": "letter"])
        rig.mails.answerOtherwise { _ in .retry(after: nil, reason: "busy") }
        for name in ["ada", "eve"] {
            _ = try await rig.on { relay in
                try await relay.register(
                    Registration(
                        username: name, email: "\(name)@example.com", phone: nil, displayName: nil, language: nil),
                    by: shop, as: relay.operations.new())
            }
            await rig.settled()
        }
        let codes = rig.mails.sent.compactMap { $0.activation?.code }
        try #require(codes.count == 2)
        // Eve gets the secret of Ada's mail.
        try rig.execute(
            """
            UPDATE operation_secret SET sealed = (SELECT sealed FROM (SELECT s.sealed FROM operation_secret s
            JOIN outbox o ON o.id = s.operation WHERE o.address = 'ada@example.com') x)
            WHERE operation = (SELECT id FROM outbox WHERE address = 'eve@example.com')
            """)
        rig.mails.answerOtherwise { _ in .accepted(by: nil) }
        try await rig.round(after: .seconds(5))
        await rig.settled()
        #expect(rig.mails.sent.filter { $0.to == "eve@example.com" }.compactMap { $0.activation?.code } == [codes[1]])
    }

    @Test(arguments: StoreKind.all) func addressIsRequired(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["enrolment": "letter"])
        let refused = await refusal {
            try await rig.on { relay in
                try await relay.register(
                    Registration(username: "ada", email: nil, phone: nil, displayName: nil, language: nil), by: shop,
                    as: relay.operations.new())
            }
        }
        guard case .invalid(let faults)? = refused else {
            Issue.record("\(String(describing: refused))")
            return
        }
        #expect(faults.map(\.parameter) == ["email"] && faults.map(\.code) == [.missing])
        #expect(try rig.count("SELECT count(*) FROM user") == 0)
    }

    @Test(arguments: StoreKind.all) func mailServerIsRequired(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let shop = try await rig.shop("shop", ["enrolment": "letter"])
        try await rig.on { relay in relay.replace(MessageCouriers()) }
        let refused = await refusal {
            try await rig.on { relay in
                try await relay.register(
                    Registration(
                        username: "ada", email: Self.address, phone: nil, displayName: nil, language: nil), by: shop,
                    as: relay.operations.new())
            }
        }
        guard case .conflict(let faults)? = refused else {
            Issue.record("\(String(describing: refused))")
            return
        }
        #expect(faults.map(\.parameter) == ["email"] && faults.map(\.code) == [.state])
    }
}

extension Message {
    var activation: (code: String, link: String)? {
        guard case .activation(let activation) = content else { return nil }
        let text = { (secret: Secret) in String(decoding: secret.reveal(), as: UTF8.self) }
        return (text(activation.code), text(activation.link))
    }
}

extension Person {
    /// Returns the number of an open challenge.
    fileprivate func number(_ challenge: ChallengeID) async throws -> String? {
        try await rig.on { relay in
            try await relay.withStore("challenge") { () async throws(StoreFailure) in
                try await rig.store.challenge(challenge, of: website.id)
            }?.number
        }
    }
}
