import Bytes
import Crypto
import Domain
import Log
import TestSupport
import Testing
import World

@testable import Relay
@testable import Storage

/// The setting `seal: personal`, and the switch to it and back.
@Suite(.timeLimit(.minutes(10)), .mayBlock) struct SealedStoreTests {
    // MARK: A copy of the store

    @Test(arguments: StoreKind.all) func copyOfASealedStoreShowsNoPersonalValue(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: true)
        try await fixture.useEveryValue()
        #expect(try fixture.shownByStore().isEmpty)
        #expect(fixture.shownByLog.isEmpty)
    }

    /// A check of the search itself.
    @Test(arguments: StoreKind.all) func storeInTheClearShowsEveryPersonalValue(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        try await fixture.useEveryValue()
        #expect(try fixture.shownByStore() == Set(PersonalDataFixture.values))
    }

    @Test func fileKeepsNoValueThatWasSealedLater() async throws {
        let place = try await StoreKind.file.fresh()
        guard case .sqlite(let path) = place.url else { throw RigFailure("\(place.url) is no file") }
        let fixture = try await PersonalDataFixture(over: place, seals: false)
        try await fixture.useEveryValue()
        try await fixture.seal(true)
        // The relay goes on, so no last connection writes the log into the file.
        let bytes = try TextFile.bytes(path) + TextFile.bytes("\(path)-wal")
        #expect(bytes.count > 10_000)
        for value in PersonalDataFixture.values where bytes.contains(Array(value.utf8)) {
            Issue.record("\(value) is in the files")
        }
    }

    // MARK: The switch

    @Test(arguments: StoreKind.all) func switchRewritesAllRowsBothWays(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        try await fixture.useEveryValue()
        let before = try fixture.contents()
        for seals in [true, false] {
            let run = try await fixture.seal(seals)
            #expect(run.seals == seals && run.changed > 0 && run.stuck == 0 && run.endedAt != nil)
            #expect(try fixture.shownByStore() == (seals ? [] : Set(PersonalDataFixture.values)))
            #expect(try await fixture.seesItsValues())
            #expect(fixture.rig.forgeries.isEmpty)
            // A second run finds nothing to do.
            #expect(try await fixture.seal(seals) == run)
        }
        #expect(try fixture.contents() == before)
    }

    @Test(arguments: StoreKind.all) func addressIsTakenInEveryForm(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        try await fixture.useEveryValue()
        for seals in [false, true, false] {
            for writes in [false, true] {
                try fixture.use(seals: writes)
                let fields: [(mail: String?, phone: String?)] = [
                    (PersonalDataFixture.mail, nil), (nil, PersonalDataFixture.number),
                ]
                for field in fields {
                    let refused = await refusal {
                        try await fixture.register("eve", email: field.mail, phone: field.phone)
                    }
                    guard case .conflict = refused else { throw RigFailure("registered twice: \(writes)") }
                }
                #expect(try await fixture.isRefusedToBob(PersonalDataFixture.mail))
            }
            _ = try await fixture.seal(!seals)
        }
        #expect(try fixture.rig.count("SELECT count(*) FROM user") == 2)
    }

    /// A relay that does not have the setting yet writes in the clear. Its rows are found, and the
    /// next run seals them.
    @Test(arguments: StoreKind.all) func rowsOfRelaysWithTheFormerSettingAreSealedLater(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: true)
        _ = try await fixture.seal(true)
        try fixture.use(seals: false)
        try await fixture.useEveryValue()
        // The number that was registered before is sealed. The address is, too, but it was changed, and
        // the audit has it as the value before.
        #expect(try fixture.shownByStore() == Set(PersonalDataFixture.values).subtracting([PersonalDataFixture.number]))
        fixture.rig.time.advance(by: .seconds(86_400))
        let run = try await fixture.seal(true)
        #expect(run.changed > 0)
        #expect(try fixture.shownByStore().isEmpty)
    }

    /// Two relays with different settings have registered one address at the same moment.
    @Test(arguments: StoreKind.all) func addressOfTwoUsersEndsTheRun(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        try fixture.use(seals: true)
        _ = try await fixture.register("eve", email: "eve@example.net", phone: nil)
        let eve = "SELECT e.email FROM (SELECT email FROM user WHERE username = 'eve') e"
        try fixture.rig.execute("UPDATE user SET former_email = (\(eve)) WHERE username = 'bob'")
        try fixture.rig.execute(
            "UPDATE user SET email = 'eve@example.net', phone = '+436607654321' WHERE username = 'bob'")
        let run = try await fixture.seal(true)
        #expect(run.endedAt != nil && run.changed > 0 && run.stuck == 1)
        // The other values of the user are sealed.
        #expect(
            try fixture.rig.count("SELECT count(*) FROM user WHERE username = 'bob' AND phone LIKE 'sealed:%'") == 1)
        fixture.rig.time.advance(by: .seconds(60))
        let second = try await fixture.seal(true)
        #expect(second.endedAt != nil && second.changed == 0 && second.stuck == 1)
        // No further run begins before the next day.
        fixture.rig.time.advance(by: .seconds(60))
        #expect(try await fixture.seal(true) == second)
    }

    @Test(arguments: StoreKind.all) func confirmationOfAnAddressSurvivesTheSwitch(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        let ada = fixture.ada
        _ = try await ada.change { $0.addresses.updateValue(PersonalDataFixture.otherMail, forKey: .mail) }
        let code = try addressCode(await fixture.rig.mails.next())
        _ = try await fixture.seal(true)
        #expect(try await ada.confirm(PersonalDataFixture.otherMail, code))
        let shown = try await fixture.rig.on { relay in
            try await relay.user(named: ada.username, of: ada.website)
        }
        #expect(shown.email == PersonalDataFixture.otherMail)
        // The same address again is no change.
        #expect(
            try await ada.change { $0.addresses.updateValue(PersonalDataFixture.otherMail, forKey: .mail) }
                .waiting.isEmpty)
    }

    @Test(arguments: [StoreKind.file, .mariadb]) func switchLosesNoLoginUnderLoad(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        let rig = fixture.rig
        let bound = try await rig.enrolled("load", at: fixture.shop)
        for (turn, seals) in [true, false, true].enumerated() {
            try fixture.use(seals: seals)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await rig.on { relay in await relay.sealPersonalValues() } }
                group.addTask {
                    for _ in 0..<5 {
                        let asked = try await rig.on { relay in
                            try await relay.login(
                                LoginRequest(subject: .token(bound.user), ip: "203.0.113.7"), by: fixture.shop,
                                as: relay.operations.new())
                        }
                        let result = try await rig.decide(
                            .approve, asked.challenge, number: asked.number, by: (bound.phone, bound.credential))
                        #expect(result == .success)
                        rig.time.advance(by: .seconds(60))
                    }
                }
                group.addTask {
                    for round in 0..<5 {
                        _ = try await fixture.register(
                            "user-\(turn)-\(round)", email: "\(UInt64.random(in: 0...(.max)))@example.net", phone: nil)
                    }
                }
                try await group.waitForAll()
            }
        }
        _ = try await fixture.seal(true)
        #expect(try rig.count("SELECT count(*) FROM user WHERE email LIKE '%@%'") == 0)
        #expect(rig.forgeries.isEmpty)
    }

    // MARK: Keys, forgeries and other relays

    @Test(arguments: StoreKind.all) func newMasterKeySealsPersonalValuesAgain(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: true)
        try await fixture.useEveryValue()
        let old = Sealer.Key(id: "1", key: RelayRig.masterKey)
        let new = Sealer.Key(id: "2", key: Secret([UInt8](repeating: 9, count: 32)))
        let store = fixture.rig.store
        #expect(try store.runBlocking(KeyUse.personal(sealedBy: "1")) > 0)
        // Between the steps, an address under either key is found.
        store.use(PersonalSealer(try Sealer(keys: [new, old]), seals: true))
        #expect(try await fixture.isRefusedToBob(PersonalDataFixture.mail))
        try await fixture.rig.on { relay in await relay.sealPersonalValues() }
        #expect(try store.runBlocking(KeyUse.personal(sealedBy: "1")) == 0)
        store.use(PersonalSealer(try Sealer(keys: [new]), seals: true))
        #expect(try await fixture.isRefusedToBob(PersonalDataFixture.mail))
        #expect(try await fixture.seesItsValues())
        // The old key opens nothing.
        store.use(PersonalSealer(try Sealer(keys: [old]), seals: true))
        #expect(await refusal { try await fixture.seesItsValues() } == .broken)
    }

    @Test(arguments: StoreKind.all) func forgedSealedValuesAreRefused(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: true)
        let (rig, ada) = (fixture.rig, fixture.ada)
        let genuine = try rig.text("SELECT email FROM user WHERE username = 'ada'")
        let ofBob = try rig.text("SELECT email FROM user WHERE username = 'bob'")
        // Another user's value opens, but the row's MAC is not valid.
        try rig.forge("UPDATE user SET email = NULL WHERE username = 'bob'")
        let changed = String(genuine.dropLast(2)) + (genuine.hasSuffix("AA") ? "BB" : "AA")
        for value in [ofBob, changed, "sealed:1:", "sealed:", "ada@attacker.example"] {
            try rig.forge("UPDATE user SET email = '\(value)' WHERE username = 'ada'")
            #expect(await refusal { try await rig.on { try await $0.user(named: "ada", of: ada.website) } } == .broken)
        }
        // A row that an operator adopted unread still does not open.
        for value in [changed, "sealed:1:", "sealed:", "sealed:9:\(genuine.dropFirst(9))"] {
            try rig.execute("UPDATE user SET email = '\(value)' WHERE username = 'ada'")
            #expect(await refusal { try await rig.on { try await $0.user(named: "ada", of: ada.website) } } == .broken)
        }
        try rig.execute("UPDATE user SET email = '\(genuine)' WHERE username = 'ada'")
        #expect(try await rig.on { try await $0.user(named: "ada", of: ada.website) }.email == PersonalDataFixture.mail)
    }

    @Test(arguments: StoreKind.all) func valueOfAForgedRowStaysAndIsCounted(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        try fixture.rig.forge("UPDATE user SET email = 'eve@attacker.example' WHERE username = 'ada'")
        let run = try await fixture.seal(true)
        // The address and the number of the row.
        #expect(run.stuck == 2)
        #expect(fixture.rig.sink.lines.contains { ObservedSink.isOf("personal.stuck", $0) })
        #expect(try fixture.rig.text("SELECT email FROM user WHERE username = 'ada'") == "eve@attacker.example")
        let ada = fixture.ada
        #expect(
            await refusal { try await fixture.rig.on { try await $0.user(named: "ada", of: ada.website) } } == .broken)
    }

    /// A phone or website that knows the form of sealed values gains nothing by sending one.
    @Test(arguments: StoreKind.all) func valueThatLooksSealedIsAnOrdinaryValue(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        let token = "sealed:1:AAAA"
        let bound = try await fixture.rig.enrolled("eve", at: fixture.shop, pushToken: token)
        let store = fixture.rig.store
        let asked = try await fixture.rig.on { relay in
            try await relay.login(
                LoginRequest(subject: .token(bound.user)), by: fixture.shop, as: relay.operations.new())
        }
        await fixture.rig.settled()
        #expect(fixture.rig.pushes.sent.last?.challenge == asked.challenge)
        #expect(try fixture.rig.text("SELECT push_token FROM device WHERE push_token LIKE 'sealed:%'") != token)
        #expect(try store.runBlocking(KeyUse.personal(sealedBy: "1")) == 1)
    }

    @Test(arguments: StoreKind.all) func oneRelayRewritesAndAnotherContinues(kind: StoreKind) async throws {
        let fixture = try await PersonalDataFixture(kind, seals: false)
        for number in 0..<60 {
            _ = try await fixture.register("user-\(number)", email: "\(number)@example.net", phone: nil)
        }
        let (store, now) = (fixture.rig.store, fixture.rig.time.now())
        let (one, other): (RelayID, RelayID) = (
            fixture.rig.relay.operations.draw(), fixture.rig.relay.operations.draw()
        )
        for relay in [one, other] {
            try await fixture.rig.on { _ in _ = try await store.sendHeartbeat(relay, at: now) }
        }
        let personal = PersonalSealer(try RelayRig.sealer(), seals: true)
        let first = try await fixture.rig.on { _ in try await store.sealSome(with: personal, by: one, at: now) }
        #expect(first?.endedAt == nil && (first?.changed ?? 0) >= 50)
        #expect(try await fixture.rig.on { _ in try await store.sealSome(with: personal, by: other, at: now) } == nil)
        // Nor does a relay with the former setting undo the work.
        let clear = PersonalSealer(try RelayRig.sealer(), seals: false)
        #expect(try await fixture.rig.on { _ in try await store.sealSome(with: clear, by: other, at: now) } == nil)
        #expect(try store.runBlocking(PersonalSealingRuns.last) == first)
        // The relay dies, and the other one goes on where it has stopped.
        try fixture.rig.forge("DELETE FROM relay WHERE id = x'\(one)'")
        let second = try await fixture.rig.on { _ in try await store.sealSome(with: personal, by: other, at: now) }
        #expect(second?.startedAt == first?.startedAt && (second?.checked ?? 0) > (first?.checked ?? 0))
        while try await fixture.rig.on({ _ in try await store.sealSome(with: personal, by: other, at: now) }) != nil {}
        #expect(try store.runBlocking(PersonalSealingRuns.last)?.endedAt == now)
        #expect(try fixture.rig.count("SELECT count(*) FROM user WHERE email LIKE '%@%'") == 0)
    }
}
