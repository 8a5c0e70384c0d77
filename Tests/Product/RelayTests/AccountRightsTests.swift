import Domain
import TestSupport
import Testing

@testable import Relay

/// The database account of docs/operators/store.md, "Accounts in MariaDB": a relay needs only the
/// rights over rows.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AccountRightsTests {
    @Test func relayNeedsNoTablePrivileges() async throws {
        let rig = try await RelayRig(over: try await FreshStore.byRelaysAccount(), time: TestTime())
        #expect(throws: (any Error).self) { try rig.forge("ALTER TABLE user ALTER email SET DEFAULT 'x'") }
        #expect(throws: (any Error).self) {
            try rig.forge("CREATE TRIGGER t BEFORE INSERT ON user FOR EACH ROW SET NEW.email = 'x'")
        }
        let ada = try await Person.registered("ada", at: try await rig.shop(), rig, email: "ada@example.com")
        let phone = try await ada.bound(try TestPhone(pushToken: "push"), ada.code)
        let asked = try await ada.login()
        try await ada.decide(asked.challenge, .approve, asked.number, by: phone)
        await rig.settled()
        try await rig.on { relay in try await relay.forget(username: "ada", by: ada.website) }
        #expect(try rig.count("SELECT count(*) FROM user") == 0)
        #expect(rig.forgeries == [])
        // The page says what an operator finds in unchanged tables.
        let defaults = try rig.text(
            """
            SELECT group_concat(concat(table_name, '.', column_name) ORDER BY table_name, column_name)
            FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
            WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'
            AND (column_default <> 'NULL' OR generation_expression IS NOT NULL)
            """)
        #expect(
            defaults
                == "challenge.known,device.login_failures,device.login_successes,device.pin_failures,"
                + "device.pin_sequence,device.pin_version,device.puk_failures,device.unlock_counter,device.unlock_failures,user.code_failures,"
                + "user.code_failures_kept")
    }
}
