import Bytes
import Domain
import Relay
import TestSupport
import Testing

@testable import Storage

/// Reads whose own result is checked.
@Suite(.mayBlock) struct CheckedReadTests {
    private static let website = Statement(
        checking: [CheckedTable(.website, as: "w", prefix: "website_")], ["w.state"],
        from: "\(SignedTable.website.checked(as: "w")) WHERE w.name = :name")
    private static let phone = Statement(
        checking: [CheckedTable(.device, as: "d"), CheckedTable(.user, as: "u", prefix: "owner_")], ["d.failures"],
        from: """
            \(SignedTable.device.checked(as: "d")) JOIN \(SignedTable.user.checked(as: "u")) ON u.id = d.user_id
            WHERE u.username = :name
            """)
    private static let challenge = Statement(
        checking: [CheckedTable(.challenge, as: "c")], ["c.state"],
        from: """
            \(SignedTable.challenge.checked(as: "c")) JOIN user u ON u.id = c.user_id WHERE u.username = :name
            """)

    /// The same columns as those of a check, whatever expressions a table has.
    @Test(arguments: Engine.allCases) func genuineRowsAreReturnedWithTheirColumns(engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try await Self.filled(database)
        defer { withExtendedLifetime(database) { store.close() } }
        let rows = try await store.run(Script("test", reads: [Self.phone(name: .text("user-7"))]))[0]
        #expect(rows.count == 1)
        #expect(try rows[0].text("push_token") == "token")
        #expect(try rows[0].text("owner_username") == "user-7")
        #expect(try rows[0].integer("failures") == 0)
        let decided = try await store.run(Script("test", reads: [Self.challenge(name: .text("user-8"))]))[0]
        #expect(try decided[0].text("state") == "answered")
        #expect(try await store.run(Script("test", reads: [Self.phone(name: .text("nobody"))]))[0].isEmpty)
    }

    /// A changed row of either table stops the script that reads it, and no other of its batch.
    @Test(
        arguments: Engine.allCases,
        [
            "UPDATE device SET push_token = 'of eve' WHERE thumbprint = :key",
            "UPDATE user SET email = 'eve@example.com' WHERE id = (SELECT user_id FROM device WHERE thumbprint = :key)",
            "UPDATE device SET mac = NULL WHERE thumbprint = :key",
        ])
    func rowThatIsNotGenuineStopsItsReader(engine: Engine, change: String) async throws {
        let database = try engine.database(Migration.all)
        let store = try await Self.filled(database)
        defer { withExtendedLifetime(database) { store.close() } }
        _ = try await store.run(Script("change", writes: [Statement(change)(key: .blob(Sample.key(7)))]))
        let results = await withTaskGroup(of: (Int, Bool).self) { group in
            for number in 5...9 {
                group.addTask {
                    let script = Script("test", reads: [Self.phone(name: .text("user-\(number)"))])
                    do {
                        return (number, try await store.run(script)[0].count == 1)
                    } catch StoreFailure.forged {
                        return (number, false)
                    } catch {
                        Issue.record("\(error)")
                        return (number, false)
                    }
                }
            }
            return await group.reduce(into: [Int: Bool]()) { $0[$1.0] = $1.1 }
        }
        #expect(results == [5: true, 6: true, 7: false, 8: true, 9: true])
    }

    /// The check covers the user's row alone, and the rest of it is as in a plain read.
    @Test(arguments: Engine.allCases) func userToShowIsReadInOneStatement(engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try await Self.filled(database)
        defer { withExtendedLifetime(database) { store.close() } }
        let (website, now) = (Sample.website, Sample.now)
        let shown = try #require(try await store.userToShow(named: "user-7", of: website, at: now))
        #expect(try await store.user(named: "user-7", of: website, at: now) == shown.row)
        #expect(try await store.devices(of: shown.row.id, at: now).isEmpty == !shown.hasDevices)
        #expect(try await store.factors(of: shown.row.id, at: now).isEmpty == !shown.hasFactors)
        #expect(try await store.userToShow(named: "nobody", of: website, at: now) == nil)
        let change = Statement("DELETE FROM device WHERE user_id = :user")
        _ = try await store.run(Script("change", writes: [change(user: .id(shown.row.id))]))
        #expect(try await store.userToShow(named: "user-7", of: website, at: now)?.hasDevices == false)
        let forging = Statement("UPDATE user SET email = 'eve@example.com' WHERE id = :user")
        _ = try await store.run(Script("change", writes: [forging(user: .id(shown.row.id))]))
        await #expect(throws: StoreFailure.self) {
            _ = try await store.userToShow(named: "user-7", of: website, at: now)
        }
    }

    /// A database in memory has one lane. A row that another script of the batch changes has its new MAC
    /// only at the end of the transaction.
    @Test(arguments: Engine.allCases) func rowThatIsBeingChangedIsGenuine(engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try await Self.filled(database)
        defer { withExtendedLifetime(database) { store.close() } }
        let read = Script("test", reads: [Self.phone(name: .text("user-7"))])
        let rename = Script(
            "rename", rows: [SignedRows.user(Sample.id(7) as UserID).signed],
            writes: [Self.rename(user: .id(Sample.id(7) as UserID))])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask { _ = try await store.run(number % 2 == 0 ? read : rename) }
            }
            try await group.waitForAll()
        }
    }

    private static let rename = Statement(
        "UPDATE user SET display_name = CASE display_name WHEN 'a' THEN 'b' ELSE 'a' END WHERE id = :user")

    /// A right that was taken away needs no new MAC; one that was added does.
    @Test(arguments: Engine.allCases) func rightsAreChecked(engine: Engine) async throws {
        let database = try engine.database(Migration.all)
        let store = try await Self.filled(database)
        defer { withExtendedLifetime(database) { store.close() } }
        let read = Script("test", reads: [Self.website(name: .text("shop"))])
        _ = try await store.run(Script("change", writes: [Self.setState(state: .text("disabled"))]))
        #expect(try await store.run(read)[0][0].text("state") == "disabled")
        _ = try await store.run(Script("adopt", rows: SignedRows.everythingAdopted))
        _ = try await store.run(Script("change", writes: [Self.setState(state: .text("active"))]))
        await #expect(throws: StoreFailure.self) { try await store.run(read) }
    }

    private static let setState = Statement("UPDATE website SET state = :state")

    private static let approve = Statement(
        """
        UPDATE challenge SET state = 'answered', decision = 'approve', decided_at = asked_at, factor = 'push'
        WHERE user_id = (SELECT id FROM user WHERE username = 'user-8')
        """)

    private static func filled(_ database: TestDatabase) async throws -> Store {
        var options = StoreOptions.patient
        options.rows = try RowAuthenticator(keys: [RowAuthenticator.Key(id: "1", secret: Secret(utf8: "secret"))])
        let store = try database.open(options: options)
        try await Sample.fill(store, at: database.url, users: 80)
        _ = try await store.run(Script("approve", writes: [approve()]))
        _ = try await store.run(Script("adopt", rows: SignedRows.everythingAdopted))
        return store
    }
}
