import Bytes
import Crypto
import Domain
import Storage
import TestSupport
import Testing
import World

@testable import Relay

/// An attacker who can write to the store, and wants a login that the user did not approve.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ForgedRowTests {
    private static let zeros = String(repeating: "00", count: 16)

    // MARK: Planted rows

    @Test(arguments: StoreKind.all) func forgedWebsiteKeyIsRefused(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let key = SHA256.hash(Array("stranger".utf8))
        try fixture.rig.forge(
            """
            INSERT INTO website_key (thumbprint, website_id, created_at)
            SELECT x'\(Hex.encode(key))', id, created_at FROM website WHERE name = 'shop'
            """)
        let refused = await refusal {
            try await fixture.rig.on { relay in try await relay.website(named: "shop", key: key) }
        }
        #expect(refused == .broken)
        #expect(fixture.rig.forgeries == ["website_key \(Hex.encode(key))"])
    }

    @Test(arguments: StoreKind.all) func forgedRecoveryCodeUnlocksNobody(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let ada = try await Person.registered("ada", at: try await rig.shop(), rig)
        let codes = try await ada.addRecoveryCodes()
        try rig.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
        // The digest of a used code: an attacker who reads the store has seen it, and may know the code.
        #expect(try await ada.unlock(by: codes[0]))
        let used = try rig.text("SELECT lower(hex(digest)) FROM recovery_code WHERE used_at IS NOT NULL")
        try rig.execute("UPDATE user SET state = 'frozen', stopped_by = 'phone'")
        try rig.forge("UPDATE recovery_code SET used_at = NULL WHERE digest = x'\(used)'")
        #expect(await refusal { try await ada.unlock(by: codes[0]) } != nil)
        // It is useless for another user, too.
        try rig.forge("DELETE FROM recovery_code WHERE digest = x'\(used)'")
        try rig.forge(
            """
            INSERT INTO recovery_code (user_id, digest, factor_id, position)
            SELECT user_id, x'\(used)', id, 1 FROM factor WHERE kind = 'recovery'
            """)
        #expect(await refusal { try await ada.unlock(by: codes[0]) } != nil)
        #expect(try rig.count("SELECT count(*) FROM user WHERE state = 'active'") == 0)
    }

    @Test(arguments: StoreKind.all) func forgedDeviceCannotAnswer(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let stranger = try TestPhone(pushToken: "stranger")
        let thumbprint = Hex.encode(stranger.key.publicKey.spkiThumbprint)
        try fixture.rig.forge(
            """
            INSERT INTO device (id, user_id, state, platform, environment, push_token, push_token_at, public_key,
            thumbprint, created_at, operation, failures)
            SELECT x'\(Self.zeros)', user_id, 'active', platform, environment, 'stranger', push_token_at,
            x'\(Hex.encode(stranger.key.publicKey.x963))', x'\(thumbprint)', created_at, x'\(Self.zeros)', 0
            FROM device WHERE id = x'\(fixture.first.credential.id)'
            """)
        let key = stranger.key.publicKey.spkiThumbprint
        let id = try #require(DeviceID(Self.zeros))
        let refused = await refusal {
            try await fixture.rig.on { relay in try await relay.device(id, key: key, isCertified: true) }
        }
        #expect(refused == .broken)
        #expect(fixture.rig.forgeries.contains("device \(Self.zeros)"))
    }

    @Test(arguments: StoreKind.all) func forgedActivationBindsNothing(kind: StoreKind) async throws {
        let rig = try await RelayRig(kind)
        let person = try await Person.registered("ada", at: try await rig.shop(), rig)
        let code = ActivationCode(OperationSecret(drawnFrom: SystemRandomness()))
        let expires = (rig.time.now() + .seconds(300)).sql
        try rig.forge(
            """
            INSERT INTO activation (digest, user_id, created_at, expires_at, approval, operation)
            SELECT x'\(Hex.encode(code.digest))', id, created_at, '\(expires)', 'operator', operation FROM user
            """)
        let bind = await person.bind(try TestPhone(pushToken: "stranger"), code.text)
        #expect(bind.bound == nil && !bind.isWaiting)
        #expect(try rig.count("SELECT count(*) FROM device") == 0)
    }

    @Test(arguments: StoreKind.all) func forgedAnswerIsNotReported(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let asked = try await fixture.ask()
        try fixture.rig.forge(
            """
            UPDATE challenge SET state = 'answered', decision = 'approve', proof = 'code', factor = 'totp',
            decided_at = asked_at
            """)
        #expect(await refusal { try await fixture.reported(asked) } == .broken)
        #expect(fixture.rig.forgeries.contains("challenge \(asked.challenge)"))
    }

    // MARK: Changed rows

    /// Each covered column of each table, one after the other: a changed value is not accepted as the relay's.
    @Test func everyChangedColumnIsDetected() async throws {
        let rig = try await SignedRowsFixture(.memory).rig
        #expect(try await rig.notGenuine() == [])
        for table in SignedTable.all {
            let columns = try #require(
                SignedRowsFixture.columns[table.name], "\(table.name) has columns that are tried here")
            try #require(try rig.count("SELECT count(*) FROM \(table.name)") > 0, "\(table.name) has a row")
            for column in columns {
                try rig.forge("CREATE TEMPORARY TABLE kept AS SELECT * FROM \(table.name)")
                try rig.forge("UPDATE \(table.name) SET \(column.change)")
                let found = try await rig.notGenuine()
                #expect(found.contains { $0.hasPrefix("\(table.name) ") }, "\(table.name).\(column.name)")
                try rig.forge("DELETE FROM \(table.name)")
                try rig.forge("INSERT INTO \(table.name) SELECT * FROM kept")
                try rig.forge("DROP TABLE kept")
            }
            #expect(try await rig.notGenuine() == [])
        }
    }

    /// The test above tries every column of the signed tables except those that `SignedRowsFixture.harmless`
    /// lists.
    @Test func everyColumnIsCoveredOrARight() async throws {
        let rig = try await RelayRig(.memory)
        for table in SignedTable.all {
            let all = try rig.text("SELECT group_concat(name, ' ') FROM pragma_table_info('\(table.name)')")
            let tried = Set((SignedRowsFixture.columns[table.name] ?? []).map(\.name))
            let harmless = Set(SignedRowsFixture.harmless[table.name] ?? [])
            #expect(Set(all.split(separator: " ").map(String.init)) == tried.union(harmless), "\(table.name)")
            #expect(tried.isDisjoint(with: harmless))
        }
    }

    // MARK: Changes that only restrict

    @Test(arguments: StoreKind.all) func lockBySQLTakesEffectAtOnce(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        try fixture.rig.forge("UPDATE user SET state = 'locked', stopped_by = 'operator' WHERE username = 'ada'")
        #expect(try await fixture.reported(try await fixture.ask()).result == .failure)
        #expect(fixture.rig.forgeries == [])
        try await fixture.unlock()
        #expect(try await fixture.reported(try await fixture.ask()).result == .wait)
    }

    @Test(arguments: StoreKind.all) func operatorLockCannotBeLiftedBySQL(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        #expect(try await fixture.lock())
        try fixture.rig.forge("UPDATE user SET state = 'active', stopped_by = NULL WHERE username = 'ada'")
        #expect(await refusal { try await fixture.ask() } == .broken)
        #expect(fixture.rig.forgeries.contains("user \(fixture.first.credential.user)"))
    }

    @Test(arguments: StoreKind.all) func unboundPhoneCannotBeRestoredBySQL(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        #expect(try await fixture.rig.byOperator(.suspended, fixture.second.credential.id))
        try fixture.rig.forge("UPDATE device SET state = 'active', stopped_by = NULL")
        let (id, key) = (fixture.second.credential.id, fixture.second.phone.key.publicKey.spkiThumbprint)
        let refused = await refusal {
            try await fixture.rig.on { relay in try await relay.device(id, key: key, isCertified: true) }
        }
        #expect(refused == .broken)
    }

    /// The website could lift a lock that the phone caused, but not an operator's lock.
    @Test(arguments: StoreKind.all) func lockOriginCannotBeChangedBySQL(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        #expect(try await fixture.lock())
        try fixture.rig.forge("UPDATE user SET stopped_by = 'phone' WHERE username = 'ada'")
        let (user, store, now) = (fixture.first.credential.user, fixture.rig.store, fixture.rig.time.now())
        await #expect(throws: StoreFailure.forged("user \(user)")) {
            try await fixture.rig.on { relay in
                try await store.unlock(user, from: [.locked], by: .phone, at: now, as: relay.operations.new())
            }
        }
    }

    /// A repeated request continues only under the operation in its own row.
    @Test(arguments: StoreKind.all) func forgedIdempotencyRowIsRefused(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        let request = IdempotentRequest(website: fixture.shop.id, route: "r", key: "k", content: [])
        let begun = try await fixture.rig.on { relay in try await relay.begin(request) }
        guard case .run = begun else { throw RigFailure("kept") }
        try fixture.rig.forge("UPDATE idempotency SET operation = x'\(Self.zeros)', holder = NULL")
        #expect(await refusal { try await fixture.rig.on { relay in try await relay.begin(request) } } == .broken)
    }

    /// A number in the place of bytes does not prevent the lock of the user.
    @Test func unreadableRowDoesNotPreventALock() async throws {
        let fixture = try await TwoWebsitesFixture(.file)
        _ = try await fixture.ask()
        try fixture.rig.forge("UPDATE challenge SET context = 1.5")
        #expect(try await fixture.lock())
    }

    /// An attacker can change the tables in the SQLite file itself.
    @Test func triggersInTheDatabaseAreDisabled() async throws {
        let fixture = try await TwoWebsitesFixture(.file)
        try fixture.rig.forge(
            """
            CREATE TRIGGER approving AFTER INSERT ON challenge BEGIN
            UPDATE challenge SET state = 'answered', decision = 'approve', decided_at = NEW.asked_at, proof = 'signed'
            WHERE id = NEW.id; END
            """)
        #expect(try await fixture.reported(try await fixture.ask()).result == .wait)
    }

    /// The forged row of another user stops only that user.
    @Test(arguments: StoreKind.all) func forgedRowAffectsNoOtherUser(kind: StoreKind) async throws {
        let fixture = try await TwoWebsitesFixture(kind)
        try fixture.rig.forge("UPDATE user SET email = 'stranger@example.com' WHERE username = 'bob'")
        let asked = try await fixture.ask()
        #expect(try await fixture.reported(asked).result == .wait)
    }
}
