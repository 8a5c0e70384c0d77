import TestSupport
import Testing

@testable import Storage

/// The view `Phones`: the states of PIN and PUK, and the verdict on the attestation.
@Suite(.mayBlock) struct PhoneViewTests {
    private static func id(_ number: Int) -> String { "x'" + String(repeating: "0", count: 31) + "\(number)'" }

    /// Adds a phone of one user. The key of a PIN is any value here: the relay alone reads it.
    private static func phone(_ number: Int, pin: String, puk: String, wrong: Int, wrongPUK: Int) -> String {
        """
        INSERT INTO device (id, user_id, state, platform, environment, push_token, push_token_at, failures, pin_key,
            puk_key, pin_failures, puk_failures, created_at, operation)
        VALUES (\(id(number)), \(id(1)), 'active', 'ios', 'production', 't', '2026-01-01 00:00:00.000', 0, \(pin),
            \(puk), \(wrong), \(wrongPUK), '2026-01-01 00:00:0\(number).000', \(id(number)))
        """
    }

    private static func attestation(_ number: Int, _ verdict: String, _ faults: String) -> String {
        """
        INSERT INTO attestation (device_id, user_id, verdict, faults, activation_code, counter, judged_at, operation)
        VALUES (\(id(number)), \(id(1)), '\(verdict)', '\(faults)', 'c', 0, '2026-01-01 00:00:00.000', \(id(number)))
        """
    }

    private static func fill(_ store: Store) throws {
        let key = "x'" + String(repeating: "04", count: 65) + "'"
        let writes = [
            """
            INSERT INTO website (id, name, display_name, state, policy, created_at, operation)
            VALUES (\(id(1)), 'shop', 'Shop', 'active', '{}', '2026-01-01 00:00:00.000', \(id(1)))
            """,
            """
            INSERT INTO user (id, website_id, username, token, state, created_at, operation)
            VALUES (\(id(1)), \(id(1)), 'ada', \(id(1)), 'active', '2026-01-01 00:00:00.000', \(id(1)))
            """,
            phone(1, pin: "NULL", puk: "NULL", wrong: 0, wrongPUK: 0),
            phone(2, pin: key, puk: key, wrong: 2, wrongPUK: 4),
            phone(3, pin: key, puk: key, wrong: 3, wrongPUK: 0),
            phone(4, pin: key, puk: key, wrong: 3, wrongPUK: 5),
            attestation(2, "valid", ""), attestation(3, "flawed", "old_os,revoked"),
            "UPDATE device SET verify_since = '2026-01-02 00:00:00.000' WHERE id = \(id(4))",
        ]
        _ = try store.runBlocking(Script("fill", writes: writes.map { Statement($0)() }))
    }

    private static let phones = Statement(
        "SELECT pin, puk, attestation, attestation_faults, verify_since FROM Phones ORDER BY created_at")

    @Test(arguments: [Engine.file, .mariadb], [true, false])
    func viewShowsTheStatesOfEachPhone(_ engine: Engine, isMigrated: Bool) throws {
        let database = try engine.database(Migration.all)
        if isMigrated { try FormerSchema.create(2, at: database.url) }
        let store = try database.open(.migrate)
        defer { store.close() }
        try Self.fill(store)
        let rows = try store.runBlocking(Script("phones", reads: [Self.phones()]))[0]
        #expect(try rows.map { try $0.text("pin") } == ["none", "set", "locked", "locked"])
        #expect(try rows.map { try $0.text("puk") } == ["none", "set", "set", "locked"])
        #expect(try rows.map { try $0.text("attestation") } == ["none", "valid", "flawed", "none"])
        #expect(try rows.map { try $0.text("attestation_faults") } == ["", "", "old_os,revoked", ""])
        #expect(try rows.map { try $0.isNull("verify_since") } == [true, true, true, false])
    }

    /// A view that is replaced keeps its grants, and reads with the rights of the account that migrates.
    @Test func grantsOnAReplacedViewRemain() async throws {
        let server = try MariaDBServer.shared()
        let name = try server.freshDatabase()
        let url = try StorageURL(server.url(name))
        try FormerSchema.create(2, at: url)
        try server.sql(
            """
            CREATE USER \(name)_reader@127.0.0.1; GRANT SELECT ON \(name).Phones TO \(name)_reader@127.0.0.1;
            CREATE USER \(name)_owner@127.0.0.1; GRANT ALL ON \(name).* TO \(name)_owner@127.0.0.1
            """)
        let owner = try StorageURL(server.url(name, as: "\(name)_owner"))
        try TestDatabase(url: owner, migrations: Migration.all).open(.migrate).close()
        let arguments = ["--no-defaults", "--host=127.0.0.1", "--port=\(server.port)", "--user=\(name)_reader"]
        for (sql, isAllowed) in [("SELECT pin, attestation FROM Phones", true), ("SELECT * FROM device", false)] {
            let ended = try await Child.run("mariadb", arguments + ["--execute=\(sql)", name])
            #expect((ended.status == 0) == isAllowed, "\(sql): \(ended.errors)")
        }
    }
}
